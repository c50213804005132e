/* SPDX-License-Identifier: MIT */
/* The `fay verify` command and the fay-verify program. */
#ifndef FAY_VERIFIER_COMMAND_H
#define FAY_VERIFIER_COMMAND_H

#include <stddef.h>
#include <stdint.h>

/* argv[0] is the command's name for messages. Returns the exit code. */
int fay_verify_main(int argc, char **argv);
/*
 * Reads the whole file into memory of our own, *bytes to be freed: what is looked at cannot change
 * afterwards. A file over the format's limit is read up to one byte more than the limit, so that
 * the verifier itself refuses it by its rule. 0, or, after a message, the exit code.
 */
int fay_command_read(const char *program, const char *path, uint8_t **bytes, size_t *size);

/* `--interface`: files. certify: where the image is written with its certificate, or NULL. */
struct fay_verify_host {
	const char *program, *image, *interface, *certify;
};
int fay_verify_host(const struct fay_verify_host *ask);

#endif
