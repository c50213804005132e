/* SPDX-License-Identifier: MIT */
/* The commands on images beside `fay verify`, and what they share with it. argv[0] is the command's
 * name for messages; each returns the exit code. */
#ifndef FAY_VERIFIER_INSPECT_COMMAND_H
#define FAY_VERIFIER_INSPECT_COMMAND_H

#include <stddef.h>
#include <stdint.h>

int fay_diff_main(int argc, char **argv);
int fay_inspect_main(int argc, char **argv);
int fay_policy_main(int argc, char **argv);
/*
 * Reads the whole file into memory of our own, *bytes to be freed: what is looked at cannot change
 * afterwards. A file over the format's limit is read up to one byte more than the limit, so that
 * the verifier itself refuses it by its rule. 0, or, after a message, the exit code.
 */
int fay_command_read(const char *program, const char *path, uint8_t **bytes, size_t *size);

#endif
