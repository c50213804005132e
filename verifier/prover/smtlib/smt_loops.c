/* SPDX-License-Identifier: MIT */
/*
 * The bounds of loops as formulas. A loop ends because one location, the counter, moves on every
 * way from one visit of its head to the next by an amount of one sign, while the invariant keeps it
 * within an interval (ranking.c). Written here, block by block of the loop, with the counter's
 * value at the last visit as one unknown number: which locations are that number plus how much at
 * most and at least (the analysis's tags), that each edge keeps this, that a back edge has moved
 * the counter by the amount claimed, and that so small steps in so small an interval make the
 * bound.
 */
#include "smt_obligations.h"

#include <stdlib.h>

#include "verifier/prover/loops/loops.h"

static uint64_t head_address(const struct fay_analysis *an, uint32_t head)
{
	return an->cfg->insns[an->cfg->blocks[an->graph->nodes[head].block].first].address;
}

/* The distances from `base` that `tags` claims of the terms as they are, as one formula. */
static Z3_ast distances(struct query *q, const struct fay_state *tags, uint32_t counter,
			Z3_ast base)
{
	Z3_ast all = Z3_mk_true(q->z);

	for (uint32_t i = 0; i < tags->count; i++) {
		Z3_ast v, d;

		if (tags->loc[i].origin != counter + 1 || (i >= LOC_FLAGS_A && i < LOC_SLOTS))
			continue;
		v = fay_smt_location(q, tags, i);
		if (!v)
			continue;
		d = Z3_mk_bvsub(q->z, v, base);
		all = both(q, all,
			   both(q, Z3_mk_bvsge(q->z, d, bits(q, (uint64_t)tags->loc[i].dlo, 64)),
				Z3_mk_bvsle(q->z, d, bits(q, (uint64_t)tags->loc[i].dhi, 64))));
	}
	return all;
}

static void edge(struct proof *p, struct fay_smt2 *out, const struct fay_ranking *r, uint32_t to,
		 uint32_t counter, Z3_ast base, Z3_ast taken)
{
	struct query *q = p->q;
	const struct fay_state *tags = to == r->header ? r->back
				       : to <= r->last ? r->tagged[to]
						       : NULL;
	char what[96];

	if (to == FAY_NONE || !tags ||
	    (to != r->header && !fay_graph_in_loop(q->an->graph, to, r->header)))
		return;
	snprintf(what, sizeof(what),
		 to == r->header ? "the counter has moved at the back edge to .text+0x%llx"
				 : "the counter of the loop at .text+0x%llx",
		 (unsigned long long)(head_address(q->an, r->header) - q->an->image->text.start));
	fay_smt2_put(out, q, "TRM-LOOP", q->an->cfg->insns[q->an->insn].address, what,
		     both(q, taken, negate(q, distances(q, tags, counter, base))), "unsat");
}

static bool prove_node(struct fay_analysis *an, struct fay_smt2 *out, const struct fay_ranking *r,
		       uint32_t node, uint32_t counter)
{
	const struct fay_node *n = &an->graph->nodes[node];
	const struct fay_insn *last = &an->cfg->insns[an->cfg->blocks[n->block].first +
						      an->cfg->blocks[n->block].count - 1];
	struct proof p;
	Z3_ast base, c;
	enum fay_cc cc;
	bool branches = fay_node_branches(an, node, &cc);
	/* NULL: the obligations are in files already */
	bool ok = fay_proof_begin(&p, an, NULL, node);

	if (ok) {
		base = fresh_bits(p.q, 64);
		fay_smt_assume(p.q, distances(p.q, r->tagged[node], counter, base));
		if (fay_proof_block(&p, node) && !branches) {
			for (uint32_t k = 0; k < (n->table ? n->table_count : 1); k++)
				edge(&p, out, r, fay_node_succ(n, k), counter, base,
				     Z3_mk_true(p.q->z));
		} else if (branches && an->node == node && an->cfg->insns + an->insn == last) {
			c = fay_smt_condition(p.q, cc);
			edge(&p, out, r, n->succ[0], counter, base, c);
			edge(&p, out, r, n->succ[1], counter, base, negate(p.q, c));
		}
		ok = !p.q->failed && Z3_get_error_code(p.q->z) == Z3_OK;
	}
	fay_proof_end(&p);
	return ok;
}

