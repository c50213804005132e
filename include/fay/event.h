/* SPDX-License-Identifier: MIT */
/*
 * The event that a probe sees, and the probe calling convention.
 *
 * A probe is a System V AMD64 function
 *
 *     void probe(const struct fay_event *event,  // rdi: region EVENT, read only, sizeof(struct
 *						  fay_event) bytes void *local, // rsi: region
 *						  LOCAL, read/write, header.local_size bytes, this
 *						  thread's void *global); // rdx: region GLOBAL,
 *						  read/write, header.global_size bytes, shared
 *
 * All other registers hold the traced program's values and count as uninitialised; callee-saved
 * ones must be restored. The dispatcher fills only the fields that the verifier found to be read
 * (fay_probe_facts.event_fields) and saves only the registers that the verifier found to be
 * clobbered. The direction flag is clear. rsp is 8 modulo 16 on entry, as after any call.
 */
#ifndef FAY_EVENT_H
#define FAY_EVENT_H

#include <stddef.h>
#include <stdint.h>

#include "fay/image/parts.h"

#define FAY_COMM_SIZE 16

struct fay_event {
	/* 0: integer arguments rdi rsi rdx rcx r8 r9, as the registers were when the call began; a
	 * marker's operands */
	uint64_t arg[6];
	uint64_t retval;          /*  48: rax at return */
	uint64_t time;            /*  56: nanoseconds since the Unix epoch */
	uint64_t cycles;          /*  64: time stamp counter */
	uint64_t function;        /*  72: fay_name_hash() of the traced function's name */
	uint64_t module;          /*  80: fay_name_hash() of the module's name */
	uint32_t pid;             /*  88: process id (tgid) */
	uint32_t tid;             /*  92: thread id */
	uint32_t cpu;             /*  96: processor number */
	uint32_t reserved;        /* 100: always 0 */
	char comm[FAY_COMM_SIZE]; /* 104: thread name, NUL padded */
	/* 120: rsp at the function's first instruction, or at the traced one */
	uint64_t stack_pointer;
	uint64_t duration; /* 128: nanoseconds since the call began (return, exception) */
	/* 136: of the function; of the traced instruction (offset, marker) */
	uint64_t address;
	union {                         /* 144 */
		uint64_t retval2;       /* rdx at return: the upper half of a 128-bit value */
		uint64_t frame_pointer; /* rbp when the call began (entry) */
	};
	/* 152: the low 8 bytes of xmm0 at return: a double, or a float in the lower 4 */
	uint64_t retval_float;
	/* 160: general registers in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15;
	 * at return rsp, where the return address is, and rbp, which is the caller's: the others
	 * are 0, or what they are */
	uint64_t reg[16];
	union {                  /* 288 */
		uint64_t flags;  /* rflags (offset, marker) */
		uint64_t caller; /* where the call returns to (entry, return, exception) */
	};
};
FAY_STATIC_ASSERT(sizeof(struct fay_event) == FAY_EVENT_SIZE,
		  "the event's layout is part of the image format");
FAY_STATIC_ASSERT(offsetof(struct fay_event, duration) == 128 &&
			  offsetof(struct fay_event, reg) == 160,
		  "event layout");
FAY_STATIC_ASSERT(offsetof(struct fay_event, pid) == 88 && offsetof(struct fay_event, comm) == 104,
		  "event layout");

/* One bit a field: fay_probe_facts.event_fields. */
enum fay_event_field {
	FAY_FIELD_ARG0 = 1u << 0, /* arg[i] is FAY_FIELD_ARG0 << i, i < 6 */
	FAY_FIELD_RETVAL = 1u << 6,
	FAY_FIELD_TIME = 1u << 7,
	FAY_FIELD_CYCLES = 1u << 8,
	FAY_FIELD_FUNCTION = 1u << 9,
	FAY_FIELD_MODULE = 1u << 10,
	FAY_FIELD_PID = 1u << 11,
	FAY_FIELD_TID = 1u << 12,
	FAY_FIELD_CPU = 1u << 13,
	FAY_FIELD_RESERVED = 1u << 14,
	FAY_FIELD_COMM = 1u << 15,
	FAY_FIELD_STACK_POINTER = 1u << 16,
	FAY_FIELD_DURATION = 1u << 17,
	FAY_FIELD_ADDRESS = 1u << 18,
	FAY_FIELD_RETVAL2 = 1u << 19,
	FAY_FIELD_FRAME_POINTER = FAY_FIELD_RETVAL2, /* the same place of the event */
	FAY_FIELD_RETVAL_FLOAT = 1u << 20,
	FAY_FIELD_REGISTERS = 1u << 21, /* any of reg[] */
	FAY_FIELD_FLAGS = 1u << 22,
	FAY_FIELD_CALLER = FAY_FIELD_FLAGS, /* the same place of the event */
};

/* What each kind of probe can see; the dispatcher refuses a probe that reads more than its kind
 * has. */
#define FAY_FIELDS_ARGUMENTS (FAY_FIELD_ARG0 * 63u)
/* of a call's beginning, known when it ends */
#define FAY_FIELDS_KEPT (FAY_FIELDS_ARGUMENTS | FAY_FIELD_CALLER)
#define FAY_FIELDS_ALWAYS                                                                          \
	(FAY_FIELD_TIME | FAY_FIELD_CYCLES | FAY_FIELD_PID | FAY_FIELD_TID | FAY_FIELD_CPU |       \
	 FAY_FIELD_RESERVED | FAY_FIELD_COMM)
#define FAY_FIELDS_PLACE                                                                           \
	(FAY_FIELDS_ALWAYS | FAY_FIELD_FUNCTION | FAY_FIELD_MODULE | FAY_FIELD_STACK_POINTER |     \
	 FAY_FIELD_ADDRESS)
#define FAY_FIELDS_CALL (FAY_FIELDS_PLACE | FAY_FIELDS_KEPT)
#define FAY_FIELDS_ENTRY (FAY_FIELDS_CALL | FAY_FIELD_FRAME_POINTER)
#define FAY_FIELDS_EXCEPTION (FAY_FIELDS_CALL | FAY_FIELD_DURATION)
#define FAY_FIELDS_RETURN                                                                          \
	(FAY_FIELDS_EXCEPTION | FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2 | FAY_FIELD_RETVAL_FLOAT |    \
	 FAY_FIELD_REGISTERS)
/* flags lie where the caller does */
#define FAY_FIELDS_OFFSET (FAY_FIELDS_CALL | FAY_FIELD_REGISTERS)
/* arg: the marker's operands, as its note says where they are */
#define FAY_FIELDS_MARKER FAY_FIELDS_OFFSET

/* Bytes of the event up to the end of the last of the fields. */
static inline uint32_t fay_event_bytes(uint32_t fields)
{
	if (fields & FAY_FIELD_FLAGS)
		return sizeof(struct fay_event);
	if (fields & FAY_FIELD_REGISTERS)
		return offsetof(struct fay_event, flags);
	for (uint32_t i = 5; i-- > 0;)
		if (fields & FAY_FIELD_STACK_POINTER << i)
			return (uint32_t)offsetof(struct fay_event, duration) + 8 * i;
	return fields ? (uint32_t)offsetof(struct fay_event, stack_pointer) : 0;
}

/* FNV-1a, 64 bits, of a NUL-terminated name: the value of event.function and event.module, the same
 * on every machine. */
static inline uint64_t fay_name_hash(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return hash;
}

#endif
