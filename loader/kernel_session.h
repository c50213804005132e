/* SPDX-License-Identifier: MIT */
/* A kernel session's parts: kernel_session.c (its life), kernel_device.c (fay.ko), kernel_points.c
 * (which functions), kernel_module.c (its code). */
#ifndef FAY_LOADER_KERNEL_SESSION_H
#define FAY_LOADER_KERNEL_SESSION_H

#include <limits.h>

#include "kernel.h"

struct kernel_point {
	struct fay_kernel_point place;
	const char *name;
	uint64_t probes;
	struct fay_kernel_prototype prototype; /* with a return probe */
	uint32_t set;
};

struct fay_kernel_session {
	const struct fay_verdict *verdict; /* during attach only */
	int device;
	char ko[PATH_MAX]; /* fay.ko's path */
	char name[32];     /* of the session's module */
	bool loaded, attached;
	/* why entries are called back by ftrace, however few; NULL: they are not */
	const char *called_back;
	struct fay_kernel_create made;
	struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX];
	uint64_t periods[FAY_KERNEL_PROBES_MAX], due[FAY_KERNEL_PROBES_MAX];
	uint32_t probe_count;
	const struct fay_kernel_symbols *symbols;
	const struct fay_kernel_btf *btf;
	struct fay_kernel_symbols own_symbols; /* unless the caller has some */
	struct fay_kernel_btf *own_btf;
	/* with a return probe: by name, those that one function has */
	const struct fay_kernel_symbol **own_names;
	size_t own_name_count;
	struct kernel_point *points;
	size_t point_count;
	struct fay_skipped_point *skipped;
	size_t skipped_count, skipped_room;
	struct fay_kernel_set sets[FAY_KERNEL_SETS_MAX];
	uint32_t set_count;
	uint8_t *text;
	size_t text_size, text_room;
	struct fay_kernel_relocation *relocations;
	size_t relocation_count;
	struct fay_shm_control *shm;
};

#define FAY_KERNEL_FTRACE_DEAD "a fault has switched ftrace off (the kernel's log says which)"

/* Kinds that run in fay's own task, at no function. */
static inline bool fay_kernel_hosted(uint32_t kind)
{
	return kind == FAY_PROBE_BEGIN || kind == FAY_PROBE_END || kind == FAY_PROBE_TIMER;
}

/* Each takes a step of attaching; docs/kernel.md has their order. All return FAY_OK or the error's
 * code. */

/* kernel_device.c: opens /dev/fay, having loaded fay.ko from `ko` (NULL: where it is looked for) if
 * need be; makes the session there. */
int fay_kernel_device_open(struct fay_kernel_session *session, const char *ko,
			   struct fay_error *error);
int fay_kernel_device_create(struct fay_kernel_session *session, struct fay_error *error);
/* Says in words why the kernel did not load `what`; errno is init_module(2)'s. */
int fay_kernel_load_refused(const char *what, struct fay_error *error);

/* kernel_points.c: probes and the functions that they are at. */
int fay_kernel_take_probes(struct fay_kernel_session *session, struct fay_error *error);
int fay_kernel_find_points(struct fay_kernel_session *session, struct fay_error *error);
/* Mask of the return probes. */
uint64_t fay_kernel_return_probes(const struct fay_kernel_session *session);

/* kernel_module.c: points to sets, trampolines, the loaded module; once more, for `called_back`,
 * instead of the one that was loaded. */
int fay_kernel_module_load(struct fay_kernel_session *session, struct fay_error *error);

#endif
