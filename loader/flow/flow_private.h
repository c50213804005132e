/* SPDX-License-Identifier: MIT */
/* A function's instructions, and where they are entered: what is known of them (flow_step.c,
 * flow_code.c, flow_ways.c, flow_indirect.c, flow_values.c), and what is chosen (cover.c,
 * room.c). */
#ifndef FAY_LOADER_FLOW_PRIVATE_H
#define FAY_LOADER_FLOW_PRIVATE_H

#include <Zydis/Zydis.h>

#include "flow.h"

#define FAY_FLOW_REGIONS_MAX 32u

enum fay_step_kind {
	FAY_STEP_PLAIN,
	FAY_STEP_PADDING, /* nop, int3: not meant to be run */
	FAY_STEP_JUMP,    /* direct */
	FAY_STEP_BRANCH,  /* direct, conditional */
	/* cannot run elsewhere, though it goes on: system call, loop, transaction */
	FAY_STEP_FIXED,
	FAY_STEP_FAULTING, /* likewise: it may fault, which must be seen to happen where it is */
	FAY_STEP_CALL,
	FAY_STEP_INDIRECT, /* jump */
	FAY_STEP_RETURN,
	FAY_STEP_STOP, /* hlt, ud2: nothing behind it is run */
};

/* Nobody sets flags for nothing: where they are not used before an exit they are meant for behind
 * it. */
/* used, or set by the way; as before; set, and nothing else */
enum fay_step_flags { FAY_FLAGS_USED, FAY_FLAGS_KEPT, FAY_FLAGS_SET };

/* An instruction. */
struct fay_step {
	uint64_t at, target; /* of JUMP and BRANCH */
	uint8_t length, kind;
	bool is_short; /* its displacement has 8 bits */
	/* by others than the jumps below and the instruction before it, or perhaps */
	bool entered;
	bool returned;  /* only since a call in front of it returns */
	uint64_t table; /* of distances, by which alone it is entered so; 0: it is not */
	uint64_t reads; /* an indirect jump: the table that it reads; 0: that is not known */
	bool reached;   /* some way in is known, or looked for in vain: */
	uint64_t unled; /* nothing known leads here, but from such code that begins there; else 0 */
	bool exit;
	bool doubt; /* an indirect jump: where it leads is not known, perhaps out of the function */
	/* __morestack, called in front of it, goes on behind it, and comes back to it at last */
	bool passed;
	/* a far jump or return, or xabort: what is behind it is not run next, and where it leads
	 * is not said */
	bool away;
	/* the function behind, into which the flow goes on here: an exit, too; 0: it does not */
	uint64_t runs_on;
	bool careful;     /* such an exit may be taken in the middle of a function */
	bool moves_stack; /* it sets the stack pointer to something that is not of this frame */
	/* its address is taken: an indirect jump through a pointer may lead there */
	bool label;
	bool handler;  /* of an exception, perhaps */
	uint8_t flags; /* enum fay_step_flags */
	bool used;     /* in a window, or redirected */
	/* jumps to here, as numbers of steps plus one; the next one to the same place */
	uint32_t first_join, next_join;
	uint32_t block; /* plus one: all jumps to here are led to a copy */
	int32_t depth;  /* of the stack below the return address, in bytes; -1 not known */
};

/* A table of 32-bit distances that lead into the function: from itself, or from a label there. */
struct fay_distances {
	uint64_t table, from;
};

struct fay_code_region {
	uint64_t start, end;
	size_t first, count; /* steps */
	uint64_t hash;       /* of its bytes */
	uint64_t claimed;    /* padding behind its end that is overwritten, up to here; 0: none */
};

struct fay_code {
	const struct fay_flow_program *program;
	struct fay_step *steps;
	size_t step_count, step_room;
	/* the first is the function, as its symbol says */
	struct fay_code_region regions[FAY_FLOW_REGIONS_MAX];
	size_t region_count;
	size_t bytes; /* of all regions */
	struct fay_distances *tables;
	size_t table_count;
	bool splits; /* it may go on with another stack, by __morestack */
	bool alone;  /* only the function's own instructions and direct jumps are read */
	bool no_memory;
	char *reason; /* FAY_REASON_MAX */
};

/* flow_step.c: of an instruction and its bytes. */
enum fay_step_kind fay_step_kind_of(const ZydisDecodedInstruction *insn, const uint8_t *bytes);
/* A plain store to this absolute address of the first page: where nothing is mapped there, it is
 * how some programs and compilers stop. */
bool fay_step_stores_near_null(const ZydisDecodedInstruction *insn, uint64_t *address);
enum fay_step_flags fay_step_flags_of(const ZydisDecodedInstruction *insn);
bool fay_step_goes_away(const ZydisDecodedInstruction *insn);
bool fay_step_moves_stack(const ZydisDecodedInstruction *insn);
/* Whether it asks for the end of a split stack: cmp %fs:0x70, register (gcc's -fsplit-stack). */
bool fay_step_splits(const ZydisDecodedInstruction *insn, const uint8_t *bytes);
/* Other than by an access of the stack, or of the module's own data. */
bool fay_step_may_fault(const ZydisDecodedInstruction *insn, const uint8_t *bytes);
/* How it changes the stack's depth; false: that is not known. */
bool fay_step_depth_after(const ZydisDecodedInstruction *insn, const uint8_t *bytes,
			  int32_t *depth);

/* The bytes of [start, end), to be freed, and their hash. NULL: no memory, or, if *unreadable, they
 * cannot be read. */
uint8_t *fay_code_bytes(const struct fay_flow_program *program, uint64_t start, uint64_t end,
			uint64_t *hash, bool *unreadable);
