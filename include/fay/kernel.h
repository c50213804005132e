/* SPDX-License-Identifier: MIT */
/*
 * Accepted probes in the running kernel, through fay.ko (docs/kernel.md). As fay_session_attach()
 * for processes: it takes a verdict, not bytes.
 */
#ifndef FAY_KERNEL_H
#define FAY_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "fay/loader.h"
#include "fay/shm.h"
#include "fay/verify.h"

#define FAY_KERNEL_MODULE_NAME "kernel" /* in patterns: kernel!vfs_read */

/* Whether all the image's patterns name kernel functions. */
bool fay_kernel_is_target(const struct fay_verdict *verdict);

/* Whether fay.ko is loaded, or a file of that name, for the running kernel, is where it is looked
 * for. */
bool fay_kernel_present(void);
/* Why the running kernel takes no modules of ours, as far as it says; NULL: it does not say so.
 * Valid until the next call. */
const char *fay_kernel_modules_refused(void);
/* Loads fay.ko if it is not there, from `ko` or, if that is NULL, from where it is looked for;
 * `path` is where. FAY_E_REFUSED says what is missing. */
int fay_kernel_load(const char *ko, char path[PATH_MAX], struct fay_error *error);

/*
 * A policy for users: those who are not root, in a group, may trace some functions by probes that
 * are held to limits (docs/kernel.md). fay.ko keeps it until it is unloaded, and holds users to it.
 */
struct fay_kernel_users {
	struct fay_policy images; /* its patterns name the functions */
	uint64_t max_state;       /* bytes of a session's state, all CPUs */
	uint32_t max_points;      /* functions of a session */
	uint32_t max_sessions;    /* of a user */
	uint32_t group;
	bool user; /* of fay_kernel_users_ask(): the caller is held to it */
};
/* Reads a file that only root can have written. Errors are as fay_policy_read()'s. */
int fay_kernel_users_read(const char *path, struct fay_kernel_users *users,
			  struct fay_error *error);
/* As root: loads fay.ko if need be, gives it the policy, and its device to the group. */
int fay_kernel_users_allow(const struct fay_kernel_users *users, size_t *functions,
			   struct fay_error *error);
/* As root: ends the policy. What users trace goes on until they end it. */
int fay_kernel_users_deny(struct fay_error *error);
/* False: there is no policy, or the caller may not open the device. */
bool fay_kernel_users_ask(struct fay_kernel_users *users);

struct fay_kernel_symbol {
	uint64_t address;
	char *name;
	bool in_module; /* of a loadable module */
};
struct fay_kernel_symbols {
	struct fay_kernel_symbol *items; /* by address */
	size_t count;
};
/* All functions. Refused if addresses are hidden from the caller. */
int fay_kernel_symbols_read(struct fay_kernel_symbols *symbols, struct fay_error *error);
/* The function that begins there or before; NULL: none is near. */
const struct fay_kernel_symbol *fay_kernel_symbols_find(const struct fay_kernel_symbols *symbols,
							uint64_t address);
void fay_kernel_symbols_deinit(struct fay_kernel_symbols *symbols);

struct fay_kernel_session;

/* An image's file, and a PKCS #7 signature of it (DER, detached; size 0: none), for a fay.ko that
 * asks for one. */
struct fay_kernel_image {
	const void *bytes;
	size_t size;
	const void *signature;
	size_t signature_size;
};

/*
 * Loads fay.ko if it is not there (from `fay_ko`, or, if that is NULL, from where it is installed
 * or was built), resolves the patterns by /proc/kallsyms, and attaches. `image`
 * is what the verdict is of, with a certificate that confines speculation (fay_verify_certify()
 * under fay_policy_restrict_kernel()): fay.ko checks it itself and believes no verdict. The caller
 * may release it. FAY_E_REFUSED says what this kernel or the caller's rights lack, or why fay.ko
 * refuses the image.
 */
int fay_kernel_session_attach(const struct fay_verdict *verdict,
			      const struct fay_kernel_image *image, const char *fay_ko,
			      struct fay_kernel_session **session, struct fay_error *error);
/*
 * Nothing is patched any more when this returns. FAY_E_LIMIT: calls are under way whose return is
 * awaited, so the session's module stays; fay.ko lets it go when they have returned.
 */
int fay_kernel_session_detach(struct fay_kernel_session *session, struct fay_error *error);
/* Detaches if still attached, unmaps, unloads the session's module. NULL is fine. */
void fay_kernel_session_destroy(struct fay_kernel_session *session);
/* As fay_session_run() and fay_session_tick(), in the kernel, in the caller's context. */
void fay_kernel_session_run(struct fay_kernel_session *session, uint32_t kind);
void fay_kernel_session_tick(struct fay_kernel_session *session);

struct fay_shm_control *fay_kernel_session_shm(struct fay_kernel_session *session, size_t *size);
size_t fay_kernel_session_point_count(const struct fay_kernel_session *session);
size_t fay_kernel_session_skipped_count(const struct fay_kernel_session *session);
const struct fay_skipped_point *fay_kernel_session_skipped(const struct fay_kernel_session *session,
							   size_t index);
/* Why ftrace calls the entry probes back, which costs more, instead of the functions calling them
 * directly; NULL: only where a probe has more than some thousand functions. */
const char *fay_kernel_session_called_back(const struct fay_kernel_session *session);
const char *fay_kernel_session_function_name(const struct fay_kernel_session *session,
					     uint64_t hash);

#endif
