/* SPDX-License-Identifier: MIT */
/*
 * The room of abstract states: what is known at one place of a probe of all registers, flags and
 * stack slots; which bytes of stack arrays were written (fills.c); and what values have to do with
 * each other (relations.c). States are joined, widened, compared and looked up here; what an
 * instruction does to one is said in verifier/prover/transfer.
 *
 * Joins and widening need not be right, since the last pass checks what they gave; inclusion
 * (fay_state_includes() and what it calls), reduction and forgetting must be.
 */
#ifndef FAY_VERIFIER_STATE_H
#define FAY_VERIFIER_STATE_H

#include "verifier/isa/isa.h"
#include "verifier/prover/domain/domain.h"

/* Locations of a state: registers, the operands of the last comparison, then stack slots of 4 bytes
 * downward from rsp at entry. */
enum { LOC_FLAGS_A = 16, LOC_FLAGS_B, LOC_FLAGS_R, LOC_SLOTS };
#define FAY_STACK_HARD 8192u /* bytes; above this STK-LIMIT whatever the policy says */
#define FAY_MAX_LOCATIONS (LOC_SLOTS + FAY_STACK_HARD / 4)

/* What the flags are the flags of. */
enum fay_flags_record {
	RECORD_NONE,
	RECORD_COMPARE, /* a - b; r the difference */
	RECORD_RESULT,  /* ZF and SF of r */
	RECORD_LOGIC,   /* r against 0, CF and OF clear */
	RECORD_BIT,     /* CF: bit b of a */
};

/* lo <= a * S(x + dx) + b * S(y + dy) <= hi over the integers; x < y are names, S the signed
 * reading: see relations.c. */
struct fay_relation {
	uint32_t x, y;
	uint64_t dx, dy;
	int64_t a, b;   /* a > 0, no common factor */
	int64_t lo, hi; /* INT64_MIN, INT64_MAX: none */
};
#define FAY_MAX_RELATIONS 24u

/* All bytes of [fixed, moving + step * S(x + dx)), or if `down` of [moving + step * S(x + dx),
 * fixed), were written: see fills.c. */
struct fay_fill {
	uint32_t x;
	uint32_t down;
	uint64_t dx;
	int64_t step; /* > 0 */
	int64_t fixed, moving;
};
#define FAY_MAX_FILLS 8u

struct fay_state {
	uint32_t count;   /* locations in use */
	uint32_t next_id; /* names from here on are unused */
	uint8_t record;   /* enum fay_flags_record */
	uint8_t flags_width;
	uint8_t flags_covered;   /* FLAG_* that the record describes */
	uint8_t flags_undefined; /* FLAG_* that must not be read */
	/* vector registers: bit per byte (0..31) that the probe has written */
	uint32_t vectors[16];
	/* no relations are gathered, nor ranges of arrays: the first attempt, sweep.c */
	bool plain;
	uint32_t from;          /* while it waits there: the node that it came from */
	struct fay_state *next; /* the next that waits for that node */
	/* 1 + a condition that is known to hold; 0 none. Until the next instruction that writes a
	 * flag */
	uint8_t assumed;
	bool carry_inverted; /* COMPARE of an addition: CF is the complement of the borrow */
	uint32_t fill_count;
	uint32_t relation_count;
	struct fay_relation relations[FAY_MAX_RELATIONS];
	struct fay_fill fills[FAY_MAX_FILLS];
	struct fay_value loc[];
};

struct fay_state *fay_state_create(uint32_t capacity);
static inline size_t fay_state_size(uint32_t count)
{
	return sizeof(struct fay_state) + count * sizeof(struct fay_value);
}
static inline int64_t fay_state_depth(const struct fay_state *s)
{
	return 4 * (int64_t)(s->count - LOC_SLOTS);
}
void fay_state_entry(struct fay_state *s);
void fay_state_copy(struct fay_state *to, const struct fay_state *from);
/* Names become 1 + the first location that bears them: the form of stored states. Also drops
 * ranking tags if asked. */
bool fay_state_canonical(struct fay_state *s);
/* A pair of locations, with factors, that is worth relating at the head of a loop: a guess, which
 * joins put to the proof. */
struct fay_template {
	uint32_t node; /* the loop's head */
	uint32_t x, y; /* locations */
	int64_t a, b;
};
/* What a join relates beside what its sides do: pairs of locations; or less: only what the first
 * side relates already. */
struct fay_join_plan {
	const struct fay_template *templates;
	uint32_t template_count;
	bool settle;
	bool guess_fills; /* at a loop's head */
};
/* a := a joined with b. Both have the same depth. b's 8-byte slots may be split. */
bool fay_state_join(struct fay_state *a, struct fay_state *b, const struct fay_join_plan *plan);
void fay_state_widen(struct fay_state *joined, const struct fay_state *old,
		     const struct fay_thresholds *t, unsigned round);
/* One location's numbers only. */
void fay_state_widen_one(struct fay_state *joined, const struct fay_state *old, uint32_t location,
			 const struct fay_thresholds *t);
/* Whether every concrete state that inner describes is described by outer. inner's 8-byte slots may
 * be split. */
bool fay_state_includes(const struct fay_state *outer, struct fay_state *inner);
/* Whether two stored states say the same. */
bool fay_state_equal(const struct fay_state *a, const struct fay_state *b);
/* Grows with uninitialised slots, or forgets those above the new stack pointer. */
void fay_state_set_depth(struct fay_state *s, int64_t depth);

