/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The kernel's trampolines: written by the loader into a session's module, and once more by fay.ko,
 * which runs no other bytes. trampoline.c is compiled into both and shows the code.
 */
#ifndef FAY_KERNEL_TRAMPOLINE_H
#define FAY_KERNEL_TRAMPOLINE_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#endif

#include "abi.h"
#include "fay/event.h"
#include "fay/image.h"

/* One CPU's state of a session in one context. Private to the kernel; trampolines address it from
 * r11. */
struct fay_kernel_context {
	uint32_t busy;          /* a probe runs */
	uint32_t slot;          /* number of the slot */
	uint64_t local, global; /* addresses: a probe's second and third argument */
	uint64_t lost;          /* address of the slot's lost_reentrant */
	uint64_t session;
	/* of the spill ring; the slot's own field is only what the reader is told */
	uint64_t head;
	uint64_t pad[2];
	struct fay_event event;
	uint64_t tail[3];
};
_Static_assert(sizeof(struct fay_kernel_context) == 384, "trampolines multiply by it");

/* A call's rel32 to fay.ko, which the kernel's module loader fills in. */
struct fay_kernel_relocation {
	uint32_t offset; /* in the trampoline */
	uint64_t target;
};
#define FAY_KERNEL_RELOCATIONS_MAX 4u

struct fay_kernel_trampoline {
	const struct fay_kernel_places *places;
	const struct fay_kernel_probe *probes;
	uint64_t set;                 /* mask of probes */
	uint32_t stack_words, result; /* as in struct fay_kernel_set */
	bool callback;    /* a function for ftrace_ops: func(ip, parent, ops, ftrace_regs) */
	uint64_t layout;  /* address of the layout */
	uint64_t address; /* of the trampoline itself */
	/* Not NULL: it is not known yet where the code will lie, only `address - layout`;
	 * FAY_KERNEL_RELOCATIONS_MAX calls at most are left zero and listed. */
	struct fay_kernel_relocation *relocations;
	uint32_t relocation_count;
};

/* Fields that a trampoline fills by itself; the others fill() does. */
#define FAY_KERNEL_FIELDS_INLINE                                                                   \
	(FAY_FIELDS_ARGUMENTS | FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2 | FAY_FIELD_STACK_POINTER |   \
	 FAY_FIELD_ADDRESS)
/* What each kind of probe can see in the kernel: as in a process, less what lies in vector
 * registers. */
#define FAY_KERNEL_FIELDS_ENTRY (FAY_FIELDS_PLACE | FAY_FIELDS_ARGUMENTS)
#define FAY_KERNEL_FIELDS_RETURN                                                                   \
	(FAY_FIELDS_PLACE | FAY_FIELD_DURATION | FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2)

/* Writes it to `code`. Returns its size; 0: more than `capacity`, or a place that it cannot
 * reach. */
uint32_t fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code,
				     uint32_t capacity);

#endif
