/* SPDX-License-Identifier: MIT */
/*
 * Trampolines: the code between a patched place and the verified probes.
 *
 * fay_trampoline_emit() writes one for one patch point at a known address. It leaves a hole for the
 * displaced instructions, which the caller (the loader) puts there.
 */
#ifndef FAY_DISPATCHER_TRAMPOLINE_H
#define FAY_DISPATCHER_TRAMPOLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/loader.h"
#include "fay/verify.h"

/* Upper bounds, in bytes, of a trampoline without its hole, for sizing a zone before its address is
 * known. */
#define FAY_TRAMPOLINE_BASE_MAX 640u
/* more, if any probe of the point clobbers vectors or uses_mxcsr */
#define FAY_TRAMPOLINE_VECTORS_MAX 448u
#define FAY_TRAMPOLINE_RECORD_MAX 288u /* more where calls have records */
#define FAY_TRAMPOLINE_FRAME_MAX 320u  /* more where probes of returns read registers */
#define FAY_TRAMPOLINE_COST_MAX 384u   /* more where the cost is measured */
#define FAY_TRAMPOLINE_PROBE_MAX 192u
#define FAY_TRAMPOLINE_OPERAND_MAX 112u /* more for each of a marker's operands */

struct fay_trampoline_probe {
	const struct fay_probe_facts *facts;
	uint64_t code; /* address in the target */
	/* these bytes, the same code here up to its first ret, are copied into the trampoline;
	 * otherwise it is called */
	bool inlined;
	bool leaves; /* struct fay_inline */
	const uint8_t *bytes;
	size_t size;
};

/* Where in a function a trampoline is: what runs there, and what is done with the call's record. */
enum fay_role {
	FAY_ROLE_ENTRY,  /* or a place inside */
	FAY_ROLE_RETURN, /* in front of a ret */
	FAY_ROLE_JUMP,   /* in front of a jump to another function */
};

/* Where such a jump leads. The instruction `load`, load_size bytes, puts that into rax while all
 * other registers are the program's; none: it is `address`, 0 if not known. */
struct fay_jump_target {
	uint64_t address; /* of the word that is loaded, if rip_at */
	uint8_t load[16], load_size;
	/* bytes from the instruction's begin to its displacement to `address`, which is its end; 0:
	 * it has none */
	uint8_t rip_at;
};

struct fay_trampoline_spec {
	uint64_t address;  /* of the first byte, in the target */
	uint64_t runtime;  /* address of the runtime blob, within 2 GiB */
	uint64_t global;   /* address of GLOBAL */
	uint64_t function; /* fay_name_hash values of this point */
	uint64_t module;
	uint64_t place; /* event.address */
	/* runtime routine called first of all, with the registers as they are; 0 none */
	uint64_t hook;
	/* fs:offset holds the thread id (glibc's TCB, checked by the loader); -1: ask the kernel */
	int32_t tid_offset;
	bool selective; /* some threads are left out: an entry's LOCAL may be 0 */
	/* fs:0 holds the fs base (checked by the loader); else rdfsbase is used, which is slow */
	bool thread_pointer;
	uint8_t time_shift; /* runtime.h, fay_time_shift() */
	/* all probes of the image are inlined and reentrant (struct fay_inline): a thread need not
	 * be marked as busy */
	bool unguarded;
	/* the place may be reached with flags and red zone in use: everything is kept, as inside a
	 * function */
	bool careful;
	bool go;     /* event.arg[i] is the i-th register of Go's calling convention */
	bool shared; /* fay_shared_emit()'s: what is a point's own lies at its stub */
	enum fay_role role;
	bool records;     /* calls have records: return and exception probes run when these end */
	bool wide;        /* and records keep FAY_FIELDS_KEPT of those that read them */
	uint64_t watched; /* then: address of the function's struct fay_watched */
	uint64_t sweeps;  /* enum fay_sweep */
	struct fay_jump_target target; /* of FAY_ROLE_JUMP */
	/* bytes from LOCAL to the thread's struct fay_place_cost of this point; 0: its cost is not
	 * measured */
	int32_t cost;
	int32_t record_cost; /* likewise, with what is done for calls' records */
	bool marker; /* the probes are of kind FAY_PROBE_MARKER, and event.arg[i] is operands[i] */
	const struct fay_operand *operands;
	uint32_t operand_count;
	const struct fay_trampoline_probe *probes; /* run in this order */
	size_t probe_count;
};

