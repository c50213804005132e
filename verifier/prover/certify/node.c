/* SPDX-License-Identifier: MIT */
/* Nodes: they are run with the checker's machine, and what comes of them waits at others. */
#include "certify_parts.h"

/* ---- states that wait ---- */

void certify_assign(struct state *to, const struct state *s)
{
	memcpy(to, s, offsetof(struct state, written));
	memcpy(to->written, s->written, ((uint32_t)s->depth + 7) / 8);
	memcpy(to->fact, s->fact, s->facts * sizeof(s->fact[0]));
	memcpy(to->fill, s->fill, s->fills * sizeof(s->fill[0]));
	memcpy(to->slot, s->slot, s->slots * sizeof(s->slot[0]));
	memcpy(to->var, s->var, s->vars * sizeof(s->var[0]));
}

struct state *certify_copy(const struct state *s)
{
	struct state *c = malloc(sizeof(*c));

	if (!c)
		abort();
	certify_assign(c, s);
	return c;
}

struct state *certify_enter(struct certify *k, const struct state *s)
{
	struct state *save = certify_copy(&k->w->m.s);

	certify_assign(&k->w->m.s, s);
	k->w->m.defs = 0;
	return save;
}

void certify_leave(struct certify *k, struct state *save)
{
	certify_assign(&k->w->m.s, save);
	free(save);
}

bool certify_fail(struct certify *k, enum fay_rule rule, uint64_t at, const char *what)
{
	if (k->c->refusal.rule == FAY_RULE_NONE)
		k->c->refusal = (struct check_refusal){ rule, at, what };
	return false;
}

void certify_drop(struct waiting **list)
{
	while (*list) {
		struct waiting *next = (*list)->next;

		free((*list)->s);
		free(*list);
		*list = next;
	}
}

/* In a state at place `to`, what counts loops that it lies outside of is like other variables. */
static void unpin(const struct certify *k, struct state *s, uint32_t to)
{
	for (unsigned i = 0; i < s->vars; i++)
		if (s->var[i].pin && s->var[i].pin < PIN_SIZES &&
		    !certify_turn_inside(k, to, s->var[i].pin - 1u))
			s->var[i].pin = 0;
}

void certify_deliver(struct certify *k, uint32_t from, uint32_t to)
{
	struct waiting *wait = malloc(sizeof(*wait)), **list = &k->places[to].in;

	if (!wait)
		abort();
	if (k->unfold ? k->places[to].open : to <= from)
		list = &k->places[to].back;
	*wait = (struct waiting){ .from = from,
				  .s = certify_copy(&k->w->m.s),
				  .defs = k->w->m.defs };
	memcpy(wait->def, k->w->m.def, sizeof(wait->def));
	if (k->unfold)
		unpin(k, wait->s, to);
	while (*list)
		list = &(*list)->next;
	*list = wait;
}

/* ---- nodes ---- */

static bool refused(struct certify *k, uint64_t address)
{
	if (k->w->m.refusal.rule == FAY_RULE_NONE)
		return false; /* by an edge, which said why */
	k->c->refusal = k->w->m.refusal;
	k->c->refusal.place = address;
	if (k->c->refused)
		memcpy(k->c->refused, &k->w->m, sizeof(k->w->m));
	return false;
}

/* The stack is as deep whenever control comes to the node (docs/verifier.md, guarantee 3); that the
 * checker would take rounds of a loop with other depths as code of their own does not matter. */
static bool one_depth(struct certify *k, uint32_t node)
{
	int64_t depth = k->w->m.s.depth;

	if (k->depth[node] < 0)
		k->depth[node] = depth;
	return k->depth[node] == depth ||
	       certify_fail(k, FAY_RULE_STK_POINTER, certify_address(k, node, 0), "depths differ");
}

bool certify_edge_into(struct certify *k, uint32_t from, uint32_t node, uint32_t skip, uint32_t *to)
{
	if (node == FAY_NONE)
		return certify_fail(k, FAY_RULE_CRT_NODE, 0, "the graph lacks an edge");
	if (!skip && !one_depth(k, node))
		return false;
	*to = k->unfold ? certify_unfold_edge(k, from, node, skip) : k->order.of[node];
	if (*to == FAY_NONE)
		return certify_fail(k, FAY_RULE_LIM_RESOURCE, 0, "too many nodes");
	certify_deliver(k, from, *to);
	return true;
}

static bool edge(struct certify *k, uint32_t from, uint32_t node, uint32_t *to)
{
	return certify_edge_into(k, from, node, 0, to);
}

