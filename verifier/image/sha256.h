/* SPDX-License-Identifier: MIT */
/* The hash that binds what was verified to what is installed: see sha256.c. */
#ifndef FAY_VERIFIER_SHA256_H
#define FAY_VERIFIER_SHA256_H

#include <stddef.h>
#include <stdint.h>

void fay_sha256(const void *data, size_t size, uint8_t digest[32]);

#endif