/* Offsets from the first byte. */
struct fay_trampoline {
	size_t size;
	size_t entry;     /* where execution begins */
	size_t displaced; /* the hole: execution goes on here after the probes */
	size_t place;     /* of a stub that has names: the 8 bytes that are spec->place; 0: none */
};

/* Writes the trampoline to `code`. False if `capacity` is too small or something is out of a
 * rel32's reach. */
bool fay_trampoline_emit(const struct fay_trampoline_spec *spec, size_t displaced_room,
			 uint8_t *code, size_t capacity, struct fay_trampoline *trampoline);

/*
 * What struct fay_watched leads to: the probes of one kind, FAY_PROBE_RETURN or
 * FAY_PROBE_EXCEPTION, as a C function (runtime.h). *size is 0 if the point has none.
 */
bool fay_routine_emit(const struct fay_trampoline_spec *spec, uint32_t kind, uint8_t *code,
		      size_t capacity, size_t *size);

/*
 * The shared strategy: bodies for all points with the same probes, and for each of their places a
 * stub of some bytes, which calls the body and then runs what is in its hole (trampoline_shared.c).
 * Neither hooks nor offset probes.
 */
#define FAY_SHARED_STUB_MAX 48u
#define FAY_SHARED_BODIES 4u /* an upper bound for the trampolines that they are together */
struct fay_shared {
	/* addresses of the bodies; 0: there is none, and a place of that role has a trampoline of
	 * its own, or none */
	uint64_t entry, leave;
	uint64_t returned, left; /* likewise of routines */
	bool names;              /* stubs carry function, module, address and `watched` */
	size_t size;
};
bool fay_shared_possible(const struct fay_trampoline_spec *spec);
/* Writes the bodies. spec->role, function, module, place and watched are not looked at. */
bool fay_shared_emit(const struct fay_trampoline_spec *spec, uint8_t *code, size_t capacity,
		     struct fay_shared *shared);
/* Writes one place's stub, if its role has a body. The hole's bytes go behind its end. */
bool fay_shared_stub(const struct fay_shared *shared, const struct fay_trampoline_spec *spec,
		     uint8_t *code, size_t capacity, struct fay_trampoline *trampoline);
/* Writes the stub of a routine for a point whose entry's stub is at `stub`. */
bool fay_shared_routine(uint64_t routine, uint64_t stub, uint64_t address, uint8_t *code,
			size_t capacity, size_t *size);

/* Whether these probes are about the end of calls. */
bool fay_trampoline_watches(const struct fay_probe_facts *facts);

/* NULL if these probes can be dispatched, else why not. */
const char *fay_trampoline_refusal(const struct fay_probe_facts *facts);

/*
 * Which verified probes are copied into the trampoline instead of being called: short ones up to
 * their first ret, that use neither stack nor rip-relative operands nor helpers. The copy is the
 * verified bytes themselves without that ret: jumps within it are relative, and what was verified
 * as returning falls out of the copy's end.
 *
 * Or jumps all leave the copy, on a condition, to what is seldom run. Then the trampoline has the
 * same condition, and calls the probe's own code at the jump's target. The state there is that of
 * the proof: the same registers and flags, and a return address at the stack's top, under which
 * nothing was pushed yet. A ret as target is the copy's end.
 */
#define FAY_INLINE_EXITS 4u
struct fay_inline {
	bool possible;
	size_t size; /* bytes before the ret: at most 95 */
	bool leaves; /* jumps leave the copy */
	/*
	 * Memory other than the event is touched once at most, or only by instructions that add
	 * to it and keep nothing of it: then the same probe run by a signal handler between any two
	 * of its instructions does no harm. That holds only if all probes of the image are so:
	 * another one may keep a value of the state in a register.
	 */
	bool reentrant;
};

/* `code`: the probe's first instruction; `available` bytes up to the end of the image's code. */
struct fay_inline fay_inline_judge(const uint8_t *code, size_t available);

/* Mask of enum fay_cpu_feature that this CPU has and the kernel has enabled. */
uint32_t fay_cpu_features(void);

#endif
