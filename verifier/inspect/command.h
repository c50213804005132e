/* SPDX-License-Identifier: MIT */
/* The commands on images beside `fay verify`. argv[0] is the command's name for messages; each
 * returns the exit code. */
#ifndef FAY_VERIFIER_INSPECT_COMMAND_H
#define FAY_VERIFIER_INSPECT_COMMAND_H

int fay_diff_main(int argc, char **argv);
int fay_inspect_main(int argc, char **argv);
int fay_policy_main(int argc, char **argv);

#endif
