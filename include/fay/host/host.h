/* SPDX-License-Identifier: MIT */
/*
 * libfay_extension: native code of others, checked and called directly. A host says in a text what
 * an extension may see and call (docs/internals/host-interface.md), loads images that bring a
 * certificate for that, and calls their functions by plain pointers.
 *
 *     cc host.c -o host $(pkg-config --cflags --libs fay-extension)
 *
 * No state but in these objects, no output, no exit. Different objects may be used by different
 * threads at once; of one object all functions that take a pointer to const may. A host promises sizes,
 * alignment, and what does not overlap or change: nothing here can check that at a call.
 */
#ifndef FAY_HOST_HOST_H
#define FAY_HOST_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fay_host;
struct fay_loaded;
/* To be cast to what it is. */
typedef void (*fay_host_function)(void);

/* A host of this interface; *host is to be closed. FAY_E_USAGE: the message is
 * "LINE:COLUMN: what". */
int fay_host_open(const char *text, size_t size, struct fay_host **host, struct fay_error *error);
void fay_host_close(struct fay_host *host);
/* The function that extensions call as `helper`. FAY_E_USAGE: the interface has none of that
 * name. */
int fay_host_bind(struct fay_host *host, const char *helper, fay_host_function function,
		  struct fay_error *error);

/*
 * Says that the region of this name is in all calls the `size` bytes at `memory`, or begins there
 * if its size is passed. FAY_E_USAGE: the interface promises what that memory cannot keep (it has
 * fewer bytes than the region's SIZE or MOST, begins at no such multiple, is not mapped to be read
 * or written, or overlaps another region's), the region is local, or there is none of that name.
 * Each load looks again. A region of which nothing is said is where each call says.
 */
int fay_host_provide(struct fay_host *host, const char *region, const void *memory, size_t size,
		     struct fay_error *error);

/*
 * Checks an image by the certificate that it brings, of a copy, and maps it: its code and constants
 * can be read and executed, and never written again. *loaded is to be unloaded, and does not need
 * the host any more. FAY_E_REFUSED: the message begins with the rule, docs/rules.md explains it.
 * FAY_E_USAGE: it imports a helper that is not bound, or memory that was provided is not there.
 */
int fay_host_load(const struct fay_host *host, const void *image, size_t size,
		  struct fay_loaded **loaded, struct fay_error *error);
/* No call of its functions may be going on, and none may follow. */
void fay_host_unload(struct fay_loaded *loaded);

/*
 * The entry `name`, a function with the interface's parameters: pointers, uint64_t and int64_t in
 * their order, and uint64_t, int64_t or void as result. NULL: it has no such entry.
 */
fay_host_function fay_loaded_entry(const struct fay_loaded *loaded, const char *name);
/* What a call of the entry takes at most: instructions, those of helpers included, and bytes of
 * stack, those of helpers not. FAY_E_USAGE: there is no such entry. */
int fay_loaded_limits(const struct fay_loaded *loaded, const char *name, uint64_t *instructions,
		      uint64_t *stack);
/* Bytes of local state that each instance has, which may be 0. */
size_t fay_loaded_local_size(const struct fay_loaded *loaded);
/* An instance's local state, all zero, at a multiple of 64; to be released. One may be used by one
 * thread at a time. NULL: no memory. */
void *fay_loaded_instance(const struct fay_loaded *loaded);
void fay_instance_release(void *local);

#ifdef __cplusplus
}
#endif

#endif
