/* SPDX-License-Identifier: MIT */
/* The `fay verify` command and the fay-verify program. */
#ifndef FAY_VERIFIER_REVIEW_COMMAND_H
#define FAY_VERIFIER_REVIEW_COMMAND_H

/* argv[0] is the command's name for messages. Returns the exit code. */
int fay_verify_main(int argc, char **argv);

/* `--interface`: files. certify: where the image is written with its certificate, or NULL. */
struct fay_verify_host {
	const char *program, *image, *interface, *certify;
};
int fay_verify_host(const struct fay_verify_host *ask);

#endif
