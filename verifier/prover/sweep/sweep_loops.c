/* SPDX-License-Identifier: MIT */
/*
 * The loops of the sweep (sweep.c): rounds, what the head's state is widened and narrowed to, when
 * a nest is run anew with relations, bounds, and how loops are left.
 */
#include "sweep_parts.h"
#include "verifier/prover/state/state.h"

#define ROUNDS_MAX 16u     /* of one stay in a loop */
#define ROUNDS_RELATING 3u /* in which relations and ranges of arrays may become more */

static const struct fay_join_plan plain_join;

static void tag(struct fay_state *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct fay_value *v = &s->loc[i];

		v->origin = fay_value_numeric(v) && v->init == 0xff ? i + 1 : 0;
		v->dlo = v->dhi = 0;
	}
}

/* (Re)starts a round. */
static void start(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_analysis *an = w->an;

	f->mark = w->log_count;
	f->open = false;
	fay_sweep_gain_begin(an);
	tag(an->in[f->head]);
	fay_sweep_run(w, f->head, an->in[f->head]);
}

/* The state of f's head becomes what the loop was entered with. */
static void begin(struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	struct fay_analysis *an = w->an;
	struct fay_state *s = fay_sweep_copy(w, f->entered);

	fay_sweep_result_drop(w, f->head);
	if (s && !fay_state_canonical(s))
		fay_sweep_fall_short(w);
	if (s && !an->fell_short && an->in[f->head] &&
	    (an->in[f->head]->count != s->count ||
	     !fay_state_join(s, an->in[f->head], &plain_join)))
		fay_sweep_fall_short(w);
	fay_sweep_drop(w, an->in[f->head]);
	an->in[f->head] = s;
}

/* The head may have a state from when it was entered in the last round of the loop around. */
bool fay_sweep_enter(struct fay_sweep *w, uint32_t head, struct fay_state *entered)
{
	struct fay_analysis *an = w->an;
	struct fay_sweep_frame *f;

	if (fay_sweep_result_use(w, head, entered))
		return false;
	if (!fay_sweep_grow((void **)&w->frames, &w->frames_capacity, w->depth,
			    sizeof(*w->frames))) {
		fay_sweep_drop(w, entered);
		return fay_sweep_fall_short(w);
	}
	if (!w->depth) {
		w->mode = w->related || fay_widening_needs_relations(an, &w->order, head, entered)
				  ? SWEEP_RELATED
				  : SWEEP_PLAIN;
		entered->plain = w->mode == SWEEP_PLAIN;
	}
	f = &w->frames[w->depth++];
	*f = (struct fay_sweep_frame){ .head = head,
				       .entered = entered,
				       .first = !an->in[head],
				       .before = fay_sweep_gain_of(an) };
	begin(w, f);
	if (!an->fell_short)
		start(w, f);
	return true;
}

static void drop_waiting(struct fay_sweep *w, uint32_t node)
{
	fay_pool_drop_list(&w->pool, w->waiting[node]);
	w->waiting[node] = NULL;
}

/* Throws away what left the loop since the round began. */
static void take_back(struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	while (w->log_count > f->mark) {
		const struct fay_sweep_exit *e = &w->log[--w->log_count];

		/* What waited within the loop is gone already. */
		if (fay_sweep_inside(w, e->to, f->head) || w->waiting[e->to] != e->state)
			continue;
		w->waiting[e->to] = e->state->next;
		fay_sweep_drop(w, e->state);
	}
}

/* Heads of loops within begin anew. */
static void forget_inner(struct fay_sweep *w, uint32_t head)
{
	for (uint32_t at = w->order.of[head] + 1; at < w->order.end[head]; at++) {
		fay_sweep_result_drop(w, w->order.at[at]);
		fay_sweep_drop(w, w->an->in[w->order.at[at]]);
		w->an->in[w->order.at[at]] = NULL;
	}
}

/* ---- rounds ---- */

static bool holds(struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	const struct fay_state *head = w->an->in[f->head];

	for (struct fay_state *s = w->waiting[f->head]; s; s = s->next)
		if (!fay_state_includes(head, s))
			return false;
	return fay_state_includes(head, f->entered);
}

