" FayLINQ (docs/faylinq.md)
if exists('b:current_syntax')
	finish
endif
syntax keyword faylinqKeyword from in where let group by into select new join on equals within
syntax keyword faylinqKeyword orderby ascending descending take param
syntax keyword faylinqSource cluster process machine file kernel
syntax keyword faylinqBoolean true false
syntax match faylinqCall /\<\h\w*\ze(/
syntax match faylinqField /\.\s*\h\w*\ze\%(\w\|(\)\@!/
syntax match faylinqNumber /\<\d\+\%(\.\d\+\)\?\%(ns\|us\|ms\|s\|min\|h\|KiB\|MiB\|GiB\|kB\|MB\|GB\)\?\>/
syntax match faylinqNumber /\<0x\x\+\>/
syntax match faylinqParameter /\$\h\w*/
syntax region faylinqString start=/"/ skip=/\\./ end=/"/ oneline contains=faylinqParameter
syntax region faylinqComment start=+//+ end=/$/ oneline
syntax region faylinqComment start=+/\*+ end=+\*/+
syntax match faylinqComment /\%1l^#!.*/
highlight default link faylinqKeyword Keyword
highlight default link faylinqSource Identifier
highlight default link faylinqBoolean Boolean
highlight default link faylinqCall Function
highlight default link faylinqNumber Number
highlight default link faylinqParameter PreProc
highlight default link faylinqString String
highlight default link faylinqComment Comment
let b:current_syntax = 'faylinq'
