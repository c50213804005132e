/* SPDX-License-Identifier: MIT */
/* What the parts of test_parse share. */
#ifndef FAY_TESTS_TEST_PARSE_H
#define FAY_TESTS_TEST_PARSE_H

#include "verifier/reader/reader.h"

/* Counts and tells a difference between the verifier (there) and the checker (here). */
void differ(const char *name, const char *what, unsigned there, unsigned here);
/* Both on one file; the checker's rule. */
enum fay_rule compare(const char *name, const uint8_t *bytes, size_t size,
		      const struct fay_policy *own, bool policy);

/* parse_made.c: images made of this one, which is accepted; with sections .fay.certificate. */
void compare_made(const char *name, const uint8_t *bytes, size_t size);
void compare_certificates(const char *name, const uint8_t *bytes, size_t size);

#endif
