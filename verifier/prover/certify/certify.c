/* SPDX-License-Identifier: MIT */
/* One probe: see certify.h. */
#include "certify_parts.h"

/* ---- writing ---- */

static void put_targets(struct certify *k, struct fay_bytes *out, uint32_t at)
{
	const struct place *p = &k->places[at];
	const struct fay_node *n = &k->c->graph->nodes[p->node];
	const struct fay_block *block = &k->c->cfg->blocks[n->block];
	const struct fay_insn *last = &k->c->cfg->insns[block->first + p->skip + p->count - 1];
	unsigned condition = p->parted ? p->condition : n->branch;
	unsigned count = condition || last->op == OP_JCC        ? 2
			 : !p->parted && n->succ[0] == FAY_NONE ? 0
								: 1;

	if (last->op == OP_JMP_TABLE && !condition) {
		fay_bytes_number(out, (uint64_t)p->table_count << 2);
		for (uint32_t i = 0; i < p->table_count; i++)
			fay_bytes_signed(out, (int64_t)p->table[i] - at);
		return;
	}
	fay_bytes_number(out, count << 2 | (condition ? END_CONDITION : END_NATURAL));
	if (condition)
		fay_bytes_number(out, condition - 1u);
	for (unsigned i = 0; i < count; i++)
		fay_bytes_signed(out, (int64_t)p->to[i] - at);
}

uint32_t certify_address(const struct certify *k, uint32_t node, uint32_t skip)
{
	const struct fay_cfg *cfg = k->c->cfg;
	const struct fay_block *block = &cfg->blocks[k->c->graph->nodes[node].block];

	return (uint32_t)(cfg->insns[block->first + skip].address - k->c->subject->text.start);
}

