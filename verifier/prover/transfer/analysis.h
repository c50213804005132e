/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the analysis share: the abstract state (state*.c), its transfer functions and
 * obligations (transfer*.c), the fixpoint (fixpoint.c), loop bounds and cost (loops.c), and the
 * solver (smt.c, counterexample.c).
 */
#ifndef FAY_VERIFIER_ANALYSIS_H
#define FAY_VERIFIER_ANALYSIS_H

#include "verifier/prover/graph/cfg.h"
#include "verifier/prover/domain/domain.h"
#include "verifier/rules/rules.h"

/* Locations of a state: registers, the operands of the last comparison, then stack slots of 4 bytes
 * downward from rsp at entry. */
enum { LOC_FLAGS_A = 16, LOC_FLAGS_B, LOC_FLAGS_R, LOC_SLOTS };
#define FAY_STACK_HARD 8192u /* bytes; above this STK-LIMIT whatever the policy says */
#define FAY_MAX_LOCATIONS (LOC_SLOTS + FAY_STACK_HARD / 4)
#define FAY_STATE_BYTES_MAX ((size_t)1 << 30) /* all states of one probe */

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
struct fay_template;
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

/* One proof obligation that the abstract values do not discharge. */
enum fay_goal {
	/* the instruction must not be reached (the rule is broken whenever it is) */
	GOAL_UNREACHABLE,
	GOAL_BOUNDS,  /* the address of `insn`'s memory operand stays within its region */
	GOAL_DIVIDE,  /* the division does not fault */
	GOAL_DIFFERS, /* register `reg` is not `low`: asked by tests only */
};
struct fay_obligation {
	uint32_t node, insn; /* index of the graph's node; of the instruction in cfg->insns */
	enum fay_goal goal;
	enum fay_rule rule;
	enum fay_outcome outcome;
	const char *what, *missing;
	uint8_t region, reg; /* BOUNDS; DIFFERS */
	uint32_t size;       /* BOUNDS: bytes */
	/* BOUNDS: offsets from the region's start that the first byte may have */
	int64_t low, high;
};
#define FAY_MAX_FENCE_STEPS (1u << 24)
#define FAY_MAX_STRING 1024u /* elements of a rep movs or rep stos */
#define FAY_MAX_PENDING 4096u

struct fay_smt_cache;

/*
 * The word named `id` at distance `delta` is, modulo 2^bits (if `exact`, by itself), the integer
 * 2^up * J + rest, rest_low <= rest <= rest_high, J an integer between factor * X + error * E + low
 * and factor * X + error * E + high, where X is the unsigned reading of the word named `root` at
 * root_delta and lies in [least, most], and E, in [0, 1], what was rounded off in one place
 * (error_of; 0 nowhere); fractions of 80 binary places: see transfer_remainder.c.
 */
struct fay_form {
	uint32_t id, root;
	uint64_t delta, root_delta;
	uint64_t least, most;
	__int128 factor, error, low, high;
	int64_t rest_low, rest_high;
	uint64_t base_delta;
	/* the integer is as many times the word named `base` at base_delta; 0 not known */
	int64_t multiple;
	uint32_t base;
	uint32_t error_of;
	uint8_t up, bits;
	bool exact;
	bool shifted; /* it is the root shifted down */
	bool split;   /* the root is this word shifted down: rest is what went out */
};
#define FAY_FORMS 24u
#define FAY_NARROWS 10u

/* The word named `sum` at sum_delta is (N + add) modulo 2^32, N < 2^32 the word named `of` at
 * of_delta: see transfer_wrap.c. */
struct fay_wrap {
	uint32_t sum, of, add;
	uint64_t sum_delta, of_delta;
};
#define FAY_WRAPS 6u

