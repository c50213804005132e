/* SPDX-License-Identifier: MIT */
/*
 * Waiting for the loader where the program loads and unloads modules: first thing in the function
 * that the dynamic linker calls so that debuggers can set a breakpoint there (struct r_debug,
 * r_brk; link.h). A new module is mapped then, and none of its code has run; one that is unloaded
 * is gone from memory. docs/decisions/0015.
 *
 * The dynamic linker holds its lock, so threads come here one at a time; but a signal handler that
 * loads a module may interrupt a thread that waits. Nobody waits in a forked child, nor for a
 * loader that did not come in time the last time.
 */
#include "runtime_private.h"

#define NAP_NS 10000000u /* between two looks */
/* so much of the time to wait a look takes at most: a program that stood still longer did not
 * wait */
#define LOOK_NS 20000000u
#define SEEN_NS 3000000000u    /* for the loader to see that it is asked */
#define ANSWER_NS 10000000000u /* for its answer, from the beginning */
#define LOOKS_MAX 4000u        /* also where signals or a sandbox end each nap at once */
#define NAMESPACES_MAX 64u
#define FUTEX_WAIT 0u
#define ESRCH 3

/* link.h's r_debug, and what glibc 2.35 has behind it. */
struct rendezvous {
	int32_t version;
	uint64_t modules, function;
	uint32_t state; /* RT_CONSISTENT (0), RT_ADD, RT_DELETE */
	uint64_t base;
	struct rendezvous *next; /* of the next namespace (dlmopen), from version 2 on */
};

void fay_rt_modules(void);

/* Is what is mapped as it will stay, in all namespaces? The function is called at the beginning of
 * a change, too. */
static bool is_consistent(void)
{
	const volatile struct rendezvous *rendezvous =
		(const volatile struct rendezvous *)fay_config.rendezvous;
	bool more = rendezvous && rendezvous->version >= 2;

	for (unsigned i = 0; rendezvous && i < NAMESPACES_MAX; i++) {
		if (rendezvous->state)
			return false;
		rendezvous = more ? rendezvous->next : NULL;
	}
	return true;
}

static bool has_come(const uint32_t *word, uint32_t number)
{
	return (int32_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - number) >= 0;
}

/* Known only where the process can see it, and once it was waited for by its parent. */
static bool loader_is_gone(void)
{
	return fay_config.owner && system_call(SYS_KILL, fay_config.owner, 0, 0, 0, 0, 0) == -ESRCH;
}

/* False: the loader did not answer in time. */
static bool wait_for_answer(struct fay_shm_control *control, uint32_t number)
{
	int64_t nap[2] = { 0, NAP_NS };
	uint64_t waited = 0, looked = 0;

	for (unsigned looks = 0; looks < LOOKS_MAX; looks++) {
		uint32_t answered = __atomic_load_n(&control->modules_answered, __ATOMIC_ACQUIRE);
		uint64_t now, look;

		if (has_come(&control->modules_answered, number) ||
		    !__atomic_load_n(&control->modules_follow, __ATOMIC_ACQUIRE))
			return true;
		now = fay_rt_monotonic_ns();
		look = now - looked;
		waited += looks == 0 ? 0 : look < LOOK_NS ? look : LOOK_NS;
		looked = now;
		if (waited > (has_come(&control->modules_seen, number) ? ANSWER_NS : SEEN_NS) ||
		    loader_is_gone())
			break;
		system_call(SYS_FUTEX, (uint64_t)&control->modules_answered, FUTEX_WAIT, answered,
			    (uint64_t)nap, 0, 0);
	}
	return false;
}

void fay_rt_modules(void)
{
	struct fay_shm_control *control = control_page();
	uint32_t number;

	if (*(const volatile uint32_t *)(fay_config.thread_table + FAY_PROCESS_AT) !=
		    FAY_PROCESS_TRACED ||
	    !__atomic_load_n(&control->modules_follow, __ATOMIC_ACQUIRE) || !is_consistent())
		return;
	number = __atomic_add_fetch(&control->modules_asked, 1, __ATOMIC_ACQ_REL);
	fay_rt_wake_consumer();
	if (wait_for_answer(control, number))
		return;
	__atomic_store_n(&control->modules_follow, 0, __ATOMIC_RELEASE);
	__atomic_fetch_add(&control->modules_late, 1, __ATOMIC_RELAXED);
}
