/* SPDX-License-Identifier: MIT */
/*
 * Where a function is left, and which of its bytes may be overwritten so that each way out passes a
 * trampoline. Nothing is believed of a symbol but that code begins there: the instructions are
 * decoded, every place that may be entered other than by falling through is collected, and bytes
 * are given up only if nothing can enter them. Pure functions of bytes; the process is reached
 * through struct fay_flow_program alone. docs/internals/returns.md has the method.
 *
 *	exit	   an instruction that leaves the function: ret; a jump, direct or indirect,
 *		   conditional or not, to another function
 *	window	   instructions that run one after the other and that are entered at the first only:
 *		   a jump (FAY_JUMP_BYTES) to their copy is written over the first bytes nearby, if
 *		   the window has no room for it: then a short one leads from its first bytes to
 *		   padding that has
 *	block	   the end of a function's flow that is too short for a window of its own ("pop
 *		   %rbx; ret", a lone ret), and is entered by jumps that are all known: each of
 *		   these is led to a copy of the block. Nobody enters the original any more
 *	redirect   such a jump whose own 32-bit displacement is rewritten (FAY_JUMP_BYTES from
 *		   `site`, the opcode's last byte and the displacement); a shorter one lies in a
 *		   window, in whose copy it leads to the block's copy
 */
#ifndef FAY_LOADER_FLOW_H
#define FAY_LOADER_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "relocate.h"

#define FAY_FLOW_BYTES_MAX (1u << 20) /* bytes of a function */
#define FAY_FLOW_WINDOW_MAX 48u       /* bytes of a window */
#define FAY_FLOW_TABLE_MAX (1u << 16) /* entries of a jump table */

#define FAY_HOP_BYTES 2u          /* eb rel8 */
#define FAY_FLOW_ENTRY UINT32_MAX /* a redirect's block: the copy of the entry's window */

enum fay_flow_place {
	FAY_PLACE_UNKNOWN, /* no symbol and no unwind entry covers it */
	FAY_PLACE_INSIDE,  /* a function, behind its first byte */
	/* anywhere in a part of some function (`f.cold`, an unwind entry whose frame is not that of
	 * a function just called) */
	FAY_PLACE_PART,
	/* the start of an unwind entry without a symbol: a function, or a part of one */
	FAY_PLACE_UNNAMED,
	FAY_PLACE_FUNCTION, /* a function's first byte */
};

/* Why code may be entered at an address other than by branches and falling through. */
enum fay_taken_kind {
	FAY_TAKEN_WORD,    /* it is in the program's data: an indirect jump may lead there */
	FAY_TAKEN_HANDLER, /* of an exception, or a label that has a symbol */
	FAY_TAKEN_ENTRY,   /* a function's, or a symbol that other files may use */
	/* nobody knows where the function that begins there is entered: its table of handlers is
	 * not understood */
	FAY_TAKEN_DOUBT,
	FAY_TAKEN_KINDS
};

/* How the analysis sees the program. All addresses are the process's. */
struct fay_flow_program {
	void *context;
	/* of the function it is wanted to know where it goes on with another stack */
	bool unwinder;
	/* an instruction that may fault stays where it is: a stack is unwound from there */
	bool keeps_faults;
	/* Bytes as the program has them, without any trace's jumps. Returns how many of them there
	 * are from `address` on. */
	size_t (*read)(void *context, uint64_t address, void *to, size_t size);
	/*
	 * What is known of an address from symbols and the unwind table. For all but UNKNOWN *start
	 * and *end are the bounds of the function or part around it; both are claims only.
	 */
	enum fay_flow_place (*place)(void *context, uint64_t address, uint64_t *start,
				     uint64_t *end);
	/* Addresses of a kind in [start, end). Sorted; *count of them; owned by the program until
	 * the next call. NULL: that is not known. */
	const uint64_t *(*taken)(void *context, enum fay_taken_kind kind, uint64_t start,
				 uint64_t end, size_t *count);
	/* Whether something else is there but for an int3, a tracer's trap. NULL: there is none. */
	bool (*trapped)(void *context, uint64_t address);
};

enum fay_exit_kind {
	FAY_EXIT_RETURN,   /* ret, with or without a number */
	FAY_EXIT_JUMP,     /* to `target`, another function */
	FAY_EXIT_INDIRECT, /* to an address from a register or from memory */
};
struct fay_exit {
	/* of the instruction; if its length is 0 there is none: the function runs on into another
	 * one there */
	uint64_t at;
	uint64_t target; /* FAY_EXIT_JUMP */
	/* not looked at here: where the stub that it leads to has the address of where that leads;
	 * 0: it leads to no stub, or nobody has looked */
	uint64_t word;
	uint8_t length, kind; /* enum fay_exit_kind */
	bool conditional;     /* the function goes on behind it if the condition does not hold */
	/* INDIRECT: perhaps it leads into the function; the reason says so */
	bool doubt;
	/* perhaps another call ends here: at a return, before which the stack pointer was set to
	 * something else; in a function that is left by jumps and entered again inside */
	bool unsure;
	/* it may lead into the middle of something: flags and what is below the stack pointer may
	 * be in use */
	bool careful;
	/* nothing known leads to it: to no instruction from there to here; 0: that is not so. It is
	 * code that is never run, or that is reached in a way that is not known, or no code */
	uint64_t unled;
};

