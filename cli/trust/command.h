/* SPDX-License-Identifier: MIT */
/* `fay sign` and `fay trust`: signatures of images, and whose count here (docs/internals/trust.md).
 * `fay log`: what was traced here (docs/internals/log.md). */
#ifndef FAY_CLI_TRUST_COMMAND_H
#define FAY_CLI_TRUST_COMMAND_H

/* argv[0] is the command's name. Return the exit code. */
int fay_sign_main(int argc, char **argv);
int fay_trust_main(int argc, char **argv);
int fay_log_main(int argc, char **argv);

#endif
