/* SPDX-License-Identifier: MIT */
/*
 * Bounds of loops whose progress only the solver can show: `x &= x - 1`, binary searches.
 *
 * One round is a query: the loop's body from its head, of which the invariant is assumed, to its
 * back edges, where ways are merged as everywhere (smt_query.c; heads of loops within are cut,
 * too). With x and y what a location, or two, hold at the head and x' and y' at a back edge, the
 * solver is asked whether
 *
 *   ones     every one of x' is a one of x, and x' != x: at most as many rounds as x can have ones
 *   down     x' < x, unsigned: at most as many as x's interval has numbers; likewise upward
 *   between  x' <= y', and if x <= y then y' - x' < y - x: at most as many as lie between the least
 *	      x and the greatest y, and one for the first
 *
 * "Unsatisfiable" for one back edge is that for all rounds, since every visit of the head is
 * described by the invariant.
 *
 * A round that refutes one claim often refutes others, which then are not asked.
 *
 * Limits: FAY_RANKED locations that change, QUESTIONS a loop, of them UNKNOWN without an answer,
 * half of the work that an obligation may take.
 */
#include <stdlib.h>
#include <string.h>

#include "smt_terms.h"

#define QUESTIONS 24u
#define UNKNOWN 2u
#define WORK 500000u
#define NUMBERS_MOST ((uint64_t)1 << 32)

struct measure {
	struct query *q;
	const struct fay_state *head;
	Z3_ast reached; /* a back edge is taken */
	Z3_ast before[FAY_RANKED], after[FAY_RANKED];
	unsigned asked, unknown;
};

static bool holds(struct measure *m, Z3_ast claim)
{
	struct query *q = m->q;
	enum fay_answer answer = ANSWER_UNKNOWN;

	if (m->unknown == UNKNOWN || fay_smt_model_denies(q, claim) || m->asked++ >= QUESTIONS)
		return false;
	fay_smt_assume(q, both(q, m->reached, negate(q, claim)));
	if (!q->failed && Z3_get_error_code(q->z) == Z3_OK)
		answer = fay_smt_facts_contradict(q);
	q->fact_count--;
	m->unknown += answer == ANSWER_UNKNOWN;
	return answer == ANSWER_PROVED;
}

static const struct fay_scalar *numbers(const struct measure *m, unsigned k)
{
	return &m->head->loc[m->q->ranked[k]].s;
}

static uint64_t by_one(struct measure *m, unsigned k)
{
	struct query *q = m->q;
	const struct fay_scalar *s = numbers(m, k);
	Z3_ast x = m->before[k], next = m->after[k];
	Z3_ast subset =
		Z3_mk_eq(q->z, Z3_mk_bvand(q->z, next, Z3_mk_bvnot(q->z, x)), bits(q, 0, 64));

	if (s->umax - s->umin < NUMBERS_MOST &&
	    (holds(m, Z3_mk_bvult(q->z, next, x)) || holds(m, Z3_mk_bvult(q->z, x, next))))
		return s->umax - s->umin + 1;
	if (holds(m, both(q, subset, negate(q, Z3_mk_eq(q->z, next, x)))))
		return (uint64_t)__builtin_popcountll(s->value | s->unknown) + 1;
	return UINT64_MAX;
}

/* x: location k, y: location l. */
static uint64_t by_two(struct measure *m, unsigned k, unsigned l)
{
	struct query *q = m->q;
	uint64_t least = numbers(m, k)->umin, most = numbers(m, l)->umax;
	Z3_ast closer = Z3_mk_bvult(q->z, Z3_mk_bvsub(q->z, m->after[l], m->after[k]),
				    Z3_mk_bvsub(q->z, m->before[l], m->before[k]));
	Z3_ast claim = both(q, Z3_mk_bvule(q->z, m->after[k], m->after[l]),
			    either(q, Z3_mk_bvult(q->z, m->before[l], m->before[k]), closer));

	if (most < least || most - least >= NUMBERS_MOST || !holds(m, claim))
		return UINT64_MAX;
	return most - least + 2;
}

static uint64_t search(struct measure *m)
{
	unsigned count = m->q->ranked_count;
	uint64_t bound = UINT64_MAX;

	for (unsigned k = 0; k < count && bound == UINT64_MAX; k++)
		if (m->before[k] != m->after[k])
			bound = by_one(m, k);
	for (unsigned k = 0; k < count && bound == UINT64_MAX; k++)
		for (unsigned l = 0; l < count && bound == UINT64_MAX; l++)
			if (k != l && (m->before[k] != m->after[k] || m->before[l] != m->after[l]))
				bound = by_two(m, k, l);
	return bound;
}

/* Numbers at the head of which something is known, registers first. */
static void choose(struct query *q, const struct fay_state *head)
{
	for (uint32_t i = 0; i < head->count && q->ranked_count < FAY_RANKED; i++)
		if ((i < LOC_FLAGS_A || i >= LOC_SLOTS) && fay_value_numeric(&head->loc[i]) &&
		    head->loc[i].init == 0xff && i != FAY_RSP &&
		    !fay_scalar_is_const(&head->loc[i].s))
			q->ranked[q->ranked_count++] = i;
}

uint64_t fay_smt_loop_bound(struct fay_analysis *an, uint32_t header)
{
	struct query *q = fay_smt_query_create(an);
	struct measure m = { .q = q, .head = an->in[header] };
	struct sym again = { 0 };
	bool checking = an->checking;
	uint64_t bound = UINT64_MAX;

	if (!q)
		return bound;
	q->cut = header;
	q->target = an->graph->nodes[header].last;
	q->again = &again;
	q->work = WORK;
	choose(q, m.head);
	an->checking = false;
	if (q->ranked_count && fay_smt_find_loop(q) && fay_smt_build(q) && again.condition) {
		memcpy(m.before, q->ranked_terms, sizeof(m.before));
		m.reached = again.condition;
		memcpy(q->now.reg, again.reg, sizeof(again.reg));
		q->now.slots = again.slots;
		memcpy(q->now.slot, again.slot, again.slots * sizeof(*again.slot));
		for (unsigned k = 0; k < q->ranked_count; k++)
			m.after[k] = fay_smt_location(q, m.head, q->ranked[k]);
		bound = search(&m);
	}
	an->checking = checking;
	free(again.slot);
	fay_smt_query_destroy(q);
	return bound;
}