static bool branch(struct certify *k, uint32_t at, const struct fay_node *n, unsigned cc)
{
	struct machine *m = &k->w->m;

	if (!flags_ready(m, cc))
		return false;
	for (unsigned side = 0; side < 2; side++) {
		bool may;

		assume_begin(m);
		may = !m->refine || flags_assume(m, side ? cc ^ 1 : cc);
		if (may && !edge(k, at, n->succ[side], &k->places[at].to[side]))
			return false;
		assume_undo(m);
	}
	return true;
}

/* A table that an indirect jump goes through: where the entries lie in read-only data, and what is
 * added to them. */
struct table {
	struct range offsets;
	uint64_t stride, base;
	uint32_t count;
	bool sign;
};

static bool find_table(struct machine *m, const struct value *v, struct table *t)
{
	struct form f = v->f;
	const struct def *d;
	uint64_t count;

	f.c = 0;
	d = v->kind == KIND_POINTER && v->tag == REGION_RODATA ? check_definition(m, &f, DEF_TABLE)
							       : NULL;
	if (!d || !d->f.v[0] || d->f.v[1] || d->f.k[0] <= 0)
		return check_refuse(m, FAY_RULE_CFI_INDIRECT, "no table");
	*t = (struct table){ .offsets = form_range(m, &d->f),
			     .stride = (uint64_t)d->f.k[0],
			     .base = (uint64_t)v->f.c + m->subject->rodata.start,
			     .sign = d->sign };
	count = (uint64_t)(t->offsets.hi - t->offsets.lo) / t->stride + 1;
	t->count = (uint32_t)count;
	return count <= FAY_MAX_TABLE ||
	       check_refuse(m, FAY_RULE_CFI_INDIRECT, "too large a table");
}

/* Where entry i leads. */
static uint64_t table_address(const struct machine *m, const struct table *t, uint64_t i)
{
	uint32_t entry;

	memcpy(&entry, m->subject->rodata.bytes + (uint64_t)t->offsets.lo + i * t->stride, 4);
	return t->base + (t->sign ? (uint64_t)(int64_t)(int32_t)entry : entry);
}

/* The node's successor at this address, or FAY_NONE. */
static uint32_t table_node(const struct certify *k, const struct fay_node *n, uint64_t address)
{
	const struct fay_cfg *cfg = k->c->cfg;

	for (uint32_t j = 0; j < n->table_count; j++)
		if (cfg->insns[cfg->blocks[k->c->graph->nodes[n->table[j]].block].first].address ==
		    address)
			return n->table[j];
	return FAY_NONE;
}

/* The graph lacks some of the places. */
static bool tell_table(struct certify *k, const struct table *t, uint64_t from)
{
	struct machine *m = &k->w->m;

	if (k->c->hint) /* the prover knows them all */
		return check_refuse(m, FAY_RULE_CFI_INDIRECT, "a target that is no node");
	k->c->found = realloc(k->c->found, t->count * sizeof(*k->c->found));
	if (!k->c->found)
		abort();
	for (uint32_t i = 0; i < t->count; i++) {
		uint64_t to = table_address(m, t, i);

		if (to - m->subject->text.start >= m->subject->text.size)
			return check_refuse(m, FAY_RULE_CFI_INDIRECT, "a target that is no code");
		k->c->found[i] = (struct fay_jump){ from, to };
	}
	k->c->found_count = t->count;
	return check_refuse(m, FAY_RULE_CFI_INDIRECT, "a target that is no node");
}

static bool table(struct certify *k, uint32_t at, const struct fay_node *n,
		  const struct fay_insn *insn)
{
	struct machine *m = &k->w->m;
	struct place *p = &k->places[at];
	struct table t = { 0 };

	if (!find_table(m, &m->s.reg[insn->dst.reg], &t))
		return false;
	p->table = realloc(p->table, t.count * sizeof(*p->table));
	if (!p->table)
		abort();
	p->table_count = t.count;
	for (uint32_t i = 0; i < t.count; i++) {
		uint32_t to = table_node(k, n, table_address(m, &t, i));

		if (to == FAY_NONE)
			return tell_table(k, &t, insn->address);
		if (!edge(k, at, to, &p->table[i]))
			return false;
	}
	return true;
}

/* The place's instructions up to its last, or to where it parts; false: refused. */
/* What one that is repeated counts as, in runs of nodes: all that it may write is gone through. */
#define RUNS_REPEATED 64u