struct fay_window {
	uint64_t site;
	/* bytes of whole instructions, at least FAY_JUMP_BYTES with the padding behind the last;
	 * the first FAY_JUMP_BYTES are overwritten */
	uint32_t length;
	uint32_t first, count; /* its exits; in a window that is the entry's there may be none */
	/* it begins at the function's first instruction, or at the one behind endbr64 */
	bool entry;
	bool ends; /* the flow does not go on behind its last instruction */
	/* some hole lies in it, behind its first FAY_JUMP_BYTES: it is to be patched in any case */
	bool hosts;
	bool leads; /* some jump in it leads to a block's copy: likewise */
	/* where there is no room: FAY_HOP_BYTES at the site lead there, to FAY_JUMP_BYTES of
	 * padding that are overwritten instead; 0: there is room */
	uint64_t hole;
};
struct fay_block {
	uint64_t at;
	uint32_t length; /* of whole instructions, the last is the exit */
	uint32_t exit;   /* its index */
};
struct fay_redirect {
	uint64_t site;
	uint32_t block; /* to its copy */
};

/* Where a function's instructions lie: first its own bounds. */
struct fay_flow_part {
	uint64_t start, end;
	uint64_t hash; /* of its bytes, when it was read */
};

struct fay_flow {
	struct fay_flow_part *parts;
	size_t part_count;
	struct fay_exit *exits; /* sorted by address */
	size_t exit_count;
	/* the entry's first, then by address; they do not overlap, nor do redirects lie in them */
	struct fay_window *windows;
	size_t window_count;
	struct fay_block *blocks;
	size_t block_count;
	struct fay_redirect *redirects;
	size_t redirect_count;
	/* it may go on with another stack, by gcc's __morestack: then it returns twice, of which
	 * the first time, on the other stack, is an exit */
	bool splits;
	/* "": every exit is covered. Else why not, to follow the function's name; then there are no
	 * windows, blocks and redirects; parts and exits there are if these are known: no parts, if
	 * they are not */
	char reason[FAY_REASON_MAX];
};

/*
 * [start, end) is the function, as its symbol or unwind entry says. Parts of it elsewhere that it
 * jumps to belong to it, with their exits. `entry`: the first instruction is to be patched, too
 * (its window comes first, and has the exits that it covers); it is what
 * fay_place_judge() would have, but may be longer. False: out of memory. The result is released by
 * fay_flow_deinit() in either case.
 */
bool fay_flow_read(const struct fay_flow_program *program, uint64_t start, uint64_t end, bool entry,
		   struct fay_flow *flow);
void fay_flow_deinit(struct fay_flow *flow);
/* The same function's flow in another process, where it lies `by` bytes higher. False: out of
 * memory. */
bool fay_flow_move(const struct fay_flow *flow, uint64_t by, struct fay_flow *moved);
/* Whether the bytes of all its parts are what they were. */
bool fay_flow_unchanged(const struct fay_flow_program *program, const struct fay_flow *flow);

/* A single place where FAY_JUMP_BYTES are to be overwritten. */
enum fay_place_kind {
	FAY_PLACE_AT_ENTRY, /* the function's start, or behind endbr64 there */
	FAY_PLACE_INSIDE_AT,
	/* the function's first instruction: likewise, but where indirect jumps lead is taken to be
	 * as at an entry, not between its first bytes, unless endbr64 is there */
	FAY_PLACE_AT_FIRST,
	FAY_PLACE_AT_MARKER, /* as INSIDE_AT; if that cannot be, before it */
};
#define FAY_PLACE_REDIRECTS 8u
struct fay_place {
	uint64_t site; /* of the jump */
	uint8_t back;  /* bytes from there to the marker; all between runs in one go */
	/* of an entry: jumps back to it, which are led to the copy of what is overwritten by
	 * FAY_JUMP_BYTES here, over the jump itself: no thread can stand inside of it */
	unsigned redirect_count;
	uint64_t redirects[FAY_PLACE_REDIRECTS];
};
/*
 * Is it safe to overwrite FAY_JUMP_BYTES at `at`, as far as the bytes of the function [start, end)
 * tell? Only `read` of the program is used. False: `reason` says why not, to follow the function's
 * name; "": out of memory.
 */
bool fay_place_judge(const struct fay_flow_program *program, uint64_t start, uint64_t end,
		     uint64_t at, enum fay_place_kind kind, struct fay_place *place,
		     char reason[FAY_REASON_MAX]);
/*
 * May one byte be replaced by a trap (int3) at `at`, the start of the function [start, end), a
 * place in it or, of a marker, a one-byte nop? A whole instruction has to begin there, and a start
 * must not be jumped back to, since each round would look like a call. *length: bytes of the
 * instruction. False: no, or in doubt; "": out of memory.
 */
bool fay_place_traps(const struct fay_flow_program *program, uint64_t start, uint64_t end,
		     uint64_t at, enum fay_place_kind kind, unsigned *length,
		     char reason[FAY_REASON_MAX]);
/* Where an indirect jump leads, from a register or memory: an operand of 8 bytes. False: it is none
 * that is understood. */
struct fay_operand;
bool fay_jump_operand(const uint8_t *bytes, size_t size, struct fay_operand *operand);
/*
 * Whether any of the instructions in these bytes may fault, but for those that use the stack. They
 * end where one does not decode: nothing behind it is moved, either (fay_displace()).
 */
bool fay_code_faults(const uint8_t *bytes, size_t size);

#endif
