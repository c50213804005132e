/* SPDX-License-Identifier: MIT */
/*
 * The room that accepts by a certificate: the checker's answer becomes a verdict. What is installed
 * and what is told of the state is what the checker read; nothing reads the file once more.
 */
#ifndef FAY_VERIFIER_ACCEPT_H
#define FAY_VERIFIER_ACCEPT_H

#include "fay/verify.h"
#include "verifier/reader/reader.h"
#include "verifier/rules/rules.h"

/* What the checker says of an image with the certificate that it brings. `facts` as in
 * check_image(); jumps are not told. False: it is refused, and result->refusal says why. */
bool fay_accept_check(const void *bytes, size_t size, const struct fay_policy *policy,
		      struct fay_probe_facts *facts, struct check_result *result);
/* What is installed, in the arena: the bytes that the checker read. False: no memory. */
bool fay_accept_layout(struct fay_arena *arena, const struct check_subject *s,
		       struct fay_layout *layout);
/* Accepts an image by the certificate that it brings, if the policy lets it; false: nothing was
 * decided, and *verdict is as it was. */
bool fay_accept_certified(const void *bytes, size_t size, const struct fay_policy *policy,
			  struct fay_verdict *verdict);
/* The same by a certificate that was found here, which no policy need let. */
bool fay_accept_found(const void *bytes, size_t size, const uint8_t *certificate,
		      size_t certificate_size, const struct fay_policy *policy,
		      struct fay_verdict *verdict);

#endif
