;;; faylinq.el --- FayLINQ query files (docs/faylinq.md)  -*- lexical-binding: t -*-
;; SPDX-License-Identifier: MIT
;;
;; Colours for .linq files, and `fay lsp' by eglot (Emacs 29, or elpa-eglot).

(defvar faylinq-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?_ "w" table)
    table))

(defvar faylinq-font-lock-keywords
  `((,(regexp-opt '("from" "in" "where" "let" "group" "by" "into" "select" "new" "join" "on"
                    "equals" "within" "orderby" "ascending" "descending" "take" "param")
                  'words)
     . font-lock-keyword-face)
    (,(regexp-opt '("cluster" "process" "machine" "file" "kernel") 'words)
     . font-lock-builtin-face)
    (,(regexp-opt '("true" "false") 'words) . font-lock-constant-face)
    ("\\<\\([A-Za-z]\\w*\\)(" 1 font-lock-function-name-face)
    ("\\$[A-Za-z]\\w*" 0 font-lock-preprocessor-face t)))

;;;###autoload
(define-derived-mode faylinq-mode prog-mode "FayLINQ"
  "Queries of Fay."
  (setq-local comment-start "// ")
  (setq-local font-lock-defaults '(faylinq-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.linq\\'" . faylinq-mode))

(defvar faylinq-server '("fay" "lsp")
  "The language server; with \"--comm\" \"NAME\" or \"-p\" \"PID\" it knows a program's functions.")

(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs (cons 'faylinq-mode faylinq-server)))

(provide 'faylinq)
;;; faylinq.el ends here
