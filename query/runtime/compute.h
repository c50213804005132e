/* SPDX-License-Identifier: MIT */
/*
 * A variable's value as a program of at most FAY_COMPUTE_BYTES bytes, which lies in arguments of
 * the event, little-endian: query/debug/compute.c makes it of a DWARF expression, and a probe runs
 * it (compute.c). It works on a stack of FAY_COMPUTE_DEPTH words; below the last one there are
 * zeros.
 *
 * A program without bytes has no value, and neither has one that reads what cannot be read, or asks
 * for what the call began with where no probe saw it begin.
 */
#ifndef FAY_QUERY_RUNTIME_COMPUTE_H
#define FAY_QUERY_RUNTIME_COMPUTE_H

#include <stdint.h>

#define FAY_COMPUTE_WORDS 3u
#define FAY_COMPUTE_BYTES (8u * FAY_COMPUTE_WORDS)
#define FAY_COMPUTE_DEPTH 4u

/* An operation is a byte: which kind it is, in the upper three bits, and which of them. */
enum fay_compute {
	FAY_COMPUTE_END,
	/* the top becomes the bytes that lie there, zero-extended */
	FAY_COMPUTE_READ1 = 4,
	FAY_COMPUTE_READ2,
	FAY_COMPUTE_READ4,
	FAY_COMPUTE_READ8,
	/* the top becomes ... */
	FAY_COMPUTE_NEGATE,
	FAY_COMPUTE_NOT,
	FAY_COMPUTE_ABSOLUTE,
	FAY_COMPUTE_SIGNED1,
	FAY_COMPUTE_SIGNED2,
	FAY_COMPUTE_SIGNED4,
	FAY_COMPUTE_UNSIGNED1,
	FAY_COMPUTE_UNSIGNED2,
	FAY_COMPUTE_UNSIGNED4,
	FAY_COMPUTE_DUPLICATE,
	FAY_COMPUTE_DROP,
	FAY_COMPUTE_SWAP,
	FAY_COMPUTE_OVER, /* pushed: the second */
	/* the two topmost become one; numbers are signed */
	FAY_COMPUTE_ADD = 1 << 5,
	FAY_COMPUTE_SUBTRACT,
	FAY_COMPUTE_MULTIPLY,
	FAY_COMPUTE_AND,
	FAY_COMPUTE_OR,
	FAY_COMPUTE_XOR,
	FAY_COMPUTE_LEFT,
	FAY_COMPUTE_RIGHT, /* zeros come in */
	FAY_COMPUTE_RIGHT_SIGNED,
	FAY_COMPUTE_DIVIDE,
	FAY_COMPUTE_EQUAL,
	FAY_COMPUTE_UNEQUAL,
	FAY_COMPUTE_LESS,
	FAY_COMPUTE_LESS_EQUAL,
	/* pushed: the number of 1, 2 or 4 bytes, signed, that follows */
	FAY_COMPUTE_NUMBER1 = 2 << 5,
	FAY_COMPUTE_NUMBER2,
	FAY_COMPUTE_NUMBER4,
	/* pushed: a general register, in encoding order, or behind them where the event happened;
	 * with the signed number of 1 or 4 bytes added that follows */
	FAY_COMPUTE_REGISTER = 3 << 5,
	FAY_COMPUTE_REGISTER1 = 4 << 5,
	FAY_COMPUTE_REGISTER4 = 5 << 5,
	/*
	 * What one of six registers (in the order of arguments) held when the call began. The top,
	 * which goes: the frame's address (DWARF's CFA). 4 bytes follow: where the function begins,
	 * from where the event happened on.
	 */
	FAY_COMPUTE_ENTRY = 6 << 5,
	/* as many bytes further on as the next one says; where the top, which goes, is not 0 */
	FAY_COMPUTE_SKIP = 7 << 5,
	FAY_COMPUTE_SKIP_IF,
};
#define FAY_COMPUTE_PLACE 16u /* behind the registers */

/*
 * What calls began with, in the image's global state. A call finds its record by where its return
 * address lies, which no two calls under way share, by its process and its function. Who begins
 * at the same place of the table later takes it over.
 *
 * Ordering guarantees: none are needed. `sum` is of all that the record is found by and holds, so
 * that one that several threads, or a signal's handler, have written at once is that of no call.
 */
#define FAY_COMPUTE_CALLS 1024u /* a power of two */
#define FAY_COMPUTE_ARGUMENTS 6u

struct fay_compute_call {
	uint64_t arguments[FAY_COMPUTE_ARGUMENTS], unused, sum;
};
struct fay_compute_calls {
	struct fay_compute_call items[FAY_COMPUTE_CALLS];
};

#endif
