/* SPDX-License-Identifier: MIT */
#ifndef FAY_CLI_LSP_H
#define FAY_CLI_LSP_H

/* `fay lsp`: a language server on standard input and output; returns the exit code. */
int fay_lsp_main(int argc, char **argv);

#endif
