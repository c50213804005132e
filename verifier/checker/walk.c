/* SPDX-License-Identifier: MIT */
/*
 * The walk through a probe's nodes. Each is run once, in the order of the certificate, from the
 * state that waits there; every edge leads to a later node, or back to the head of a loop that it
 * lies in. The nodes of a loop stand together, behind its head, and nothing enters a loop but at
 * its head; so the certificate's order is a proof that there are no other loops.
 *
 * Cost: instructions are counted from the head of the innermost loop. A loop as a whole costs its
 * rounds times the longest of them, the ways out included.
 */
#include "walk.h"
#include "verifier/isa/decode.h"

/*
 * Work, in instructions run and edges followed: that any certificate may have, and so many for each
 * byte of code and certificate; after how much others may run; elements of rep that are like one.
 */
enum { WORK_FREE = 65536, WORK_BYTE = 2, WORK_PAUSE = 256, WORK_ELEMENTS = 4 };

bool walk_refuse(struct walk *w, enum fay_rule rule, uint64_t place, const char *what)
{
	if (w->m.refusal.rule == FAY_RULE_NONE)
		w->m.refusal = (struct check_refusal){ rule, place, what };
	return false;
}

/* ---- costs ---- */

static uint64_t add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* What a loop costs as a whole, from before its head. */
static uint64_t loop_cost(const struct node *head)
{
	uint64_t all;

	if (__builtin_mul_overflow(head->round, head->bound, &all))
		all = UINT64_MAX;
	return add(head->cost, all);
}

/* The cost of a loop that was left to here is known now: all its nodes were run. */
static void settle(struct walk *w, struct node *node)
{
	uint64_t cost;

	if (!node->left)
		return;
	cost = loop_cost(&w->nodes[node->left - 1]);
	node->cost = cost > node->cost ? cost : node->cost;
	node->left = 0;
}

/* What an edge costs, at `cost` from the head of the loop of `from`. The node behind the last one
 * is the probe's end. */
static void account(struct walk *w, uint32_t from, uint32_t to, uint64_t cost)
{
	struct node *target = &w->nodes[to], *head;
	uint32_t loop = w->nodes[from].body ? from + 1 : w->nodes[from].head, left = 0;

	/* loops that are left */
	for (; loop && (to < loop - 1 || to >= loop - 1 + w->nodes[loop - 1].body);
	     loop = head->head) {
		head = &w->nodes[loop - 1];
		if (left)
			w->nodes[left - 1].leaves = true;
		else
			head->round = cost > head->round ? cost : head->round;
		left = loop;
	}
	if (left && to <= from) {
		w->nodes[left - 1].leaves = true; /* to the head of the loop around */
	} else if (left) {
		if (target->left && target->left != left)
			settle(w, target);
		target->left = left;
	} else if (to <= from) {
		target->round = cost > target->round ? cost : target->round;
	} else {
		target->cost = cost > target->cost ? cost : target->cost;
	}
}

/* Contexts may have code several times, but not without end. */
static bool work(struct walk *w, uint64_t n)
{
	uint64_t before = w->work;

	w->work = add(w->work, n);
	if (w->work / WORK_PAUSE != before / WORK_PAUSE && fay_check_given_up())
		return walk_refuse(w, FAY_RULE_LIM_RESOURCE, 0, "given up");
	return w->work <= WORK_BYTE * (w->subject->text.size + w->certificate.size) + WORK_FREE ||
	       walk_refuse(w, FAY_RULE_LIM_RESOURCE, 0,
			   "the certificate goes through the code too often");
}

/* `last`: of the edges of `from`; after it the state in hand is that node's no more. */
static bool follow(struct walk *w, uint32_t from, uint32_t to, uint64_t cost, bool last)
{
	const struct node *target = &w->nodes[to];

	if (to <= from && (!target->body || from - to >= target->body))
		return walk_bad(w, "an edge leads back, and not to the head of a loop around it");
	if (to > from && target->head && from < target->head - 1)
		return walk_bad(w, "an edge leads into the middle of a loop");
	account(w, from, to, cost);
	w->stays = last && to == from + 1;
	return work(w, 1) && walk_enter(w, to, to <= from);
}

/* ---- one node ---- */

