/* SPDX-License-Identifier: MIT */
/* What the trampolines' parts (entry, exit, routine, offset) have in common, private to the
 * trampoline generator. */
#ifndef FAY_DISPATCHER_TRAMPOLINE_PRIVATE_H
#define FAY_DISPATCHER_TRAMPOLINE_PRIVATE_H

#include "dispatcher/runtime/runtime.h"
#include "emit_private.h"
#include "fay/event.h"
#include "fay/shm.h"
#include "trampoline.h"
#include "vectors_private.h"

#define FAY_BIT(reg) (1u << (reg))

/* Places in the slot, as offsets from LOCAL, which is in rsi. */
enum {
	FAY_AT_BUSY = (int)offsetof(struct fay_slot_header, busy) - (int)FAY_SLOT_HEADER,
	FAY_AT_PID = (int)offsetof(struct fay_slot_header, pid) - (int)FAY_SLOT_HEADER,
	FAY_AT_LOST_REENTRANT =
		(int)offsetof(struct fay_slot_header, lost_reentrant) - (int)FAY_SLOT_HEADER,
	FAY_AT_RECORDS = (int)offsetof(struct fay_slot_header, records) - (int)FAY_SLOT_HEADER,
	FAY_AT_SWEPT_FROM =
		(int)offsetof(struct fay_slot_header, swept_from) - (int)FAY_SLOT_HEADER,
	FAY_AT_NAMED = (int)offsetof(struct fay_slot_header, named) - (int)FAY_SLOT_HEADER,
	FAY_AT_NAME = (int)offsetof(struct fay_slot_header, name) - (int)FAY_SLOT_HEADER,
};

/* What one part needs, gathered over its probes. */
struct fay_part {
	const struct fay_trampoline_spec *spec;
	uint32_t kinds;  /* mask of the kinds of probes that run here, 1 << enum fay_probe_kind */
	uint32_t saved;  /* registers pushed */
	uint32_t fields; /* of the event */
	unsigned temporary;
	bool spill_local; /* some probe clobbers rsi */
	int32_t local_at; /* rsp offset where LOCAL is kept, if spilled */
	struct fay_vectors vectors;
	int32_t vectors_at; /* rsp offset where they are kept */
	int32_t target_at;  /* rsp offset of where a jump leads */
	/* rsp offset of the times at which the event and, behind that, what is done for the call's
	 * record, began, 4 bytes each; 0 there: it is not timed */
	int32_t cost_at;
	int32_t area;   /* bytes between the pushes and rsp */
	int32_t pushed; /* by a stub: bytes between the part's begin and the program's stack */
	int32_t frame;  /* bytes from rsp at the probes' calls to rsp where the program left it */
};

/* Registers in `saved` are kept in any case. At the part's begin rsp is 8 modulo 16. */
struct fay_part fay_part_plan(const struct fay_trampoline_spec *spec, uint32_t kinds,
			      uint32_t saved);
bool fay_part_empty(const struct fay_part *part);
/* rsi = LOCAL; or a jump to what fay_part_slow() writes. */
struct fay_lookup {
	size_t slow;
	/* where only some threads are traced: the entry is another thread's; LOCAL is 0 */
	size_t other, left_out;
};
struct fay_lookup fay_part_lookup(struct fay_emitter *e, const struct fay_part *part);
/* Out of line: asks the runtime and goes back to `have`; falls through if there is no slot for this
 * thread. */
void fay_part_slow(struct fay_emitter *e, const struct fay_part *part,
		   const struct fay_lookup *lookup, size_t have);
/*
 * trampoline_cost.c: around what is measured, where rsi is LOCAL and rax and rdx are free. `place`:
 * from LOCAL to the thread's struct fay_place_cost; 0: nothing is measured. `at`: from rsp, 4 bytes
 * for the time at which it began. What is out of line comes last.
 */
struct fay_cost {
	int32_t place, at;
	/* places of a jump to what is out of line, and of where that goes on */
	size_t timed, begun;
	size_t ends, ended;
};
void fay_cost_begin(struct fay_emitter *e, int32_t place, int32_t at, struct fay_cost *cost);
void fay_cost_end(struct fay_emitter *e, struct fay_cost *cost);
void fay_cost_aside(struct fay_emitter *e, const struct fay_cost *cost);

/* inline.c: jumps out of copied probes into the probes' own code. Without room for those of one
 * more, that one is called. */
#define FAY_EXITS_MAX (4 * FAY_INLINE_EXITS)
struct fay_exits {
	struct fay_exit {
		size_t jump, back; /* its rel32; where the trampoline goes on */
		uint64_t target;
	} exits[FAY_EXITS_MAX];
	unsigned count;
};
/* Copies a probe. */
void fay_inline_emit(struct fay_emitter *e, const struct fay_trampoline_probe *probe,
		     struct fay_exits *exits);
