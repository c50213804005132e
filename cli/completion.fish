# SPDX-License-Identifier: MIT
# Completion of `fay` for fish: `complete` knows what there is.
set -g __fay_complete (realpath (dirname (status filename)))
test -x $__fay_complete/complete; or set -g __fay_complete $__fay_complete/../../fay

function __fay_words
    for word in ($__fay_complete/complete (commandline -opc) (commandline -ct))
        switch $word
            case @files
                __fish_complete_path (commandline -ct)
            case @users
                __fish_complete_users
            case @commands
                complete -C (commandline -ct)
            case '*'
                echo $word
        end
    end
end
complete -c fay -f -a '(__fay_words)'