/* The round again, from `state`. */
static void again(struct fay_sweep *w, struct fay_sweep_frame *f, struct fay_state *state)
{
	drop_waiting(w, f->head);
	take_back(w, f);
	w->an->in[f->head] = state;
	if (!w->an->fell_short)
		start(w, f);
}

/* Makes `joined`, which was `old`, include what came around. */
static void join_back(struct fay_sweep *w, const struct fay_sweep_frame *f,
		      struct fay_state *joined, struct fay_state *old)
{
	struct fay_join_plan plan = { .settle = f->rounds > ROUNDS_RELATING,
				      .guess_fills = w->mode != SWEEP_PLAIN &&
						     f->rounds <= ROUNDS_RELATING };

	for (struct fay_state *s = w->waiting[f->head]; s && !w->an->fell_short; s = s->next)
		if (s->count != joined->count || !fay_state_join(joined, s, &plan))
			fay_sweep_fall_short(w);
	if (w->an->fell_short)
		return;
	if (f->rounds == 1 || w->widening.head != f->head)
		fay_widening_loop(&w->widening, w->an, &w->order, f->head, f->entered);
	fay_widening_apply(&w->widening, joined, old, f->rounds, w->mode);
	if (w->mode == SWEEP_PLAIN)
		return;
	fay_relations_widen(joined, old, f->rounds);
	for (struct fay_state *s = w->waiting[f->head]; s; s = s->next)
		fay_relations_keep_shown(joined, s);
}

static void widen(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_state *old = w->an->in[f->head], *joined = fay_sweep_copy(w, old);

	if (++f->rounds > ROUNDS_MAX)
		fay_sweep_fall_short(w);
	if (joined && !w->an->fell_short)
		join_back(w, f, joined, old);
	again(w, f, joined);
	fay_sweep_drop(w, old);
}

/* Whether some location's numbers are fewer where the loop is entered and where it comes around
 * than the head's state says. */
static bool may_narrow(const struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	const struct fay_state *head = w->an->in[f->head];

	for (uint32_t i = 0; i < head->count; i++) {
		struct fay_scalar s = f->entered->loc[i].s;

		if (!fay_value_numeric(&head->loc[i]) || fay_scalar_equal(&s, &head->loc[i].s))
			continue;
		for (const struct fay_state *b = w->waiting[f->head]; b; b = b->next)
			s = fay_scalar_join(&s, &b->loc[i].s);
		if (!fay_scalar_includes(&s, &head->loc[i].s))
			return true;
	}
	return false;
}

/* The head's state held, but was widened: what comes in is perhaps less. True: another round has
 * begun. */
static bool narrow(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_analysis *an = w->an;
	struct fay_state *less;

	f->settled = true;
	if (!f->rounds || !may_narrow(w, f))
		return false;
	less = fay_sweep_copy(w, f->entered);
	if (less && !fay_state_canonical(less))
		fay_sweep_fall_short(w);
	for (struct fay_state *s = w->waiting[f->head]; s && less && !an->fell_short; s = s->next)
		if (!fay_state_join(less, s, &plain_join))
			fay_sweep_fall_short(w);
	if (an->fell_short) {
		fay_sweep_drop(w, less);
		return false;
	}
	f->narrowing = true;
	f->wide = an->in[f->head];
	forget_inner(w, f->head);
	again(w, f, less);
	return true;
}

/* Back to the state that held. */
static void widen_again(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_state *wide = f->wide;

	f->wide = NULL;
	f->narrowing = false;
	fay_sweep_drop(w, w->an->in[f->head]);
	again(w, f, wide);
}

/* ---- relations ---- */

/* Whether the loops around this one are in their first rounds, or in the first that comes here, and
 * so enter it with the least that they can. */
static bool entered_with_least(const struct fay_sweep *w)
{
	if (w->frames[w->depth - 1].first)
		return true;
	for (uint32_t i = 0; i + 1 < w->depth; i++)
		if (w->frames[i].rounds)
			return false;
	return true;
}