void certify_put(struct certify *k, struct fay_bytes *out)
{
	int64_t before = 0;

	fay_bytes_number(out, k->count);
	for (uint32_t i = 0; i < k->count; i++) {
		const struct place *p = &k->places[i];
		int64_t address = certify_address(k, p->node, p->skip);
		unsigned flags = p->head ? NODE_HEAD : p->join ? NODE_JOIN : 0;

		fay_bytes_number(out, (uint64_t)p->count << 2 | flags);
		fay_bytes_signed(out, address - before);
		before = address;
		put_targets(k, out, i);
		if (p->head) {
			fay_bytes_number(out, p->end - i);
			fay_bytes_number(out, p->measure);
		}
		if (p->join)
			fay_bytes_put(out, p->list.at, p->list.size);
		else if (p->head)
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

static void find_compared(struct certify *k)
{
	const struct fay_cfg *cfg = k->c->cfg;

	k->compared = malloc(COMPARED_MOST * sizeof(*k->compared));
	if (!k->compared)
		abort();
	for (uint32_t node = 0; node < k->c->graph->node_count; node++) {
		const struct fay_block *block = &cfg->blocks[k->c->graph->nodes[node].block];

		for (uint32_t i = 0; i < block->count; i++) {
			const struct fay_insn *insn = &cfg->insns[block->first + i];

			if (insn->op == OP_CMP && insn->src.kind == OPERAND_IMM &&
			    k->compared_count < COMPARED_MOST)
				k->compared[k->compared_count++] = (struct compared){
					.n = insn->src.imm,
					.node = node,
					.location = insn->dst.kind == OPERAND_REG ? insn->dst.reg
										  : UINT64_MAX,
				};
		}
	}
}

void certify_begin(struct certify *k, uint32_t places, struct fay_probe_facts *facts)
{
	bool ok = fay_order_init(&k->order, k->c->graph);
	struct walk *w = calloc(1, sizeof(*w));

	k->w = w;
	k->places = malloc(places * sizeof(*k->places)); /* mostly far more than are made */
	k->depth = malloc(k->c->graph->node_count * sizeof(*k->depth));
	if (w)
		w->nodes = malloc((places + 1) * sizeof(*w->nodes));
	if (!ok || !w || !k->places || !k->depth || !w->nodes)
		abort();
	memset(k->depth, 0xff, k->c->graph->node_count * sizeof(*k->depth));
	w->node_count = places;
	w->subject = w->m.subject = w->t.subject = k->c->subject;
	w->policy = w->m.policy = w->t.policy = k->c->policy;
	w->m.shared = w->t.shared = &w->shared;
	w->m.refine = w->t.refine = !k->c->mispredicted;
	w->m.facts = w->t.facts = facts;
	find_stops(k);
	find_compared(k);
	machine_entry(&w->m);
}

void certify_make_place(struct certify *k, uint32_t at, uint32_t node, uint32_t skip)
{
	k->places[at] =
		(struct place){ .node = node,
				.skip = skip,
				.count = k->c->cfg->blocks[k->c->graph->nodes[node].block].count -
					 skip };
	k->w->nodes[at] = (struct node){ .address = certify_address(k, node, skip) };
}

/* One place for each node of the graph, in order. */
static void make_places(struct certify *k)
{
	k->count = k->c->graph->node_count;
	for (uint32_t i = 0; i < k->count; i++) {
		const struct fay_node *node = &k->c->graph->nodes[k->order.at[i]];
		struct place *p = &k->places[i];

		certify_make_place(k, i, k->order.at[i], 0);
		p->end = k->order.end[p->node];
		p->head = node->is_header;
		for (unsigned side = 0; side < 2; side++)
			if (node->succ[side] != FAY_NONE)
				p->to[side] = k->order.of[node->succ[side]];
		if (p->head)
			k->w->nodes[i].body = p->end - i;
	}
}

void certify_release_place(struct place *p)
{
	certify_drop(&p->in);
	certify_drop(&p->back);
	free(p->reps);
	free(p->unwritten);
	free(p->list.at);
	free(p->body.at);
	free(p->table);
	free(p->turn);
}

void certify_end(struct certify *k)
{
	for (uint32_t i = 0; i < k->count; i++)
		certify_release_place(&k->places[i]);
	free(k->places);
	free(k->depth);
	free(k->stops);
	free(k->compared);
	free(k->w->nodes);
	free(k->w);
	fay_order_deinit(&k->order);
}

bool certify_attempt(struct fay_certify *c, enum effort effort, bool partly, struct fay_bytes *out)
{
	struct certify k = { .c = c, .effort = effort };
	struct fay_probe_facts facts = { 0 };
	bool ok;

	c->refusal.rule = FAY_RULE_NONE;
	k.most = c->early ? c->runs : 4000 + 300 * (uint64_t)c->graph->node_count;
	certify_begin(&k, c->graph->node_count, &facts);
	make_places(&k);
	certify_deliver(&k, 0, 0);
	k.places[0].in = k.places[0].back;
	k.places[0].back = NULL;
	ok = certify_process(&k, 0, k.count);
	c->spent += k.runs;
	if (c->early)
		c->runs -= k.runs < c->runs ? k.runs : c->runs;
	if (ok || partly)
		certify_put(&k, out);
	certify_end(&k);
	return ok;
}

/* Of nodes, by the searches for one probe that the prover refused. */
#define RUNS_PROBE 18000u
#define RUNS_FIRST 25800u /* and, if it is the first, by those before the solver too */

static bool find_certificate(struct fay_certify *c, struct fay_bytes *out)
{
	struct check_refusal why;
	size_t begin = out->size;
	uint64_t before = c->spent;

	for (enum effort effort = EFFORT_NEEDED; effort <= EFFORT_HOPEFUL; effort++) {
		if (certify_attempt(c, effort, false, out) && certify_holds(c, begin, out))
			return true;
		if (c->found_count)
			return false;
	}
	why = c->refusal;
	c->until = 0;
	if (!c->hint && !c->early && before) /* it was looked for before */
		c->until = c->spent + RUNS_PROBE > RUNS_FIRST ? c->spent + RUNS_PROBE : RUNS_FIRST;
	for (unsigned i = 0; i < 4; i++) { /* all that facts say is tried last, but for a little */
		c->sums = c->early ? i : i >= 2;
		if (certify_search(c, i % 2 && !c->early ? EFFORT_HOPEFUL : EFFORT_RELATED, out))
			return true;
		if (c->found_count || (c->early && i))
			return false;
	}
	/* of the code as it stands; or, where nobody proved it, how far it came */
	if (c->hint || c->refusal.rule == FAY_RULE_LIM_RESOURCE)
		c->refusal = why;
	return false;
}

bool fay_certify_probe(struct fay_certify *c, struct fay_bytes *out)
{
	bool ok;

	c->live = fay_hint_live(c);
	c->sums = false;
	ok = find_certificate(c, out);
	free(c->live);
	c->live = NULL;
	return ok;
}