static inline struct fay_value fay_value_scalar(struct fay_scalar s)
{
	return (struct fay_value){
		.s = s, .kind = KIND_SCALAR, .tag = TAG_NONE, .size = 8, .init = 0xff
	};
}

static inline struct fay_value fay_value_uninit(void)
{
	return (struct fay_value){
		.s = fay_scalar_top(), .kind = KIND_UNINIT, .tag = TAG_NONE, .size = 8
	};
}

static inline bool fay_value_numeric(const struct fay_value *v)
{
	return v->kind == KIND_SCALAR || v->kind == KIND_POINTER;
}

/* Stack slots. Offsets are from rsp at entry, negative; the range was checked to lie within the
 * frame. */
enum fay_slot_status { SLOT_OK, SLOT_UNINIT, SLOT_KIND, SLOT_RETURN };
enum fay_slot_status fay_stack_load(struct fay_state *s, int64_t offset, unsigned size,
				    struct fay_value *value);
enum fay_slot_status fay_stack_store(struct fay_state *s, int64_t offset, unsigned size,
				     const struct fay_value *value);
/* `size` bytes somewhere in [low, high]: what may be read, what remains after an unknown write.
 * fill: these bytes count as initialised after. */
enum fay_slot_status fay_stack_check(const struct fay_state *s, int64_t low, int64_t high);
enum fay_slot_status fay_stack_havoc(struct fay_state *s, int64_t low, int64_t high, bool fill);

/* ---- ranges of stack arrays that loops have written up to a counter: fills.c ---- */

/* counters, factors times counters and distances are less: sums of a few do not wrap */
#define FAY_FAR_APART ((int64_t)1 << 40)

/* An access at `fixed + step * S(v)`, v the value in `value`: what its operand says of it. step 0:
 * nothing. */
struct fay_place {
	struct fay_value value;
	int64_t fixed, step;
};

/* Numbers were written to `size` bytes at `at`: ranges that end there grow. */
void fay_fills_store(struct fay_state *s, const struct fay_place *at, unsigned size);
/* Whether the `size` bytes at `at`, somewhere in [low, high), were written. */
bool fay_fills_cover(const struct fay_state *s, const struct fay_place *at, unsigned size,
		     int64_t low);
/* What is written whatever the counters are is put into the slots. */
void fay_fills_settle(struct fay_state *s);
/* Bytes of [low, high) may no longer hold numbers that were written. */
void fay_fills_forget(struct fay_state *s, int64_t low, int64_t high);
/* The least and the greatest end of f, if the state knows its counter. */
bool fay_fill_ends(const struct fay_state *s, const struct fay_fill *f, int64_t *least,
		   int64_t *greatest);

/* Joins: the ranges of two states, by location, then put into the joined state. */
struct fay_fill_join {
	uint32_t count;
	struct {
		uint32_t location;
		struct fay_fill fill;
	} list[FAY_MAX_FILLS];
};
void fay_fills_gather(struct fay_fill_join *join, const struct fay_state *a,
		      const struct fay_state *b, const struct fay_join_plan *plan);
void fay_fills_scatter(const struct fay_fill_join *join, struct fay_state *joined);
/* Every range of `outer`, whose names are canonical, is written in `inner`. */
bool fay_fills_include(const struct fay_state *outer, const struct fay_state *inner);

/* ---- relations between two values, lo <= a * x + b * y <= hi, over the integers: relations.c
 * ---- */

/* Learns lo <= a * S(x) + b * S(y) <= hi; INT64_MIN and INT64_MAX say nothing. Values without
 * names, and constants, are passed over. */
void fay_relations_add(struct fay_state *s, const struct fay_value *x, int64_t a,
		       const struct fay_value *y, int64_t b, int64_t lo, int64_t hi);
/* What is known of S(x) - S(y). */
void fay_relations_difference(const struct fay_state *s, const struct fay_value *x,
			      const struct fay_value *y, int64_t *lo, int64_t *hi);
/* Branch: x `cc` y was found to hold, operands and flags of `width` bits. False: impossible. */
bool fay_relations_compare(struct fay_state *s, enum fay_cc cc, unsigned width,
			   const struct fay_value *x, const struct fay_value *y);
/* Makes the intervals as tight as the relations allow. False: no values are left. */
bool fay_relations_reduce(struct fay_state *s);
/* After renaming: puts the two sides of each relation in order and measures from the names
 * themselves where that is exact. */
void fay_relations_settle(struct fay_state *s);
/* x and y are equal: from now on one name. */
void fay_relations_unify(struct fay_state *s, const struct fay_value *x, const struct fay_value *y);

/* Joins: the candidates of two states, by location, then put into the joined state. */
struct fay_relation_join {
	uint32_t count;
	struct {
		uint32_t x, y;
		int64_t a, b, lo, hi;
	} list[FAY_MAX_RELATIONS];
};
void fay_relations_gather(struct fay_relation_join *join, const struct fay_state *a,
			  const struct fay_state *b, const struct fay_join_plan *plan);
void fay_relations_scatter(const struct fay_relation_join *join, struct fay_state *joined);
/* Every relation of `outer`, whose names are canonical, holds in `inner`. */
bool fay_relations_include(const struct fay_state *outer, const struct fay_state *inner);
/* Drops the others. */
void fay_relations_keep_shown(struct fay_state *outer, const struct fay_state *inner);
void fay_relations_widen(struct fay_state *joined, const struct fay_state *old, unsigned round);

#endif
