/* SPDX-License-Identifier: MIT */
/* `fay top`: processes, their functions and what calls these, on a whole screen. Takes main()'s
 * arguments from the subcommand's name on. */
#ifndef FAY_CLI_TOP_H
#define FAY_CLI_TOP_H

int fay_top_main(int argc, char **argv);

#endif
