/* SPDX-License-Identifier: MIT */
/* What the runtime's own files share. */
#ifndef FAY_DISPATCHER_RUNTIME_PRIVATE_H
#define FAY_DISPATCHER_RUNTIME_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "fay/image.h"
#include "fay/shm.h"
#include "runtime.h"

/* The blob is not relocated: everything is reached relative to rip, nothing through a global offset
 * table. */
#pragma GCC visibility push(hidden)

extern const struct fay_runtime_config fay_config;

enum {
	SYS_SCHED_YIELD = 24,
	SYS_NANOSLEEP = 35,
	SYS_GETPID = 39,
	SYS_PRCTL = 157,
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
/* stacks.c: whether these bytes lie on the stack of the thread that asks, at or above its stack
 * pointer, so that they can be read. */
bool fay_rt_on_own_stack(uint64_t address, uint64_t size);

/* By a system call; 0 where a sandbox grants none. */
uint64_t fay_rt_monotonic_ns(void);
/* The aggregator is to look now. */
void fay_rt_wake_consumer(void);

/* slots.c: the number of a slot for this thread, which is now this process's; slot_max if there is
 * none. */
uint32_t fay_rt_slot_take(void);
/* The process's number: no two that have events have the same. No system call. */
uint32_t fay_rt_process(void);

/* records.c: whether this process's memory has records in a slot's table. */
bool fay_rt_records_used(uint32_t index);
/* The slot's table is a thread's of this process. */
void fay_rt_records_init(struct fay_slot_header *slot, uint32_t index);

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
