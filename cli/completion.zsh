#compdef fay
# SPDX-License-Identifier: MIT
# Completion of `fay` for zsh: `complete` knows what there is.
local folder=${${(%):-%x}:A:h}
local -a known
[[ -x $folder/complete ]] || folder=$folder/../../fay
known=("${(@f)$("$folder/complete" "${(@)words[1,CURRENT]}")}")
(( ! ${known[(Ie)@files]} )) || _files
(( ! ${known[(Ie)@users]} )) || _users
(( ! ${known[(Ie)@commands]} )) || _command_names -e
compadd -- "${(@)known:#@*}"
