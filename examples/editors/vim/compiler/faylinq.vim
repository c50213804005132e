" :make has the query checked, without tracing anything; :copen lists what is wrong, and where.
let current_compiler = 'faylinq'
CompilerSet makeprg=fay\ explain\ -f\ %:S
CompilerSet errorformat=fay:\ %f:%l:%c:\ %m,%-G%.%#
