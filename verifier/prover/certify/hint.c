/* SPDX-License-Identifier: MIT */
/* What the prover knows: of places by its invariant, ranges to try first; what is still read. */
#include "verifier/prover/transfer/live.h"

#include "certify.h"

bool fay_hint_analysis(const void *context, uint32_t node, uint64_t location, struct fay_hint *hint)
{
	const struct fay_analysis *an = context;
	const struct fay_state *s = an->in ? an->in[node] : NULL;
	uint64_t at = location;

	if (!s)
		return false;
	if (location >= LOCATION_STACK) {
		uint64_t low = (location - LOCATION_STACK) / 4; /* byte -1 - low */

		if ((low + 1) % 4)
			return false;
		at = LOC_SLOTS + (low + 1) / 4 - 1;
	}
	if (at >= s->count || !fay_value_numeric(&s->loc[at]))
		return false;
	*hint = (struct fay_hint){ s->loc[at].s.umin, s->loc[at].s.umax, s->loc[at].s.smin,
				   s->loc[at].s.smax };
	return true;
}

uint32_t *fay_hint_live(const struct fay_certify *c)
{
	struct fay_analysis an = { .cfg = c->cfg, .graph = c->graph };
	uint32_t *live;

	if (!c->subject->hash.size)
		return fay_live_find(&an);
	/* a host takes a result, and has helpers of its own */
	live = c->subject->slot_count ? NULL : fay_live_find(&an);
	for (uint32_t i = 0; live && i < c->graph->node_count; i++)
		live[i] |= 1u << FAY_RAX;
	return live;
}
