/* SPDX-License-Identifier: MIT */
/* `fay shell`, and `fay` alone on a terminal: queries at a prompt. Takes main()'s arguments from
 * the subcommand's name on. */
#ifndef FAY_CLI_SHELL_H
#define FAY_CLI_SHELL_H

int fay_shell_main(int argc, char **argv);

#endif
