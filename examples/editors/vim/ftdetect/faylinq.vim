" FayLINQ: queries of Fay in files
autocmd BufNewFile,BufRead *.linq setfiletype faylinq
autocmd FileType faylinq setlocal commentstring=//\ %s | compiler faylinq
