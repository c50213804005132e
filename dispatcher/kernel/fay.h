/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The parts of fay.ko: main.c (device), session.c (life, state), accept.c (the checker's word),
 * signature.c (whose images), attach.c (checks of code), points.c (functions, ftrace), helpers.c
 * (what probes call), users.c (what who is not root may do), area.c (where their code goes),
 * trampoline.c.
 */
#ifndef FAY_KO_H
#define FAY_KO_H

#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/percpu.h>

#include "abi.h"
#include "fay/facts.h"
#include "fay/shm.h"
#include "trampoline.h"

/* A set of points, as attached. */
struct fay_set {
	struct fay_kernel_set given;
	u32 first_point;
	unsigned long trampoline; /* address */
	/* what ftrace was given, or was to be; freed when nobody can be looking at it any more */
	struct ftrace_ops *ops;
	bool registered; /* ftrace has it, or has parts of it */
};

/* What the checker accepted. */
struct fay_code {
	u8 *layout; /* as it must lie in the session's module, helper slots filled */
	u32 layout_size;
	u32 local_size, global_size;
	u32 probe_count, state_count;
	struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX];
	struct fay_image_state *states;
};

/* A policy for callers without CAP_SYS_ADMIN: as root gave it, checked, and never changed. */
struct fay_users {
	refcount_t references;
	struct fay_kernel_policy given; /* its pointers have no meaning */
	struct fay_policy images;
	kgid_t group;
	struct fay_kernel_function *functions;
	char *names;
	u64 *hashes; /* of the names */
};

struct fay_session {
	struct fay_code code;
	struct fay_users *users; /* what it is held to; NULL: its file was opened by root */
	kuid_t owner;
	u32 spill_size;
	struct fay_kernel_places places;
	unsigned int number;
	void *shm; /* vmalloc_user */
	size_t shm_size, slots_offset, slot_stride, spill_offset;
	unsigned int slot_count;
	struct fay_kernel_context *contexts; /* slot_count */
	struct module *module;               /* that has the code; NULL until it is loaded */
	u8 *text;                            /* the session's code in it */
	u32 text_size;
	bool pinned; /* a reference to it is held */
	struct fay_set *sets;
	unsigned int set_count;
	bool checked; /* `sets` and the module's code are what they must be */
	bool attached;
	/* ftrace did not take its calls back: all stays as it is, until the next boot */
	bool stuck;
	/* Points by address: open addressing from fay_point_hash() on; key 0 is empty. Looked up by
	 * fill(), written before the first point is registered. */
	struct fay_kernel_point *table;
	unsigned int table_mask;
};

static inline u32 fay_point_hash(u64 address)
{
	return (u32)(address * 0x9e3779b97f4a7c15ull >> 40);
}

/* What trampolines reach by %gs. One for each session number. */
struct fay_cpu_session {
	struct fay_kernel_context *contexts; /* of this CPU */
	u64 begun, ended;
};
DECLARE_PER_CPU(struct fay_cpu_session[FAY_KERNEL_SESSIONS_MAX], fay_cpu_sessions);

/*
 * For fay_sessions and each session's `module` and `checked`, which modules that come and go
 * change, too. Held for short: not while a caller's memory is read, nor while grace periods pass.
 * All else of a session is its file's: one call at a time.
 */
extern struct mutex fay_mutex;
extern struct fay_session *fay_sessions[FAY_KERNEL_SESSIONS_MAX]; /* helpers read it */

/* session.c. Errors are negative errno. */
int fay_session_create(struct fay_kernel_create *create, struct fay_users *users, kuid_t owner,
		       struct fay_session **result);
/* As fay_session_detach(), on whose errors the session stays. */
int fay_session_destroy(struct fay_session *session);
void fay_places_fill(unsigned int number, struct fay_kernel_places *places);

/* accept.c: checks the image by `policy` and fills in `code`, which is to be released in any case.
 * -EKEYREJECTED: refused, create->rule says why. */
int fay_code_accept(struct fay_kernel_create *create, const struct fay_policy *policy,
		    const struct fay_kernel_places *places, struct fay_code *code);
void fay_code_release(struct fay_code *code);
/* signature.c: whether the image, as it was copied in, may run as far as signatures are asked for.
 * Errors: as struct fay_kernel_create has them. */
int fay_signature_check(const struct fay_kernel_create *create, const void *image);
int fay_signature_init(void);
void fay_signature_finish(void);
/* What every image for the kernel is held to, at most. */
extern const struct fay_policy fay_kernel_images;

/* attach.c */
int fay_session_attach(struct fay_session *session, const struct fay_kernel_attach *attach);
/* -EAGAIN: so many calls are under way in its trampolines. -ENOTRECOVERABLE: it is stuck. */
int fay_session_detach(struct fay_session *session, u64 *calls);
int fay_session_run(struct fay_session *session, u32 set);
int fay_module_event(struct notifier_block *block, unsigned long action, void *data);
/* What the set's trampoline must be, `offset` behind the session's text. */
struct fay_kernel_trampoline fay_trampoline_of(const struct fay_session *session,
					       const struct fay_kernel_set *set, u32 offset);

/* users.c */
int fay_users_set(const struct fay_kernel_policy *given);
/* The policy that holds now, a reference for the caller; NULL: there is none. */
struct fay_users *fay_users_get(void);
struct fay_users *fay_users_share(struct fay_users *users);
void fay_users_put(struct fay_users *users); /* NULL is fine */
/* Whether it still holds. Under fay_mutex. */
bool fay_users_hold(const struct fay_users *users);
int fay_users_answer(const struct fay_users *users, bool user, void __user *argument);
/* Indices to addresses, if the policy allows them all, with the probes that their sets have. */
int fay_users_points(const struct fay_session *session, const struct fay_kernel_set *sets,
		     u32 set_count, struct fay_kernel_point *points, u32 point_count);

/* area.c. Under fay_mutex. */
int fay_areas_event(struct module *module, unsigned long action);
/* Where the session's code belongs; false: there are no areas. */
bool fay_area_take(struct fay_session *session);
/* Writes the session's code there; its sets are valid. Nobody executes it. -ENOSPC: it is more. */
int fay_area_write(struct fay_session *session);

/* points.c */
int fay_check_points(const struct fay_kernel_check *check);
/* -EINVAL: an address is there twice, or is none of a function of the kernel's own. */
int fay_make_table(struct fay_session *session, const struct fay_kernel_point *points, u32 count);
/* -EDQUOT: too many functions are called directly; -EBUSY: another tracer has one of these called
 * directly. */
int fay_register_set(struct fay_set *set, const struct fay_kernel_point *points);
/* False: some calls are still made, for good. */
bool fay_unregister_sets(struct fay_session *session);
/* Nothing is registered, and since then a grace period of RCU tasks (rude) has passed. */
void fay_free_sets(struct fay_session *session);

/* A slower time stamp counter than any: less than 2^63 of its cycles are less than 2^64 ns, which
 * is what the kernel's division can give. */
#define FAY_TSC_KHZ_MIN 500000u

/* helpers.c: called by probes and trampolines, in every context. */
u64 fay_flush(void *local, u64 state);
u64 fay_emit(void *local, u64 state, const void *row);
s64 fay_try_read(void *to, u64 size, u64 address);
void fay_fill(struct fay_kernel_context *context, u32 fields);
void fay_resched(void);
/* When no session is left: no page of read_user()'s is on its way back. */
void fay_pages_finish(void);

#endif