/* span / least + 1 visits at most, if no step leaves the interval and comes back by wrapping. */
static void prove_sum(struct fay_analysis *an, struct fay_smt2 *out, uint32_t head, uint64_t span,
		      const struct fay_value *moved)
{
	struct query *q = fay_smt_query_create(an);
	uint64_t least = moved->dlo > 0 ? (uint64_t)moved->dlo : -(uint64_t)moved->dhi,
		 most = moved->dlo > 0 ? (uint64_t)moved->dhi : -(uint64_t)moved->dlo;
	Z3_ast wide_span, goal;

	if (!q)
		return;
	wide_span = zero_extend(q, bits(q, span, 64), 64, 128);
	goal = both(q,
		    Z3_mk_bvule(q->z,
				Z3_mk_bvadd(q->z, wide_span,
					    zero_extend(q, bits(q, most, 64), 64, 128)),
				zero_extend(q, bits(q, UINT64_MAX, 64), 64, 128)),
		    both(q, Z3_mk_bvugt(q->z, bits(q, least, 64), bits(q, 0, 64)),
			 Z3_mk_bvuge(q->z, bits(q, an->bounds[head] - 1, 64),
				     Z3_mk_bvudiv(q->z, bits(q, span, 64), bits(q, least, 64)))));
	fay_smt2_put(out, q, "TRM-LOOP", head_address(an, head),
		     "the bound follows from the counter's interval and steps", negate(q, goal),
		     "unsat");
	fay_smt_query_destroy(q);
}

/* The location whose interval and steps give the bound that is reported; UINT32_MAX: another
 * argument did. */
static uint32_t find_counter(const struct fay_analysis *an, const struct fay_ranking *r,
			     uint64_t *span)
{
	const struct fay_state *head = an->in[r->header];

	for (uint32_t i = 0; r->back && i < head->count; i++) {
		const struct fay_value *at = &head->loc[i], *v = &r->back->loc[i];
		uint64_t by_unsigned = at->s.umax - at->s.umin,
			 by_signed = (uint64_t)at->s.smax - (uint64_t)at->s.smin, step;

		if (v->origin != i + 1 || !fay_value_numeric(at) ||
		    (i >= LOC_FLAGS_A && i < LOC_SLOTS) || (v->dlo <= 0 && v->dhi >= 0))
			continue;
		*span = by_unsigned < by_signed ? by_unsigned : by_signed;
		step = v->dlo > 0 ? (uint64_t)v->dlo : -(uint64_t)v->dhi;
		if (*span / step < an->bounds[r->header])
			return i;
	}
	return UINT32_MAX;
}

bool fay_proof_loops(struct fay_analysis *an, struct fay_smt2 *out)
{
	struct fay_ranking r;
	bool ok = fay_ranking_init(&r, an);

	for (uint32_t head = 0;
	     ok && head < an->graph->node_count && !out->error && !out->truncated; head++) {
		uint32_t counter;
		uint64_t span;

		if (!an->graph->nodes[head].is_header || !an->in[head])
			continue;
		fay_ranking_run(&r, head);
		ok = !r.failed;
		counter = ok ? find_counter(an, &r, &span) : UINT32_MAX;
		if (ok && counter == UINT32_MAX)
			fay_smt2_unstated(
				out, "TRM-LOOP", "the bound of a loop",
				r.back ? "two values that meet, iterations followed one by one, or "
					 "progress that the solver showed: the analysis alone"
				       : "no back edge is ever taken: see UNREACHABLE");
		for (uint32_t node = head; ok && counter != UINT32_MAX && node <= r.last; node++)
			if (r.tagged[node] && fay_graph_in_loop(an->graph, node, head))
				ok = prove_node(an, out, &r, node, counter);
		if (ok && counter != UINT32_MAX)
			prove_sum(an, out, head, span, &r.back->loc[counter]);
		fay_ranking_clear(&r);
	}
	fay_ranking_deinit(&r);
	return ok;
}
