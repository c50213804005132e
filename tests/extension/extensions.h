/* SPDX-License-Identifier: MIT */
/* What the tests of extensions share: files that `built` left, a host for them. */
#ifndef FAY_TESTS_EXTENSIONS_H
#define FAY_TESTS_EXTENSIONS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../xorshift.h"
#include "fay/host/host.h"

typedef uint64_t packet_function(const uint8_t *data, uint64_t size, void *state);

extern const char *directory; /* where the files are */

/* A file of it, to be freed. */
uint8_t *read_file(const char *name, size_t *size);
/* A host of packets.host. */
struct fay_host *open_host(void);
packet_function *entry(const struct fay_loaded *loaded, const char *name);

#endif