struct fay_analysis {
	struct fay_smt_cache *cache; /* the solver's answers; NULL none */
	struct fay_arena *arena;
	const struct fay_image *image;
	const struct fay_policy *policy;
	const struct fay_cfg *cfg;
	const struct fay_graph *graph;
	struct fay_verdict *verdict;
	uint64_t deadline; /* monotonic ns, 0 none */
	uint32_t steps;    /* instructions run, for looking at the clock now and then */
	struct fay_thresholds thresholds; /* of the whole image */
	bool refine;                      /* branches refine values (off in the speculation pass) */
	/* speculation pass: the first pass's invariant; else NULL */
	struct fay_state **architectural;
	uint64_t fence_steps;
	/* by node, ascending: what to relate at the heads of loops */
	struct fay_template *templates;
	uint32_t template_count;
	/* Numbers that the block in hand read from read-only data, and whose names still say so:
	 * see transfer_jump.c. */
	struct fay_table_read {
		uint32_t id;
		bool sign; /* extended to 64 bits with its sign, else with zeros */
		uint64_t low, high;
		struct fay_scalar offset;
	} reads[4];
	uint32_t read_count;
	/* The sign that the block in hand made of a number (cqo, cdq): its name, the number's and
	 * distance, the width; 0 none. */
	struct fay_sign {
		uint32_t high, low;
		uint64_t low_delta;
		unsigned width;
	} sign;
	/* Forms of numbers that the block in hand computed, the last ones; and which name it gave
	 * to `width` bits of a number from bit `from` on. */
	struct fay_form forms[FAY_FORMS];
	struct fay_narrow {
		uint32_t of, id;
		uint64_t delta;
		unsigned width, from;
	} narrows[FAY_NARROWS];
	struct fay_wrap wraps[FAY_WRAPS];
	uint32_t form_count, error_count, narrow_count, wrap_count;
	/* the states are still growing: a place that the graph lacks is a find, later it is a
	 * refusal */
	bool exploring;
	struct fay_jump *found; /* places of indirect jumps that the graph lacks */
	uint32_t found_count, found_capacity;
	/* all obligations are discharged: the solver may be asked for loops' bounds */
	bool ask_bounds;
	bool addressing; /* sums are for an access only: they get no relations */
	/* The first attempt (sweep.c). */
	bool thorough; /* is left out */
	bool related;  /* has relations between values from the start */
	bool keep;     /* all states are kept in `in` */
	/* is being made: what would leave an obligation open sets `open` instead */
	bool sweeping;
	bool open;
	bool fell_short;
	/* has succeeded: bounds are known; of the states those only that `keep` asks for */
	bool swept;
	/* else, if not 0: all is proved but that its worst case is so many instructions, more than
	 * the policy allows */
	uint64_t too_many;
	uint8_t *reached; /* then: per node */
	/* The fixpoint. */
	struct fay_state **in; /* per node; NULL not reached */
	uint16_t *visits;
	size_t state_bytes;
	struct fay_state *current, *branch; /* scratch, of full capacity */
	bool checking; /* the last pass: obligations count, facts are gathered */
	/* Where the transfer function is. */
	uint32_t node, insn;
	struct fay_refusal refusal; /* a hard stop: memory, time */
	/* Gathered while checking. */
	uint64_t obligation_count;
	uint32_t pending_count, pending_capacity;
	struct fay_obligation *pending;
	struct fay_probe_facts *facts;
	int64_t deepest; /* bytes below rsp at entry */
	uint64_t worst_instructions;
	/* per node: elements that its rep instructions move in one run; each costs as much as an
	 * instruction */
	uint64_t *moves;
	uint64_t *bounds; /* per node that heads a loop: iterations at most */
};

/* Whether the invariant has a state for `node`. */
static inline bool fay_reached(const struct fay_analysis *an, uint32_t node)
{
	return an->reached ? an->reached[node] : an->in[node] != NULL;
}

/* Runs block `node` from *an->current. False: the path ends here (refused, or infeasible). */
bool fay_transfer_block(struct fay_analysis *an, uint32_t node);
/* Whether the ways out of `node` are told apart by a condition, and which: JCC, or that of the
 * setcc that comes next in two variants. */
bool fay_node_branches(const struct fay_analysis *an, uint32_t node, enum fay_cc *cc);
/* Assumes the condition of JCC `insn` (or its opposite) in *s. False: impossible. */
bool fay_transfer_assume(const struct fay_analysis *an, struct fay_state *s, enum fay_cc cc,
			 bool holds);

/* Numbers that widening may stop at: of any image; of this one; and those of the loop of `header`,
 * entered with `entered`, which are added. */
void fay_thresholds_add(struct fay_thresholds *t, int64_t value);
void fay_thresholds_add_one(struct fay_thresholds *t, int64_t value); /* not its neighbours */
void fay_thresholds_common(struct fay_thresholds *t, const struct fay_image *image);
void fay_thresholds_collect(struct fay_thresholds *t, const struct fay_image *image,
			    const struct fay_cfg *cfg);
void fay_thresholds_add_loop(struct fay_thresholds *t, const struct fay_analysis *an,
			     uint32_t header, const struct fay_state *entered);

extern const struct fay_thresholds fay_thresholds_coarse;

/* Fixpoint and check of one probe; then loops and cost. */
struct fay_refusal fay_loops_bound(struct fay_analysis *an);
/* Guesses for another fixpoint: an->templates. */
struct fay_refusal fay_loops_templates(struct fay_analysis *an);

/* One instruction; the address of a memory operand (false: not a pointer). */
bool fay_transfer_step(struct fay_analysis *an, uint32_t node, uint32_t insn);
/* The helper whose address a 64-bit mov takes from its slot; that a call goes to, before which the
 * state is *s. -1: none. */
int fay_helper_loaded(const struct fay_image *image, const struct fay_insn *insn);
int fay_helper_called(const struct fay_image *image, const struct fay_state *s,
		      const struct fay_insn *insn);
bool fay_transfer_address(struct fay_analysis *an, const struct fay_operand *mem,
			  struct fay_value *address);

#endif
