/* SPDX-License-Identifier: MIT */
/* Saved traces for other programs: `fay export`. It takes main()'s arguments from the subcommand's
 * name on. */
#ifndef FAY_CLI_EXPORT_H
#define FAY_CLI_EXPORT_H

int fay_export_main(int argc, char **argv);

#endif