static bool run_straight(struct certify *k, uint32_t at, const struct fay_insn **insn)
{
	struct place *p = &k->places[at];
	const struct fay_block *block = &k->c->cfg->blocks[k->c->graph->nodes[p->node].block];
	struct machine *m = &k->w->m;

	p->parted = false;
	p->condition = 0;
	p->count = block->count - p->skip;
	for (uint32_t i = 0; i < p->count; i++) {
		*insn = &k->c->cfg->insns[block->first + p->skip + i];
		if (certify_part(k, at, i, *insn))
			break;
		if (fay_op_table[(*insn)->op].attributes & ATTR_CONTROL &&
		    (*insn)->op != OP_CALL_SLOT && (*insn)->op != OP_CALL_REG)
			break;
		if ((*insn)->op == OP_REP_MOVS || (*insn)->op == OP_REP_STOS)
			k->runs += RUNS_REPEATED;
		if (!machine_step(m, *insn))
			return refused(k, (*insn)->address);
	}
	return true;
}

bool certify_run_node(struct certify *k, uint32_t at)
{
	const struct fay_node *n = &k->c->graph->nodes[k->places[at].node];
	const struct fay_insn *insn = NULL;
	struct machine *m = &k->w->m;
	uint32_t *to;
	int64_t depth;

	k->at = at;
	if (++k->runs > k->most)
		return certify_fail(k, FAY_RULE_LIM_RESOURCE, 0,
				    "no certificate was found in time");
	m->defs = 0;
	if (!run_straight(k, at, &insn))
		return false;
	if (k->places[at].parted)
		return k->c->refusal.rule == FAY_RULE_NONE;
	check_collect(m);
	depth = m->s.depth;
	if (n->branch) {
		if (!branch(k, at, n, n->branch - 1u))
			return refused(k, insn->address);
		return true;
	}
	to = &k->places[at].to[0];
	switch (insn->op) {
	case OP_JCC: return branch(k, at, n, insn->cc) || refused(k, insn->address);
	case OP_JMP_TABLE: return table(k, at, n, insn) || refused(k, insn->address);
	case OP_CALL: {
		struct value token = value_nothing();

		token.kind = KIND_RETURN;
		token.f.c = (int64_t)(insn->address + insn->length);
		m->s.fills = 0;
		if (!machine_depth(m, depth + 8) || !stack_put(m, -depth - 8, 8, &token))
			return refused(k, insn->address);
		return edge(k, at, n->succ[0], to);
	}
	case OP_RET: {
		const struct slot *slot = depth ? stack_find(&m->s, -depth, 8) : NULL;

		if (!depth)
			return machine_return(m) || refused(k, insn->address);
		if (!slot || slot->v.kind != KIND_RETURN) {
			check_refuse(m, FAY_RULE_CFI_RETURN, "no return address");
			return refused(k, insn->address);
		}
		m->s.fills = 0;
		if (!machine_depth(m, depth - 8))
			return refused(k, insn->address);
		return edge(k, at, n->succ[0], to);
	}
	default: return edge(k, at, n->succ[0], to);
	}
}

/* The state in w->t is where node `at` begins. */
bool certify_run_from(struct certify *k, uint32_t at)
{
	struct walk *w = k->w;

	certify_assign(&w->m.s, &w->t.s);
	return certify_run_node(k, at);
}

bool certify_process_place(struct certify *k, uint32_t at)
{
	struct place *p = &k->places[at];
	struct state **states;
	uint32_t n = certify_gather(p->in, &states);
	bool ok;

	k->at = at;
	p->fresh |= (uint16_t)certify_part_words(k, at, states[0]);
	p->fresh |= (uint16_t)certify_part_first(k, at, states[0]);
	p->join = n > 1 || p->fresh || certify_part_facts(k, at, states[0]);
	if (p->join) {
		struct meaning *x = calloc(JOIN_MOST, sizeof(*x));
		uint32_t vars;

		certify_find_list(k, p, states, n);
		ok = certify_settle(k, at, states, n, x, &vars);
		if (ok && k->effort != EFFORT_NEEDED && certify_relate(k, at, states, n, x, vars))
			ok = certify_settle(k, at, states, n, x, &vars);
		ok = ok && certify_run_from(k, at);
		free(x);
	} else {
		certify_assign(&k->w->m.s, states[0]);
		ok = certify_run_node(k, at);
	}
	free(states);
	certify_drop(&p->in);
	return ok;
}

bool certify_process(struct certify *k, uint32_t begin, uint32_t end)
{
	for (uint32_t i = begin; i < end;) {
		const struct place *p = &k->places[i];

		if (!p->in) {
			i++;
		} else if (p->head) {
			if (!certify_process_loop(k, i))
				return false;
			i = p->end;
		} else if (!certify_process_place(k, i++)) {
			return false;
		}
	}
	return true;
}
