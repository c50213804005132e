/* SPDX-License-Identifier: MIT */
/*
 * libfay_extension: native code of others, checked and called directly. A host says in a text what
 * an extension may see and call (docs/internals/host-interface.md), loads images that bring a
 * certificate for that, and calls their functions by plain pointers.
 *
 *     cc host.c -o host $(pkg-config --cflags --libs fay-extension)
 *
 * No state but in these objects, no output, no exit. Different objects may be used by different
 * threads at once; of one object all functions that take a pointer to const may. A host promises
 * sizes, alignment, and what does not overlap or change: nothing here can check that at a call.
 */
#ifndef FAY_HOST_HOST_H
#define FAY_HOST_HOST_H

#include <stdbool.h>
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

/* What a parameter of the interface's entries is: for those who make calls of what they read, as a
 * language's binding does. */
enum fay_host_kind {
	FAY_HOST_START = 1, /* where a region begins */
	FAY_HOST_SIZE = 2,  /* how many bytes a region has */
	FAY_HOST_NUMBER = 3,
};
struct fay_host_parameter {
	const char *name;   /* as long as the host is open, like region */
	const char *region; /* NUMBER: NULL */
	enum fay_host_kind kind;
	uint32_t bytes;     /* START: the region's, at most if they are passed; 0: an instance */
	uint32_t alignment; /* START: the region begins at a multiple of it */
	bool written;       /* START: extensions, or helpers for them, may write it */
	bool constant;      /* START: nobody writes it during a call */
	bool passed;        /* START: a SIZE says how many bytes it has */
	/* SIZE, NUMBER: it lies in [lo, hi]; hi is signed if lo is negative */
	int64_t lo;
	uint64_t hi;
};
/* Parameter `index`, from 0. FAY_E_USAGE: there are no more. */
int fay_host_parameter(const struct fay_host *host, size_t index,
		       struct fay_host_parameter *parameter);
/* What entries return lies in [*lo, *hi], *hi signed if *lo is negative. FAY_E_USAGE: nothing. */
int fay_host_result(const struct fay_host *host, int64_t *lo, uint64_t *hi);

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
