#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# editors.sh FAY SOURCE: the keywords that editors show are the parser's; in Debian's neovim each
# example has colours, and :make finds a mistake where it stands; there and in Debian's Emacs the
# language server marks it.
set -euo pipefail
fay=$1 source=$2
editors=$source/examples/editors
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
cd "$work"
jq -e '.scopeName == "source.faylinq"' "$editors/faylinq.tmLanguage.json" >/dev/null ||
	fail "no JSON"
grep -A1 'reserved\[\] = {' "$source/query/syntax/parser.c" | grep -oE '"[a-z]+"' |
	tr -d '"' >reserved
[ "$(wc -l <reserved)" -ge 10 ] || fail "keywords: $(cat reserved)"
while read -r word; do
	grep -qw "$word" "$editors/vim/syntax/faylinq.vim" || fail "vim has no $word"
	grep '"match"' "$editors/faylinq.tmLanguage.json" | grep -qw "$word" || fail "no $word"
	grep -q "\"$word\"" "$editors/emacs/faylinq.el" || fail "emacs has no $word"
done <reserved
cat >bad.linq <<'END'
param call = "read"
from s in cluster.Syscall("$call")
group s by s.comn into g
END
echo 'select new { g.Key, n = g.Count() }' >>bad.linq
status=0
"$fay" explain -f bad.linq 2>err || status=$?
[ $status = 2 ] && grep -q "^fay: bad.linq:3:14: unknown field .comn." err || fail "$(cat err)"
# Emacs: colours; the mistake, mended; what may stand at the cursor, what stands there.
cat >lsp.el <<'END'
(require 'eglot)
(defun await (what)
  (with-timeout (30 (message "never: %S" what))
    (while (not (eval what)) (accept-process-output nil 0.05))))
(find-file "bad.linq")
(add-hook 'faylinq-mode-hook 'eglot-ensure)
(faylinq-mode)
(run-hooks 'post-command-hook)
(await '(ignore-errors (eglot-current-server)))
(await '(progn (flymake-start) (flymake-diagnostics)))
(dolist (one (flymake-diagnostics))
  (message "at %d: %s" (line-number-at-pos (flymake-diagnostic-beg one))
           (flymake-diagnostic-text one)))
(search-forward "comn")
(replace-match "comm")
(eglot--signal-textDocument/didChange)
(await '(progn (sit-for 0.1) (flymake-start) (null (flymake-diagnostics))))
(message "left %d" (length (flymake-diagnostics)))
(search-forward "Coun")
(message "hover %S" (jsonrpc-request (eglot--current-server-or-lose) :textDocument/hover
                                     (eglot--TextDocumentPositionParams)))
(message "complete %S" (mapcar #'substring-no-properties
                               (all-completions "Co" (nth 2 (eglot-completion-at-point)))))
(font-lock-ensure)
(message "colours %S" (mapcar (lambda (word) (goto-char (point-min)) (search-forward word)
                                (get-text-property (1- (point)) 'face))
                              '("param" "cluster" "Syscall" "$call")))
END
if command -v emacs >/dev/null && emacs --batch --eval '(package-initialize)' \
	--eval "(require 'eglot)" 2>/dev/null; then
	cp bad.linq kept.linq
	HOME=$work PATH=$(dirname "$fay"):$PATH timeout 120 emacs --batch --eval \
		'(package-initialize)' -l "$editors/emacs/faylinq.el" -l lsp.el >said 2>&1 ||
		fail "emacs: $(cat said)"
	cp kept.linq bad.linq
	for what in 'at 3: .*unknown field .comn.*did you mean .comm' 'left 0' \
		'^of events: how many' 'complete .*"Count"' \
		'colours (font-lock-keyword-face font-lock-builtin-face font-lock-function' \
		'font-lock-preprocessor-face'; do
		grep -q "$what" said || fail "emacs does not say '$what': $(cat said)"
	done
	echo "ok: emacs"
else
	echo "not tried: Emacs with eglot is not installed (scripts/deps --test)"
fi
command -v nvim >/dev/null ||
	{ echo "skipped: neovim is not installed (scripts/deps --test)"; exit 77; }
vim() { # COMMAND...
	local command arguments=()
	for command; do arguments+=(-c "$command"); done
	HOME=$work PATH=$(dirname "$fay"):$PATH nvim --headless -u NONE \
		--cmd "set rtp+=$editors/vim" -c 'filetype plugin on' -c 'syntax on' \
		"${arguments[@]}" -c 'qa!' 2>&1
}
vim 'edit bad.linq' 'silent make' \
	'for e in getqflist() | echo bufname(e.bufnr) e.lnum e.col e.text | endfor' >said
grep -q "bad.linq 3 14 unknown field .comn." said || fail "no diagnostics: $(cat said)"
# The language server: the same mistake, mended; what may stand at the cursor, what stands there.
cat >lsp.vim <<'END'
lua require('faylinq').setup()
edit bad.linq
lua vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end)
lua for _, d in ipairs(vim.diagnostic.get(0)) do print(d.lnum, d.col, d.end_col, d.message) end
call setline(3, 'group s by s.comm into g')
lua vim.wait(20000, function() return #vim.diagnostic.get(0) == 0 end)
lua print('left', #vim.diagnostic.get(0))
call cursor(4, 28)
lua << LUA
local where = vim.lsp.util.make_position_params()
local function ask(what)
	for _, r in pairs(vim.lsp.buf_request_sync(0, 'textDocument/' .. what, where, 20000)) do
		return r.result
	end
end
print(ask('hover').contents.value)
for _, item in ipairs(ask('completion').items) do io.stderr:write(item.label, ' ') end
LUA
END
vim 'source lsp.vim' >said
grep -q "^2 13 17 unknown field .comn.*did you mean .comm" said && grep -q "^left 0" said &&
	grep -q "of events: how many" said && grep -q "Count" said || fail "fay lsp: $(cat said)"
name='synIDattr(synID(%d, %d, 1), "name")'
# shellcheck disable=SC2059
vim 'edit bad.linq' "echo $(printf "$name" 1 1) $(printf "$name" 2 11) $(printf "$name" 2 19) \
	$(printf "$name" 2 28) $(printf "$name" 4 27)" >said
grep -q 'faylinqKeyword faylinqSource faylinqCall faylinqParameter faylinqCall' said ||
	fail "$(cat said)"
for query in "$source"/examples/queries/*/*.linq; do
	echo "edit $query"
	echo 'let found = {}'
	echo 'for l in range(1, line("$")) | for c in range(1, col([l, "$"])) |
		\ let found[synIDattr(synID(l, c, 1), "name")] = 1 | endfor | endfor'
	echo 'if !has_key(found, "faylinqComment") || !has_key(found, "faylinqCall")
		\ | echo "no colours:" bufname() keys(found) | endif'
done >colours.vim
vim 'source colours.vim' >said
! grep "no colours" said || fail "no colours"
echo "ok: $(grep -c '^edit' colours.vim) examples"