/* Decodes all, and marks what is entered. False: no memory, or the reason says why nothing can be
 * said of the function. If it is set all the same, all exits are known, but not all ways in. */
bool fay_code_read(struct fay_code *code, uint64_t start, uint64_t end);
void fay_code_deinit(struct fay_code *code);
unsigned long fay_code_offset(const struct fay_code *code, uint64_t at);
/* flow_ways.c: of decoded instructions, all else that is known of them. */
bool fay_code_find_ways(struct fay_code *code);
/* flow_indirect.c: which indirect jumps are exits. If the reason is set then, it says of which that
 * is not known. False: as above. */
bool fay_code_resolve_indirect(struct fay_code *code);
/* Reads the tables of distances from labels that indirect jumps read. False: as above. */
bool fay_code_read_labels(struct fay_code *code);
/* False: no memory. */
bool fay_code_add_table(struct fay_code *code, uint64_t table, uint64_t from);
/* The instruction that begins at an address; SIZE_MAX: none. */
size_t fay_code_find(const struct fay_code *code, uint64_t at);
/* Whether the instruction before is in the same region and directly before it. */
bool fay_code_follows(const struct fay_code *code, size_t step);
/* Bytes of an instruction that is padding: nop, int3; 0: it is none. */
size_t fay_padding_length(const uint8_t *bytes, size_t size);
/* Sets the reason; false. */
bool fay_code_refuse(struct fay_code *code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* flow_values.c: what the instructions before an indirect jump leave in registers. */
enum fay_line_kind {
	FAY_LINE_OTHER,
	FAY_LINE_CONSTANT, /* `of` */
	/* whatever a register, or a place of the frame, had; `of` tells one from another: registers
	 * are 1 to 16 */
	FAY_LINE_UNKNOWN,
	/* 32 bits from a table, sign-extended; `of`: where it begins, a constant or an unknown */
	FAY_LINE_DISTANCE,
	FAY_LINE_TABLE, /* that, and the table's address or, of a known one, another: `from` */
	/* 64 bits of memory; `of`: the table's address, if it is one and known; else 0 */
	FAY_LINE_POINTER,
};
struct fay_line_value {
	uint64_t of, from;
	uint8_t kind;
	bool constant; /* `of` is an address */
};
/* Registers are 0 to 15; -1: it is none of these. */
int fay_line_register(ZydisRegister reg);
/* A compiler keeps there what it finds no register for. */
bool fay_line_in_frame(const ZydisDecodedOperand *memory);
bool fay_line_rip_relative(const ZydisDecodedOperand *memory);
/* As glibc's PTR_DEMANGLE does: the pointer is turned, and mixed with a word of the thread's. */
bool fay_line_hides_pointer(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *from);
/* What the jump's operand has, and where the line begins. False: its bytes are no instructions. */
bool fay_line_target(const struct fay_code *code, size_t jump, struct fay_line_value *target,
		     size_t *begin);

/* Other than by a table of distances. */
static inline void fay_step_enter(struct fay_step *step)
{
	step->entered = true;
	step->returned = false;
	step->table = 0;
}

static inline void fay_step_enter_by(struct fay_step *step, uint64_t table)
{
	if (!step->entered)
		step->table = table;
	else if (step->table != table)
		step->table = 0;
	step->entered = true;
}

static inline bool fay_step_ends(const struct fay_step *step)
{
	return step->kind == FAY_STEP_JUMP || step->kind == FAY_STEP_INDIRECT ||
	       step->kind == FAY_STEP_RETURN || step->kind == FAY_STEP_STOP;
}

/* A window, as steps [first, last]. */
struct fay_span {
	size_t first, last;
	bool entry, hosts, leads;
	uint64_t hole;
};

struct fay_choice {
	struct fay_code code;
	struct fay_flow *flow;
	size_t entry_step; /* the entry's window begins here; SIZE_MAX: there is none */
	struct fay_span *spans;
	size_t span_count, span_room;
	uint32_t *blocks; /* their first steps */
	size_t block_count, block_room, block_done;
	uint32_t *redirects; /* jumps */
	size_t redirect_count, redirect_room;
};

/* cover.c: a window, or a block, for each exit and, if asked for, the entry. False: no memory, or
 * the reason says why not. */
bool fay_cover_all(struct fay_choice *choice, bool entry);
/* A jump that nobody falls past its end: from `step` an end of the flow is reached in a straight
 * line, which a block's copy needs. */
bool fay_block_end(const struct fay_choice *choice, size_t step, size_t *last);

/* room.c */
unsigned long fay_choice_offset(const struct fay_choice *choice, size_t step);
/* Bytes of the steps [first, last]. */
size_t fay_choice_bytes(const struct fay_choice *choice, size_t first, size_t last);
/* Room for one more item. False: no memory. */
bool fay_choice_grow(struct fay_choice *choice, void **items, size_t size, size_t count,
		     size_t *room);
bool fay_span_push(struct fay_choice *choice, const struct fay_span *span);
bool fay_step_moves(const struct fay_step *step);
/* Whether a window may go on behind its last step, but for one. */
bool fay_room_grows(const struct fay_choice *choice, size_t last, size_t not_this);
/* Whether the bytes suffice for a jump, padding included. */
bool fay_room_suffices(const struct fay_choice *choice, size_t first, size_t last);
/* Whether a short jump has room, and a hole to lead to; takes that hole, 0: there is none. */
bool fay_room_hops(const struct fay_choice *choice, size_t first, size_t last);
uint64_t fay_hole_take(struct fay_choice *choice, size_t first, size_t last);
void fay_room_claim(struct fay_choice *choice, uint64_t at, size_t bytes);

#endif
