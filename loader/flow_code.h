/* SPDX-License-Identifier: MIT */
/* A function's instructions, and where they are entered: private to flow.c (what is chosen) and
 * flow_code.c (what is known). */
#ifndef FAY_LOADER_FLOW_CODE_H
#define FAY_LOADER_FLOW_CODE_H

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
	bool reached; /* some way in is known */
	bool exit;
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

struct fay_code_region {
	uint64_t start, end;
	size_t first, count; /* steps */
	uint64_t claimed;    /* padding behind its end that is overwritten, up to here; 0: none */
};

struct fay_code {
	const struct fay_flow_program *program;
	struct fay_step *steps;
	size_t step_count, step_room;
	/* the first is the function, as its symbol says */
	struct fay_code_region regions[FAY_FLOW_REGIONS_MAX];
	size_t region_count;
	size_t bytes;     /* of all regions */
	uint64_t *tables; /* of distances, that lead into the function */
	size_t table_count;
	bool no_memory;
	char *reason; /* FAY_REASON_MAX */
};

/* Decodes all, and marks what is entered. False: no memory, or the reason says why nothing can be
 * said of the function. */
bool fay_code_read(struct fay_code *code, uint64_t start, uint64_t end);
/*
 * Whether any of the instructions in these bytes may fault, but for those that use the stack. They
 * end where one does not decode: nothing behind it is moved, either (fay_displace()).
 */
bool fay_code_faults(const uint8_t *bytes, size_t size);
void fay_code_deinit(struct fay_code *code);
/* flow_indirect.c: which indirect jumps are exits. False: the reason says of which that is not
 * known. */
bool fay_code_resolve_indirect(struct fay_code *code);
/* The instruction that begins at an address; SIZE_MAX: none. */
size_t fay_code_find(const struct fay_code *code, uint64_t at);
/* Whether the instruction before is in the same region and directly before it. */
bool fay_code_follows(const struct fay_code *code, size_t step);
/* Bytes of an instruction that is padding: nop, int3; 0: it is none. */
size_t fay_padding_length(const uint8_t *bytes, size_t size);
/* Sets the reason; false. */
bool fay_code_refuse(struct fay_code *code, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool fay_step_ends(const struct fay_step *step)
{
	return step->kind == FAY_STEP_JUMP || step->kind == FAY_STEP_INDIRECT ||
	       step->kind == FAY_STEP_RETURN || step->kind == FAY_STEP_STOP;
}

#endif
