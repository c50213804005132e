/* SPDX-License-Identifier: MIT */
/*
 * The room of transfer functions: what each instruction does to an abstract state, what must hold
 * before it (obligations), and which ways lead out of a block. struct fay_analysis is the one probe
 * that is being analysed; the rooms above (solver, loops, fixpoint, sweep) share it.
 *
 * All of this must be right: an accepted probe rests on it. Each function returns false where the
 * path ends. Limits: FAY_MAX_PENDING obligations, FAY_MAX_FENCE_STEPS, the policy's time.
 */
#ifndef FAY_VERIFIER_ANALYSIS_H
#define FAY_VERIFIER_ANALYSIS_H

#include "verifier/prover/graph/cfg.h"
#include "verifier/prover/state/state.h"
#include "verifier/rules/rules.h"

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

/* A hard stop: the first one counts. */
static inline void fay_analysis_fail(struct fay_analysis *an, struct fay_refusal r)
{
	if (an->refusal.rule == FAY_RULE_NONE)
		an->refusal = r;
}
/* Virtual address of the first instruction of a node. */
static inline uint64_t fay_node_address(const struct fay_analysis *an, uint32_t node)
{
	return an->cfg->insns[an->cfg->blocks[an->graph->nodes[node].block].first].address;
}

/* analysis.c. Frees a stored state, those of all nodes, what the invariant of a probe consists of.
 * */
void fay_analysis_drop(struct fay_analysis *an, struct fay_state *s);
void fay_analysis_drop_all(struct fay_analysis *an, struct fay_state **states);
void fay_analysis_release(struct fay_analysis *an);
/* Told of each edge that may be taken, with the state there, which it may change. */
typedef void fay_edge_function(struct fay_analysis *an, void *context, uint32_t from, uint32_t to,
			       struct fay_state *s);
/* Runs `node` from `in`. False: the path ended before the end of its block, since an instruction is
 * not allowed there, as far as is known, or is not reachable. */
bool fay_node_run(struct fay_analysis *an, uint32_t node, const struct fay_state *in,
		  fay_edge_function *edge, void *context);

/* Runs block `node` from *an->current. False: the path ends here (refused, or infeasible). */
bool fay_transfer_block(struct fay_analysis *an, uint32_t node);
/* Whether the ways out of `node` are told apart by a condition, and which: JCC, or that of the
 * setcc that comes next in two variants. */
bool fay_node_branches(const struct fay_analysis *an, uint32_t node, enum fay_cc *cc);
/* Assumes the condition of JCC `insn` (or its opposite) in *s. False: impossible. */
bool fay_transfer_assume(const struct fay_analysis *an, struct fay_state *s, enum fay_cc cc,
			 bool holds);

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
