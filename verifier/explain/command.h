/* SPDX-License-Identifier: MIT */
/* The `fay verify` command and the fay-verify program. */
#ifndef FAY_VERIFIER_COMMAND_H
#define FAY_VERIFIER_COMMAND_H

/* argv[0] is the command's name for messages. Returns the exit code. */
int fay_verify_main(int argc, char **argv);

#endif
