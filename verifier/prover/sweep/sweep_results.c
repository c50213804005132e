/* SPDX-License-Identifier: MIT */
/*
 * What loops within loops gave. The loop around is run in rounds, and in the later ones its inner
 * loops are entered with states that their heads' states include already. Running such a loop again
 * would run the same blocks from the same states: all that its last round gave still holds, because
 * that round started from the head's state alone, what came around was included in that, and so is
 * what it is entered with now. So the states that left it are delivered again.
 *
 * Of the entry only the ranking tags count, which are composed anew. A loop whose bound followed
 * from what it was entered with (unroll.c) is run again. A result lasts as long as the state of its
 * head.
 */
#include "sweep_parts.h"

#include <stdlib.h>

_Static_assert(sizeof(struct fay_probe_facts) == 72,
	       "a fact was added: it is to be gathered here, too");

/* What is known of the probe without looking at its code stays. */
void fay_sweep_gain_begin(struct fay_analysis *an)
{
	struct fay_probe_facts *f = an->facts;

	f->event_fields = f->clobbered_gprs = f->arguments_used = f->helpers =
		f->clobbered_vectors = f->cpu_features = 0;
	f->clobbers_upper = f->uses_mxcsr = f->aligned_stack = false;
	an->obligation_count = 0;
	an->deepest = 0;
}

struct fay_sweep_gain fay_sweep_gain_of(const struct fay_analysis *an)
{
	return (struct fay_sweep_gain){ .facts = *an->facts,
					.obligations = an->obligation_count,
					.deepest = an->deepest };
}

void fay_sweep_gain_add(struct fay_analysis *an, const struct fay_sweep_gain *gain)
{
	struct fay_probe_facts *f = an->facts;
	const struct fay_probe_facts *more = &gain->facts;

	f->event_fields |= more->event_fields;
	f->clobbered_gprs |= more->clobbered_gprs;
	f->arguments_used |= more->arguments_used;
	f->helpers |= more->helpers;
	f->clobbered_vectors |= more->clobbered_vectors;
	f->clobbers_upper |= more->clobbers_upper;
	f->uses_mxcsr |= more->uses_mxcsr;
	f->aligned_stack |= more->aligned_stack;
	f->cpu_features |= more->cpu_features;
	an->obligation_count += gain->obligations;
	an->deepest = an->deepest > gain->deepest ? an->deepest : gain->deepest;
}

/* Where the inner loop does not change the location that a tag is of. */
void fay_sweep_compose_tags(struct fay_state *left, const struct fay_state *entered,
			    const struct fay_state *back)
{
	for (uint32_t i = 0; i < left->count; i++) {
		struct fay_value *v = &left->loc[i];
		const struct fay_value *t;

		if (!v->origin)
			continue;
		t = &entered->loc[v->origin - 1];
		if (!t->origin || (back && !fay_ranking_unmoved(back, v->origin - 1)) ||
		    __builtin_add_overflow(v->dlo, t->dlo, &v->dlo) ||
		    __builtin_add_overflow(v->dhi, t->dhi, &v->dhi))
			v->origin = 0;
		else
			v->origin = t->origin;
	}
}

void fay_sweep_result_drop(struct fay_sweep *w, uint32_t head)
{
	struct fay_sweep_result *r = w->results[head];

	if (!r)
		return;
	for (uint32_t i = 0; i < r->exit_count; i++)
		fay_sweep_drop(w, r->exits[i].state);
	fay_sweep_drop(w, r->back);
	free(r->exits);
	free(r);
	w->results[head] = NULL;
}

/* False: out of memory, or of states; then there is no result. */
static bool keep_states(struct fay_sweep *w, const struct fay_sweep_frame *f,
			struct fay_sweep_result *r)
{
	const struct fay_state *back = w->waiting[f->head];

	r->exits = calloc(w->log_count - f->mark + 1, sizeof(*r->exits));
	if (!r->exits || (back && !(r->back = fay_sweep_copy(w, back))))
		return false;
	for (uint32_t k = f->mark; k < w->log_count; k++) {
		struct fay_sweep_exit e = w->log[k];

		if (fay_sweep_inside(w, e.to, f->head))
			continue;
		e.state = fay_sweep_copy(w, e.state);
		if (!e.state)
			return false;
		r->exits[r->exit_count++] = e;
	}
	return true;
}

void fay_sweep_result_keep(struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	struct fay_sweep_result *r;

	fay_sweep_result_drop(w, f->head);
	if (!f->ranked)
		return;
	r = w->results[f->head] = calloc(1, sizeof(*r));
	if (!r)
		return;
	r->open = f->open;
	r->gain = fay_sweep_gain_of(w->an);
	if (!keep_states(w, f, r))
		fay_sweep_result_drop(w, f->head);
}

bool fay_sweep_result_use(struct fay_sweep *w, uint32_t head, struct fay_state *entered)
{
	const struct fay_sweep_result *r = w->results[head];

	if (!r || !fay_state_includes(w->an->in[head], entered))
		return false;
	for (uint32_t i = 0; i < r->exit_count; i++) {
		struct fay_state *s = fay_sweep_copy(w, r->exits[i].state);

		if (!s)
			break; /* it fell short */
		fay_sweep_compose_tags(s, entered, r->back);
		fay_sweep_deliver(w, r->exits[i].to, s);
	}
	fay_sweep_gain_add(w->an, &r->gain);
	if (r->open)
		fay_sweep_leave_open(w);
	fay_sweep_drop(w, entered);
	return true;
}