static bool decode(struct walk *w, uint64_t at, struct fay_insn *insn)
{
	const struct check_bytes *text = &w->subject->text;
	uint32_t start, inside; /* bits: where it begins, and its other bytes */
	enum fay_rule rule;

	if (at >= text->size)
		return walk_refuse(w, FAY_RULE_CFI_TARGET, at, "execution leaves the code");
	rule = fay_decode_bytes(text->bytes + at, text->size - at, text->start + at, insn);
	if (rule != FAY_RULE_NONE)
		return walk_refuse(w, rule, at, "the bytes are no instruction that is allowed");
	start = 1u << at % 8;
	inside = ((2u << (insn->length - 1)) - 2) << at % 8;
	for (uint64_t i = at / 8; start | inside; i++, start >>= 8, inside >>= 8) {
		if (w->insides[i] & start || w->starts[i] & inside)
			return walk_refuse(w, FAY_RULE_CFI_OVERLAP, at, "instructions overlap");
		w->starts[i] |= (uint8_t)start;
		w->insides[i] |= (uint8_t)inside;
	}
	w->instructions++;
	return work(w, 1);
}

/* The number of the next target of node i, which is at `address`. */
static bool target(struct walk *w, uint32_t i, uint64_t address, uint32_t *to)
{
	int64_t n = (int64_t)((uint64_t)i + (uint64_t)read_signed(&w->ends));

	*to = 0;
	if (n < 0 || n >= w->node_count || w->nodes[n].address != address)
		return walk_bad(w, "a target that is not where the code goes");
	*to = (uint32_t)n;
	return true;
}

/* An indirect jump: every entry that the number may come from, in order. */
static bool jump_table(struct walk *w, uint32_t i, const struct fay_insn *insn, uint64_t cost)
{
	struct machine *m = &w->m;
	const struct value *v = &m->s.reg[insn->dst.reg];
	uint64_t base = (uint64_t)v->f.c + w->subject->rodata.start - w->subject->text.start;
	struct form f = v->f;
	const struct def *d;
	struct range r;
	uint64_t count;

	f.c = 0;
	d = v->kind == KIND_POINTER && v->tag == REGION_RODATA ? check_definition(m, &f, DEF_TABLE)
							       : NULL;
	if (!m->refine)
		return walk_refuse(w, FAY_RULE_SPC_BRANCH, insn->address,
				   "an indirect jump may be mispredicted to anywhere");
	if (!d || !d->f.v[0] || d->f.v[1] || d->f.k[0] <= 0 || d->f.k[0] % 4)
		return walk_refuse(w, FAY_RULE_CFI_INDIRECT, insn->address,
				   "an indirect jump, and not through a table of constants");
	r = form_range(m, &d->f);
	count = (uint64_t)(r.hi - r.lo) / (uint64_t)d->f.k[0] + 1;
	if (count != w->nodes[i].targets)
		return walk_refuse(w, FAY_RULE_CFI_INDIRECT, insn->address,
				   "an indirect jump with other targets than its node has");
	if (count > (w->store.size - w->store.used) / sizeof(*w->jumps))
		return walk_refuse(w, FAY_RULE_LIM_RESOURCE, insn->address,
				   "too many places that tables lead to");
	w->store.size -= (uint32_t)(count * sizeof(*w->jumps));
	w->jumps -= count;
	w->jump_count += (uint32_t)count;
	for (uint64_t k = 0; k < count; k++) {
		uint64_t at = (uint64_t)r.lo + k * (uint64_t)d->f.k[0], address;
		uint32_t entry, to;

		memcpy(&entry, w->subject->rodata.bytes + at, sizeof(entry));
		address = base + (d->sign ? (uint64_t)(int64_t)(int32_t)entry : entry);
		if (address >= w->subject->text.size)
			return walk_refuse(w, FAY_RULE_CFI_INDIRECT, insn->address,
					   "a jump table leads out of the code");
		w->jumps[k].from = (uint32_t)(insn->address - w->subject->text.start);
		w->jumps[k].to = (uint32_t)address;
		if (!target(w, i, address, &to) || !follow(w, i, to, cost, false))
			return false;
	}
	return true;
}

/* Both sides of a condition; a side that cannot be only has to be code. */
static bool branch(struct walk *w, uint32_t i, unsigned cc, const uint64_t address[2],
		   uint64_t cost)
{
	if (!flags_ready(&w->m, cc))
		return false;
	assume_begin(&w->m);
	for (unsigned side = 0; side < 2; side++) {
		uint32_t to;
		bool may;

		if (!target(w, i, address[side], &to))
			return false;
		may = !w->m.refine || flags_assume(&w->m, side ? cc ^ 1 : cc);
		if (may && !follow(w, i, to, cost, side))
			return false;
		if (!side)
			assume_undo(&w->m);
	}
	return true;
}

