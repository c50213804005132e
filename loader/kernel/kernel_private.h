/* SPDX-License-Identifier: MIT */
/* What a kernel session is made with: symbols.c, btf.c, object.c (the module with the
 * code). */
#ifndef FAY_LOADER_KERNEL_PRIVATE_H
#define FAY_LOADER_KERNEL_PRIVATE_H

#include <limits.h>

#include "dispatcher/kernel/trampoline.h"
#include "fay/kernel.h"

/* ---- btf.c: the kernel's types ---- */

struct fay_kernel_btf;
int fay_kernel_btf_open(struct fay_kernel_btf **btf, struct fay_error *error);
/* The same of bytes in memory, malloc'ed and taken over in any case. */
int fay_kernel_btf_create(uint8_t *bytes, size_t size, struct fay_kernel_btf **btf,
			  struct fay_error *error);
void fay_kernel_btf_close(struct fay_kernel_btf *btf);
/* sizeof(struct module) and the offset of its name; false: not found. */
bool fay_kernel_btf_module(const struct fay_kernel_btf *btf, uint32_t *size, uint32_t *name_offset);
struct fay_kernel_prototype {
	uint32_t stack_words; /* of arguments */
	uint32_t result;      /* as in struct fay_kernel_set */
};
/* False: there is no prototype of that name, or it has arguments that are not understood. */
bool fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
			      struct fay_kernel_prototype *prototype);

/* ---- sign.c ---- */

/* Environment: PEM file of the private key that modules are signed with, and file of its
 * certificate (PEM or DER). No key: they are not signed. */
#define FAY_KERNEL_KEY "FAY_MODULE_KEY"
#define FAY_KERNEL_CERTIFICATE "FAY_MODULE_CERT"
bool fay_kernel_signs(void);
/* Appends the signature to a module of malloc's memory, which may move. Does nothing if there is no
 * key. */
int fay_kernel_sign(uint8_t **bytes, size_t *size, struct fay_error *error);

/* ---- session.c ---- */

/* As fay_kernel_session_attach(), with symbols and types that are the caller's and outlive the
 * session. */
int fay_kernel_session_attach_with(const struct fay_verdict *verdict,
				   const struct fay_kernel_image *image, const char *fay_ko,
				   const struct fay_kernel_symbols *symbols,
				   const struct fay_kernel_btf *btf,
				   struct fay_kernel_session **session, struct fay_error *error);

/* ---- object.c ---- */

struct fay_kernel_object {
	/* path of any module of the running kernel: version magic, symbol version */
	const char *reference;
	const uint8_t *text;
	size_t text_size;
	const struct fay_kernel_relocation *relocations; /* offsets in the text */
	size_t relocation_count;
	const char *name;
	bool indirect; /* the text has indirect calls */
};
#define FAY_KERNEL_RELEASE_MAX 65u /* struct utsname */
/* Which kernel a module was built for, by its version magic; false: it is none. */
bool fay_kernel_object_release(const char *path, char release[FAY_KERNEL_RELEASE_MAX]);
/* An ELF object for init_module(2). */
int fay_kernel_object_write(const struct fay_kernel_object *object,
			    const struct fay_kernel_btf *btf, uint8_t **bytes, size_t *size,
			    struct fay_error *error);

/* A kernel session's parts: session.c (its life), device.c (fay.ko), points.c
 * (which functions), module.c (its code). */
struct kernel_point {
	struct fay_kernel_point place;
	const char *name;
	uint64_t probes;
	struct fay_kernel_prototype prototype; /* with a return probe */
	uint32_t set;
};

/* What fay.ko lets users do: allowed.c. */
struct fay_kernel_answer {
	struct fay_kernel_policy policy;
	struct fay_policy images;
	struct fay_kernel_function *functions; /* malloc'ed, as are their names */
	char *names;
};

struct fay_kernel_session {
	/* what the caller, who is not root, is held to; without functions: nothing */
	struct fay_kernel_answer allowed;
	/* during attach only */
	const struct fay_verdict *verdict;
	struct fay_kernel_image image;
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

/* device.c: opens /dev/fay, having loaded fay.ko from `ko` (NULL: where it is looked for) if
 * need be; makes the session there. */
int fay_kernel_device_open(struct fay_kernel_session *session, const char *ko,
			   struct fay_error *error);
int fay_kernel_device_create(struct fay_kernel_session *session, struct fay_error *error);
/* Says in words why the kernel did not load `what`; errno is init_module(2)'s. */
int fay_kernel_load_refused(const char *what, struct fay_error *error);

/* points.c: probes and the functions that they are at. */
int fay_kernel_take_probes(struct fay_kernel_session *session, struct fay_error *error);
int fay_kernel_find_points(struct fay_kernel_session *session, struct fay_error *error);
/* Mask of the return probes. */
uint64_t fay_kernel_return_probes(const struct fay_kernel_session *session);
/* Before the next one: the kernel's own functions by name. */
int fay_kernel_find_own_names(struct fay_kernel_session *session, struct fay_error *error);
/* Why the point's returns cannot be traced (static text); NULL: they can, and its prototype is
 * known now. */
const char *fay_kernel_return_refusal(struct fay_kernel_session *session,
				      struct kernel_point *point);
/* The point is left out, and that is kept. Nonzero: out of memory. */
int fay_kernel_skip(struct fay_kernel_session *session, const char *name, const char *reason);
/* session.c: symbols and types of the running kernel. */
int fay_kernel_read(struct fay_kernel_session *session, struct fay_error *error);

/* allowed.c: if the device's opener is a user, what is allowed, functions included, becomes the
 * session's; their indices are its symbols' addresses. */
int fay_kernel_take_allowed(struct fay_kernel_session *session, struct fay_error *error);
/* As points.c judges a point for root. */
int fay_kernel_judge_allowed(struct fay_kernel_session *session, struct fay_error *error);

/* module.c: points to sets, trampolines, the loaded module; once more, for `called_back`,
 * instead of the one that was loaded. For a user, whose code fay.ko writes, the sets only. */
int fay_kernel_module_load(struct fay_kernel_session *session, struct fay_error *error);
/* Signs the object, and loads it instead of a module of this name that is not in use. `what` is its
 * name for messages. */
int fay_kernel_object_load(const struct fay_kernel_object *object, const struct fay_kernel_btf *btf,
			   const char *what, struct fay_error *error);

#endif
