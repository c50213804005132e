/* SPDX-License-Identifier: MIT */
/*
 * The room of the checker: an image's parts, certificate and policy in, facts or a refusal out;
 * verifier/reader finds the parts in a file, and is not believed. It is all that
 * an acceptance rests on, with the decoder and its tables (verifier/isa) and the compiler that
 * built them. docs/certificate.md is the format, docs/verifier.md the argument.
 *
 * No allocation but in the memory that it is given, no recursion, time linear in image and
 * certificate.
 */
#ifndef FAY_CHECKER_H
#define FAY_CHECKER_H

#include "verifier/checker/subject/subject.h"

#define FAY_CERTIFICATE_MAGIC "FAYC"
#define FAY_CERTIFICATE_VERSION 1u
#define FAY_CERTIFICATE_HASH 16u /* bytes of the fingerprint */
#define FAY_CERTIFICATE_HEADER (6 + FAY_CERTIFICATE_HASH)

/*
 * Behind the version: PLAIN, one walk through each probe. CONFINED, two: in the second, branches
 * tell nothing and may go either way, as where they are mispredicted.
 */
enum { CERTIFICATE_PLAIN, CERTIFICATE_CONFINED };
/*
 * A node: count of instructions * 4 + flags; signed: address less that of the node before;
 * targets * 4 + end; of END_CONDITION the condition; signed: each target less this node's number;
 * of a head the nodes of its loop, and its measure, 1 + the variable that it counts by + 128 * (0,
 * or 1 + a variable to take away from it); of a join or head the number of entries of its list, and
 * these.
 */
enum { NODE_JOIN = 1, NODE_HEAD = 2 };
/*
 * NATURAL: as the last instruction says, to the next if it is no jump. CONDITION: to the next,
 * twice: first where the condition holds, then where not.
 */
enum { END_NATURAL, END_CONDITION };
/* Entries of a join's list. */
enum {
	JOIN_FORGET,    /* location */
	JOIN_REGISTERS, /* mask of registers to forget */
	JOIN_NUMBER,    /* location, bits, lo, hi - lo: a variable of its own */
	JOIN_MULTIPLE,  /* location, factor, c, lo, hi - lo: factor times a variable, plus c */
	JOIN_FORM,      /* location, bits, c, terms, (new variable, or JOIN_MOST + region: the size
			 * that is passed of it; factor) ... */
	JOIN_RANGE,     /* location, lo, hi - lo: of the variable that is there */
	JOIN_FACT,      /* location, factor, location, factor, lo, hi - lo */
	JOIN_FILL,      /* down, fixed, location, factor, c */
	JOIN_UNDEFINED, /* mask of flags */
	JOIN_VECTOR,    /* register, mask of bytes that count as written */
	JOIN_UNWRITTEN, /* low, size: of the stack */
	JOIN_BYTES,     /* location, mask of the bytes of a register that count as written */
	JOIN_KINDS,
};
#define JOIN_MOST 128u     /* variables of a list */
#define JOIN_ENTRIES 1024u /* entries of one */
#define NEST_MOST 64u      /* loops within each other */
/* Locations: registers 0 to 15, then places on the stack. */
#define LOCATION_STACK 16u
/* Of JOIN_RANGE, and of JOIN_FACT the second: also the size of a region that is passed, plus the
 * region's number; and what a loop around counts by, plus 256 times the
 * nodes from its head to here, plus which of its variables. */
#define LOCATION_SIZES (1u << 19)
#define LOCATION_COUNTS (1u << 20)

/* A place that a jump through a table may go to, both from the start of .text. */
struct check_jump {
	uint32_t from, to;
};

struct check_result {
	struct check_refusal refusal; /* rule FAY_RULE_NONE: accepted */
	uint32_t probe_count;
	uint64_t instructions; /* looked at, those of several contexts several times */
	/* each at least once, in no order; they lie in the memory that was given */
	const struct check_jump *jumps;
	uint32_t jump_count;
	/* what a reader found in the image, in which it points */
	struct check_subject subject;
};

/* Now and then: whether whoever waits has gone. A kernel lets others run here. */
#ifdef __KERNEL__
bool fay_check_given_up(void);
#else
#define fay_check_given_up() false
#endif

/* Bytes of memory that an image of `size` bytes needs at most. */
static inline size_t check_room(size_t size)
{
	return 4 * size + 65536;
}

/* Whether these are a header of the known version, behind which a certificate follows. */
bool check_is_certificate(const uint8_t *bytes, size_t size);
/*
 * Checks an image of `size` bytes, of which result->subject says what a reader found in it, with
 * the certificate at subject.certificate, or at `certificate` if that is not NULL. `facts` has room
 * for FAY_IMAGE_MAX_PROBES; what is proved of each probe is put there. Nothing of the subject is
 * believed but its interface. That is the caller's word, and must be one by fay_read_interface().
 */
void check_parts(const uint8_t *image, size_t size, const uint8_t *certificate,
		 size_t certificate_size, const struct fay_policy *policy, void *memory,
		 size_t memory_size, struct fay_probe_facts *facts, struct check_result *result);

#endif
