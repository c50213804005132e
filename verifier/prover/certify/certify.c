/* SPDX-License-Identifier: MIT */
/* One probe: see certify.h. */
#include "certify_parts.h"

/* ---- writing ---- */

static void put_targets(struct certify *k, struct fay_bytes *out, uint32_t at)
{
	const struct place *p = &k->places[at];
	const struct fay_node *n = &k->c->graph->nodes[p->node];
	const struct fay_block *block = &k->c->cfg->blocks[n->block];
	const struct fay_insn *last = &k->c->cfg->insns[block->first + block->count - 1];
	unsigned count = n->branch || last->op == OP_JCC ? 2 : n->succ[0] == FAY_NONE ? 0 : 1;

	if (last->op == OP_JMP_TABLE && !n->branch) {
		fay_bytes_number(out, (uint64_t)p->table_count << 2);
		for (uint32_t i = 0; i < p->table_count; i++)
			fay_bytes_signed(out, (int64_t)p->table[i] - at);
		return;
	}
	fay_bytes_number(out, count << 2 | (n->branch ? END_CONDITION : END_NATURAL));
	if (n->branch)
		fay_bytes_number(out, n->branch - 1u);
	for (unsigned i = 0; i < count; i++)
		fay_bytes_signed(out, (int64_t)k->order.of[n->succ[i]] - at);
}

static void put_probe(struct certify *k, struct fay_bytes *out)
{
	int64_t before = 0;

	fay_bytes_number(out, k->count);
	for (uint32_t i = 0; i < k->count; i++) {
		const struct place *p = &k->places[i];
		const struct fay_block *block =
			&k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
		int64_t address = (int64_t)(k->c->cfg->insns[block->first].address -
					    k->c->subject->text.start);
		bool head = k->c->graph->nodes[p->node].is_header;

		fay_bytes_number(out, (uint64_t)block->count << 2 |
					      (p->join && !head ? NODE_JOIN : 0) |
					      (head ? NODE_HEAD : 0));
		fay_bytes_signed(out, address - before);
		before = address;
		put_targets(k, out, i);
		if (head) {
			fay_bytes_number(out, p->end - i);
			fay_bytes_number(out, p->measure);
		}
		if (p->join)
			fay_bytes_put(out, p->list.at, p->list.size);
		else if (head)
			fay_bytes_number(out, 0);
	}
}

static void add_stop(struct certify *k, wide n)
{
	for (uint32_t i = 0; i < k->stop_count; i++)
		if (k->stops[i] == n)
			return;
	if (k->stop_count < 1024)
		k->stops[k->stop_count++] = n;
}

/* Where ranges may end. */
static void find_stops(struct certify *k)
{
	static const wide common[COMMON_STOPS] = { INT32_MIN, -1,         0,
						   1,         INT32_MAX,  UINT32_MAX,
						   INT64_MAX, UINT64_MAX, INT64_MIN };
	const struct fay_cfg *cfg = k->c->cfg;

	k->stops = calloc(1024, sizeof(*k->stops));
	if (!k->stops)
		abort();
	for (unsigned i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		add_stop(k, common[i]);
	for (uint32_t i = 0; i < cfg->insn_count; i++) {
		const struct fay_insn *insn = &cfg->insns[i];

		if (insn->src.kind != OPERAND_IMM)
			continue;
		for (int d = -1; d <= 1; d++) {
			add_stop(k, (wide)insn->src.imm + d);
			if (insn->src.imm < 0 && insn->width == 32)
				add_stop(k, (wide)(uint32_t)insn->src.imm + d);
		}
	}
}

static void begin(struct certify *k, struct fay_probe_facts *facts)
{
	const struct fay_graph *graph = k->c->graph;
	const struct fay_cfg *cfg = k->c->cfg;
	bool ok = fay_order_init(&k->order, graph);
	struct walk *w = calloc(1, sizeof(*w));

	k->w = w;
	k->places = calloc(k->count, sizeof(*k->places));
	if (w)
		w->nodes = calloc(k->count + 1, sizeof(*w->nodes));
	if (!ok || !w || !k->places || !w->nodes)
		abort();
	w->node_count = k->count;
	w->subject = w->m.subject = w->t.subject = k->c->subject;
	w->policy = w->m.policy = w->t.policy = k->c->policy;
	w->m.next_id = w->t.next_id = &w->next_id;
	w->m.refine = w->t.refine = !k->c->mispredicted;
	w->m.facts = w->t.facts = facts;
	for (uint32_t i = 0; i < k->count; i++) {
		const struct fay_node *node = &graph->nodes[k->order.at[i]];

		k->places[i].node = k->order.at[i];
		k->places[i].end = k->order.end[k->order.at[i]];
		w->nodes[i].address =
			(uint32_t)(cfg->insns[cfg->blocks[node->block].first].address -
				   k->c->subject->text.start);
		if (node->is_header)
			w->nodes[i].body = k->places[i].end - i;
	}
	find_stops(k);
}

static void end(struct certify *k)
{
	for (uint32_t i = 0; i < k->count; i++) {
		certify_drop(&k->places[i].in);
		certify_drop(&k->places[i].back);
		free(k->places[i].reps);
		free(k->places[i].unwritten);
		free(k->places[i].list.at);
		free(k->places[i].body.at);
		free(k->places[i].table);
	}
	free(k->places);
	free(k->stops);
	free(k->w->nodes);
	free(k->w);
	fay_order_deinit(&k->order);
}

bool certify_attempt(struct fay_certify *c, enum effort effort, bool partly, struct fay_bytes *out)
{
	struct certify k = { .c = c, .count = c->graph->node_count, .effort = effort };
	struct fay_probe_facts facts = { 0 };
	bool ok;

	c->refusal.rule = FAY_RULE_NONE;
	begin(&k, &facts);
	machine_entry(&k.w->m);
	certify_deliver(&k, 0, 0);
	k.places[0].in = k.places[0].back;
	k.places[0].back = NULL;
	ok = certify_process(&k, 0, k.count);
	if (ok || partly)
		put_probe(&k, out);
	end(&k);
	return ok;
}

bool fay_certify_probe(struct fay_certify *c, struct fay_bytes *out)
{
	return certify_attempt(c, EFFORT_NEEDED, false, out) ||
	       certify_attempt(c, EFFORT_RELATED, false, out) ||
	       certify_attempt(c, EFFORT_HOPEFUL, false, out);
}