/* Begins the outermost loop anew, in the next mode. */
static void relate(struct fay_sweep *w)
{
	struct fay_sweep_frame *f = &w->frames[0];

	if (w->mode == SWEEP_FINE) {
		fay_sweep_fall_short(w);
		return;
	}
	w->mode++;
	while (w->depth > 1) {
		struct fay_sweep_frame *inner = &w->frames[--w->depth];

		fay_sweep_drop(w, inner->entered);
		fay_sweep_drop(w, inner->wide);
	}
	for (uint32_t at = w->order.of[f->head]; at < w->order.end[f->head]; at++)
		drop_waiting(w, w->order.at[at]);
	take_back(w, f);
	forget_inner(w, f->head);
	fay_sweep_drop(w, f->wide);
	fay_sweep_drop(w, w->an->in[f->head]);
	w->an->in[f->head] = NULL;
	f->wide = NULL;
	f->rounds = 0;
	f->narrowing = f->settled = false;
	f->entered->plain = false;
	begin(w, f);
	if (!w->an->fell_short)
		start(w, f);
}

/* What left the outermost loop goes on without what only this loop was to know. */
static void forget_relations(struct fay_sweep *w)
{
	for (uint32_t i = 0; i < w->log_count; i++) {
		const struct fay_sweep_exit *e = &w->log[i];

		if (w->related || fay_sweep_inside(w, e->to, w->frames[0].head))
			continue;
		fay_fills_settle(e->state);
		e->state->plain = true;
		e->state->relation_count = e->state->fill_count = 0;
	}
	w->log_count = 0;
}

/* ---- the end of a loop ---- */

/* From the round that held. */
static void find_bound(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_analysis *an = w->an;
	struct fay_state *back = w->waiting[f->head];

	for (struct fay_state *s = back ? back->next : NULL; s; s = s->next)
		fay_ranking_merge(back, s);
	an->bounds[f->head] = fay_ranking_bound_of(an->in[f->head], back);
	f->ranked = an->bounds[f->head] != UINT64_MAX;
	if (f->ranked || f->open)
		return;
	if (!w->unroll.an)
		fay_unroll_init(&w->unroll, an);
	an->checking = false;
	an->bounds[f->head] = fay_unroll_bound(&w->unroll, f->head, f->entered);
	an->checking = true;
}

/* What left the innermost loop has the tags of the loop around from now on. holds() has made slots
 * lie alike. */
static void compose_tags(struct fay_sweep *w, const struct fay_sweep_frame *f)
{
	uint32_t kept = f->mark;

	for (uint32_t k = f->mark; k < w->log_count; k++) {
		struct fay_sweep_exit e = w->log[k];

		if (fay_sweep_inside(w, e.to, f->head))
			continue;
		w->log[kept++] = e;
		fay_sweep_compose_tags(e.state, f->entered, w->waiting[f->head]);
	}
	w->log_count = kept;
}

static void leave(struct fay_sweep *w, struct fay_sweep_frame *f)
{
	struct fay_analysis *an = w->an;
	uint32_t head = f->head;
	bool open = f->open;

	if (w->depth > 1) {
		fay_sweep_result_keep(w, f);
		compose_tags(w, f);
	} else {
		forget_relations(w);
	}
	fay_sweep_gain_add(an, &f->before);
	drop_waiting(w, head);
	fay_sweep_drop(w, f->entered);
	w->depth--;
	if (open)
		fay_sweep_leave_open(w);
	if (w->depth || an->keep)
		return;
	fay_sweep_drop(w, an->in[head]);
	an->in[head] = NULL;
	forget_inner(w, head);
}

uint32_t fay_sweep_finish(struct fay_sweep *w)
{
	struct fay_sweep_frame *f = &w->frames[w->depth - 1];
	uint32_t head = f->head;

	if (!holds(w, f)) {
		if (f->narrowing)
			widen_again(w, f);
		else
			widen(w, f);
		return head;
	}
	if (!f->settled && narrow(w, f))
		return head;
	fay_sweep_drop(w, f->wide);
	f->wide = NULL;
	find_bound(w, f);
	f->open |= w->an->bounds[head] == UINT64_MAX;
	if (f->open && entered_with_least(w)) {
		relate(w);
		return w->frames[0].head;
	}
	leave(w, f);
	return FAY_NONE;
}