static bool one(struct walk *w, uint32_t i, uint64_t address, uint64_t cost)
{
	uint32_t to;

	return target(w, i, address, &to) && follow(w, i, to, cost, true);
}

static bool call(struct walk *w, uint32_t i, const struct fay_insn *insn, uint64_t cost)
{
	struct value token = value_nothing();
	int64_t depth = w->m.s.depth + 8;

	token.kind = KIND_RETURN;
	token.f.c = (int64_t)(insn->address + insn->length);
	w->m.s.fills = 0;
	return machine_depth(&w->m, depth) && stack_put(&w->m, -depth, 8, &token) &&
	       one(w, i, insn->target - w->subject->text.start, cost);
}

static bool ret(struct walk *w, uint32_t i, uint64_t cost)
{
	int64_t depth = w->m.s.depth;
	const struct slot *slot = depth ? stack_find(&w->m.s, -depth, 8) : NULL;
	uint64_t address;

	if (!depth) {
		account(w, i, w->node_count, cost);
		return machine_return(&w->m);
	}
	if (!slot || slot->v.kind != KIND_RETURN)
		return walk_refuse(w, FAY_RULE_CFI_RETURN, w->nodes[i].address,
				   "the stack pointer is not at a return address");
	address = (uint64_t)slot->v.f.c;
	w->m.s.fills = 0;
	return machine_depth(&w->m, depth - 8) && one(w, i, address - w->subject->text.start, cost);
}

/* How many targets a node with this last instruction has; -1: as many as its table. *to: where they
 * are, but for those of ret and tables. */
static int targets_of(const struct walk *w, const struct node *node, const struct fay_insn *insn,
		      bool top, uint64_t to[2])
{
	bool jumps = insn->op == OP_JMP || insn->op == OP_JCC || insn->op == OP_CALL;

	to[1] = insn->address + insn->length - w->subject->text.start;
	to[0] = jumps ? insn->target - w->subject->text.start : to[1];
	if (node->kind != END_NATURAL)
		return 2;
	switch (insn->op) {
	case OP_JCC: return 2;
	case OP_RET: return top ? 0 : 1;
	case OP_JMP_TABLE: return -1;
	default: return 1;
	}
}

static bool end_node(struct walk *w, uint32_t i, const struct fay_insn *insn, uint64_t cost)
{
	struct node *node = &w->nodes[i];
	uint64_t to[2];
	int n = targets_of(w, node, insn, !w->m.s.depth, to);

	if (n != 1 || w->m.defs) /* several states of it will wait, or it knows less from here on */
		check_collect(&w->m);
	if (n >= 0 && node->targets != (unsigned)n)
		return walk_bad(w, "a node with another number of targets than its end has");
	if (node->kind != END_NATURAL && fay_op_table[insn->op].attributes & ATTR_CONTROL)
		return walk_bad(w, "cases behind a jump");
	if (node->kind == END_CONDITION)
		return branch(w, i, node->condition, to, cost);
	switch (insn->op) {
	case OP_JCC: return branch(w, i, insn->cc, to, cost);
	case OP_JMP_TABLE: return jump_table(w, i, insn, cost);
	case OP_CALL: return call(w, i, insn, cost);
	case OP_RET: return ret(w, i, cost);
	default: return one(w, i, to[0], cost);
	}
}

/* No way leads here, as far as is known: only the code has to be allowed. */
static bool dead_end(struct walk *w, uint32_t i, const struct fay_insn *insn)
{
	const struct node *node = &w->nodes[i];
	uint64_t address[2];
	int n = targets_of(w, node, insn, false, address);
	uint32_t to;

	if (insn->op == OP_RET || insn->op == OP_JMP_TABLE)
		return true;
	if (node->targets != (unsigned)n)
		return walk_bad(w, "a node with another number of targets than its end has");
	for (int k = 0; k < n; k++)
		if (!target(w, i, address[k], &to))
			return false;
	return true;
}

