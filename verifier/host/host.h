/* SPDX-License-Identifier: MIT */
/*
 * The room of host interfaces: from the text that hosts write to the canonical bytes that the
 * checker reads. docs/internals/host-interface.md has the grammar.
 */
#ifndef FAY_VERIFIER_HOST_H
#define FAY_VERIFIER_HOST_H

#include "fay/host/interface.h"
#include "fay/verify.h"

#define FAY_HOST_TEXT 65536u /* bytes of a text, at most */
#define FAY_HOST_NAME 64u    /* bytes of a name with its NUL, at most */

/* What the canonical bytes do not have: names of regions and parameters, in order. */
struct fay_host_names {
	char region[FAY_INTERFACE_REGIONS][FAY_HOST_NAME];
	char parameter[FAY_INTERFACE_PARAMETERS][FAY_HOST_NAME];
};

/*
 * Compiles `size` bytes of text; *names, which may be NULL, is written where that succeeds. False:
 * *interface is zero and *message, of message_size bytes, says "LINE:COLUMN: what is wrong".
 */
bool fay_host_compile(const char *text, size_t size, struct fay_interface *interface,
		      struct fay_host_names *names, char *message, size_t message_size);
/* What the checker is asked with for this host: its limits, and all else that hosts may allow. */
void fay_host_policy(const struct fay_interface *interface, struct fay_policy *policy);

#endif