/* Out of line: what was left for. */
void fay_inline_aside(struct fay_emitter *e, const struct fay_exits *exits);

/* The probes of this part in turn, with their fields, while the thread is marked as busy if they
 * are guarded; rsi = LOCAL before and after. */
struct fay_run {
	struct fay_cost cost;
	struct fay_exits exits;
	/* places of the mark, and of the jump that is taken if there is one already; 0: not
	 * guarded */
	size_t enter, reentrant;
};
void fay_part_run(struct fay_emitter *e, const struct fay_part *part, struct fay_run *run,
		  bool guarded);
/* What of it is out of line. A probe that marked the thread and was left for good is passed over;
 * else a lost event is counted, and the part goes on at `restore`. */
void fay_part_run_aside(struct fay_emitter *e, const struct fay_part *part,
			const struct fay_run *run, size_t restore);

/* event_fields.c: where a function gets argument `index`, below 6. */
unsigned fay_argument_register(const struct fay_trampoline_spec *spec, unsigned index);
/* Fields that are in registers which later steps change; then all others. rsi =
 * LOCAL. */
void fay_fields_early(struct fay_emitter *e, const struct fay_part *part);
void fay_fields_late(struct fay_emitter *e, const struct fay_part *part);
/* event.reg at the end of a call: rsp and rbp, from the registers named, of which the former is
 * lost. */
void fay_fields_frame(struct fay_emitter *e, unsigned rsp, unsigned rbp);
/* rax = time stamp counter; clobbers rdx */
void fay_fields_rdtsc(struct fay_emitter *e);
/* event.duration, from the counter at the call's begin, at(%base); event.cycles too, if that or the
 * time is wanted. rax and rdx are changed. */
void fay_fields_duration(struct fay_emitter *e, const struct fay_part *part, unsigned base,
			 int32_t at);

/* function, module and address of a point with a stub; `stub` holds its address and is kept,
 * part->temporary is not. */
void fay_fields_names(struct fay_emitter *e, const struct fay_part *part, unsigned stub);

bool fay_spec_has_kind(const struct fay_trampoline_spec *spec, uint32_t kinds);
/* trampoline.c: the kinds of probes that run at a place of the spec's role. */
uint32_t fay_role_kinds(const struct fay_trampoline_spec *spec);
/* A whole trampoline for a function's entry or exit; the hole is followed by what is out of
 * line. */
void fay_place_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec, size_t room,
		    struct fay_trampoline *trampoline);

/* trampoline_shared.c. Bytes from the address that a stub's call of the body leaves on the stack
 * back to the names. */
#define FAY_STUB_CALL 5
#define FAY_STUB_NAMES 32 /* function, module, address, watched */

/* trampoline_record.c: a call's record. rsi = LOCAL throughout. */
struct fay_record_code {
	size_t aside, done; /* places of a jump to what is out of line, and of where that goes on */
};
uint32_t fay_record_uses(const struct fay_trampoline_spec *spec); /* registers that are changed */
/* While the registers are the program's: where the jump leads, to target_at. */
void fay_record_target(struct fay_emitter *e, const struct fay_part *part);
/* Before the probes: at a function's end, takes the record, and the time from it to the event's
 * duration. */
void fay_record_end(struct fay_emitter *e, const struct fay_part *part,
		    struct fay_record_code *code);
/* Behind the probes: at its begin. */
void fay_record_begin(struct fay_emitter *e, const struct fay_part *part,
		      struct fay_record_code *code);
/* Out of line; `restore` is where a part goes on that has nothing more to do. */
void fay_record_aside(struct fay_emitter *e, const struct fay_part *part,
		      const struct fay_record_code *code, size_t restore);
/* The same, each as one call of the runtime; for careful trampolines, where rbp leads to all
 * registers and all are free. */
void fay_record_carefully(struct fay_emitter *e, const struct fay_trampoline_spec *spec);
/* The routine for probes of one kind (fay_routine_emit). */
void fay_routine_write(struct fay_emitter *e, const struct fay_trampoline_spec *spec,
		       uint32_t kind);
/* rax = where the jump leads, 0 if not known. The other registers are the program's. */
void fay_record_load_target(struct fay_emitter *e, const struct fay_jump_target *target);

/* trampoline_marker.c: a marker's operands to event.arg[], inside fay_offset_emit(). */
void fay_marker_arguments(struct fay_emitter *e, const struct fay_trampoline_spec *spec,
			  uint32_t fields);

/* trampoline_offset.c: where a register is saved, from rbp; rsp's own value is that address. */
int32_t fay_offset_saved(unsigned reg);
/* A whole trampoline for a place inside a function. Returns the place of the displaced
 * instructions' hole. */
size_t fay_offset_emit(struct fay_emitter *e, const struct fay_trampoline_spec *spec, size_t room);

#endif