static bool run_node(struct walk *w, uint32_t i)
{
	struct node *node = &w->nodes[i];
	uint64_t at = node->address, cost;
	bool live = node->state != 0;
	struct fay_insn insn;

	if (!node->count)
		return walk_bad(w, "a node without an instruction");
	settle(w, node);
	w->m.extra = w->m.helped = 0;
	if (live)
		walk_load(w, i);
	for (unsigned k = 0; k < node->count; k++, at += insn.length) {
		bool last = k + 1u == node->count;

		if (!decode(w, at, &insn))
			return false;
		if (w->denied[insn.op / 64] >> insn.op % 64 & 1)
			return walk_refuse(w, FAY_RULE_POL_OPERATION, at,
					   "the policy does not allow the instruction");
		if (fay_op_table[insn.op].attributes & ATTR_CONTROL && insn.op != OP_CALL_SLOT &&
		    insn.op != OP_CALL_REG) {
			if (!last)
				return walk_bad(w, "a jump within a node");
			break;
		}
		if (live && !machine_step(&w->m, &insn)) {
			if (!w->m.refusal.place)
				w->m.refusal.place = insn.address;
			return false;
		}
	}
	w->ends = w->certificate;
	w->ends.at = node->end;
	if (!live)
		return dead_end(w, i, &insn);
	if (!work(w, w->m.extra / WORK_ELEMENTS))
		return false;
	cost = add(add(node->body ? 0 : node->cost, node->count), w->m.extra + w->m.helped);
	if (w->m.refine && cost > w->policy->max_instructions)
		return walk_refuse(w, FAY_RULE_POL_INSTRUCTIONS, insn.address,
				   "more instructions than the policy allows");
	if (!end_node(w, i, &insn, cost)) {
		if (!w->m.refusal.place)
			w->m.refusal.place = insn.address;
		return false;
	}
	if (!node->body)
		walk_drop(w, i);
	return true;
}

/*
 * Node i was run. Of the loops that end with it the costs are known: those that an edge leaves
 * together with the loop around are part of a round of that one.
 */
static void finish_loops(struct walk *w, uint32_t i)
{
	uint32_t loop = w->nodes[i].body ? i + 1 : w->nodes[i].head;

	for (; loop && i + 1 == loop - 1 + w->nodes[loop - 1].body;
	     loop = w->nodes[loop - 1].head) {
		const struct node *head = &w->nodes[loop - 1];
		struct node *around = head->head ? &w->nodes[head->head - 1] : NULL;
		uint64_t cost = loop_cost(head);

		walk_drop(w, loop - 1); /* nothing leads there any more */
		if (head->leaves && around && cost > around->round)
			around->round = cost;
	}
}

/* ---- a probe ---- */

bool walk_limits(struct walk *w, struct fay_probe_facts *facts)
{
	const struct fay_policy *policy = w->policy;

	facts->worst_stack += 8;
	facts->analysed = true;
	if (facts->worst_instructions > policy->max_instructions ||
	    facts->worst_instructions > w->subject->interface->max_instructions)
		return walk_refuse(w, FAY_RULE_POL_INSTRUCTIONS, 0,
				   "more instructions in the worst case than the policy allows");
	if (facts->event_fields & ~policy->allow_fields)
		return walk_refuse(w, FAY_RULE_POL_FIELD, 0,
				   "a field of the event that the policy does not allow");
	if (facts->worst_stack > policy->max_stack ||
	    facts->worst_stack > w->subject->interface->max_stack)
		return walk_refuse(w, FAY_RULE_POL_STACK, 0, "more stack than the policy allows");
	return true;
}

bool walk_probe(struct walk *w, uint64_t entry, struct fay_probe_facts *facts)
{
	size_t size = (size_t)((uint8_t *)w->jumps - w->memory);
	uint64_t count = read_number(&w->certificate), room = size / sizeof(*w->nodes);
	uint32_t behind;

	if (!count || count >= room)
		return walk_bad(w, "too many nodes");
	w->node_count = (uint32_t)count;
	w->nodes = (struct node *)w->memory;
	w->store = (struct store){ .bytes = w->memory + (count + 1) * sizeof(*w->nodes) };
	w->store.size = (uint32_t)(size - (count + 1) * sizeof(*w->nodes));
	w->nodes[count] = (struct node){ 0 };
	if (!walk_parse(w, &behind))
		return false;
	if (w->nodes[0].address != entry - w->subject->text.start || w->nodes[0].flags)
		return walk_bad(w, "the first node is not the probe's entry");
	w->m.facts = w->t.facts = facts;
	machine_entry(&w->m);
	w->stays = true;
	if (!walk_enter(w, 0, false))
		return false;
	for (uint32_t i = 0; i < w->node_count; i++) {
		if (!run_node(w, i))
			return false;
		finish_loops(w, i);
	}
	w->certificate.at = behind;
	settle(w, &w->nodes[w->node_count]);
	if (w->m.refine)
		facts->worst_instructions = w->nodes[w->node_count].cost;
	return true;
}
