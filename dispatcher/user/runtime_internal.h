/* SPDX-License-Identifier: MIT */
/* What the runtime's own files share. */
#ifndef FAY_DISPATCHER_RUNTIME_INTERNAL_H
#define FAY_DISPATCHER_RUNTIME_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "fay/image.h"
#include "fay/shm.h"
#include "runtime.h"

/* The blob is not relocated: everything is reached relative to rip, nothing through a global offset table. */
#pragma GCC visibility push(hidden)

extern const struct fay_runtime_config fay_config;

enum {
	SYS_SCHED_YIELD = 24,
	SYS_NANOSLEEP = 35,
	SYS_GETPID = 39,
	SYS_GETTID = 186,
	SYS_KILL = 62,
	SYS_FUTEX = 202,
	SYS_CLOCK_GETTIME = 228,
	SYS_NEWFSTATAT = 262,
	SYS_PROCESS_VM_READV = 310,
};

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
uint64_t fay_rt_acquire(uint64_t key);
int64_t fay_rt_try_read(void *to, uint64_t size, uint64_t address);

/* By a system call; 0 where a sandbox grants none. */
uint64_t fay_rt_monotonic_ns(void);
/* The aggregator is to look now. */
void fay_rt_wake_consumer(void);

/* slots.c: the number of a slot for this thread, which is now this process's; slot_max if there is none. */
uint32_t fay_rt_slot_take(void);
/* The process's number: no two that have events have the same. No system call. */
uint32_t fay_rt_process(void);

/* busy.c: whether the event whose trampoline has its frame at `here` seems to be in a signal handler. In doubt it is. */
bool fay_rt_in_handler(uint64_t here);

/* calls.c: whether this process's memory has anything in a slot's call stack. */
bool fay_rt_calls_used(uint32_t index);
/* A slot's call stack for the thread `key`, which has just taken the slot and claimed the entry. */
void fay_rt_calls_init(struct fay_slot_header *slot, uint32_t index, struct fay_thread_entry *entry, uint64_t key);

static inline struct fay_call *fay_first_call(struct fay_call_stack *stack)
{
	return (struct fay_call *)(stack + 1);
}
struct fay_call_stack *fay_rt_call_stack(uint32_t index);
/* The word that says where the taken places end: written by the stack's own thread only. */
uint64_t *fay_rt_calls_known_top(struct fay_call_stack *stack);
/* Where they do end. */
struct fay_call *fay_rt_calls_top(struct fay_call_stack *stack);
/* The newest call with this slot, its mark included; NULL if there is none. */
struct fay_call *fay_rt_find_call(struct fay_call_stack *stack, uint64_t slot);
void fay_rt_end_call(struct fay_call *call);
/* Around what copies calls to other places of the stack, or into it: by its own thread only. */
void fay_rt_move_begin(struct fay_call_stack *stack);
void fay_rt_move_end(struct fay_call_stack *stack);
/* Whether calls may have been moved since stack->moves was as in `before`: what was not found then may be found now. */
bool fay_rt_moved(const struct fay_call_stack *stack, uint64_t before);
#define FAY_MOVED_TRIES 8u /* looks at a stack whose calls are being moved meanwhile */
/* The return point at this address; NULL if there is none. */
const struct fay_return_point *fay_rt_return_point(uint64_t address);
/* Likewise; for one of another session that was there before, our own of the same function. */
const struct fay_return_point *fay_rt_point_of(uint64_t address);
/* Whether a word that was found in a slot, or as a call's address, is a return point, ours or another session's. */
bool fay_rt_is_return_point(uint64_t address);
static inline const struct fay_others *fay_others(void)
{
	return (const struct fay_others *)(fay_config.calls + (uint64_t)fay_config.slot_max * FAY_CALLS_STRIDE);
}
/* This thread's LOCAL; NULL if it has none. */
void *fay_rt_own_local(void);
#define FAY_CALLS_NEWER 64u /* calls above one that are searched for another at its slot */

/* calls_unwind.c: .eh_frame_hdr, CIE and FDE for the return points on this stack. */
#define FAY_UNWIND_FDE_AT 52u /* in fay_call_stack.unwind */
/* In a CFA within a chain of return points: the address, and how often the unwinder has come to the return points of each session there. */
#define FAY_UNWIND_ADDRESS ((UINT64_C(1) << 48) - 1)
#define FAY_UNWIND_VISITS 3u
#define FAY_UNWIND_VISITS_AT(step) (48 + 2 * ((step)-1))
#define FAY_UNWIND_LAST_VISIT 2u
void fay_rt_unwind_write(struct fay_call_stack *stack);
uint32_t fay_rt_personality(int version, uint32_t actions, uint64_t class, void *exception, const uint64_t *context);

static inline int64_t system_call(uint64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
			   uint64_t e, uint64_t f)
{
	int64_t result;
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline struct fay_shm_control *control_page(void)
{
	return (struct fay_shm_control *)fay_config.control;
}

static inline struct fay_slot_header *slot_at(uint32_t index)
{
	return (struct fay_slot_header *)(fay_config.slots + index * fay_config.slot_stride);
}

static inline uint32_t slots_used(void)
{
	uint32_t used = __atomic_load_n(&control_page()->slot_next, __ATOMIC_ACQUIRE);

	return used < fay_config.slot_max ? used : fay_config.slot_max;
}

static inline struct fay_slot_header *slot_of(void *local)
{
	return (struct fay_slot_header *)((char *)local - FAY_SLOT_HEADER);
}

#pragma GCC visibility pop

#endif
