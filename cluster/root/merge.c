/* SPDX-License-Identifier: MIT */
/* Merging exactly once: docs/cluster.md, "Exactly once", has the argument. */
#include <string.h>

#include "fay/clock.h"

#include "root_private.h"

/* Who sent it may have sent it: a member of the query speaks for itself; an inner agent for members
 * of the query. */
static bool may_send(const struct fay_machine *machine, const struct fay_wire_partial *partial)
{
	struct fay_wire_member member;
	if (partial->combined)
		return machine->inner;
	fay_wire_read_member(partial, 0, &member);
	return partial->members.count == 1 && member.agent == machine->id;
}

/* All members together: NEW only if each is, OLD only if each is. */
static enum fay_ledger_state look(struct fay_root *root, const struct fay_wire_partial *partial,
				  bool *known)
{
	struct fay_wire_member member;
	bool any_new = false, any_old = false, any_far = false;
	*known = true;
	for (uint16_t i = 0; i < partial->members.count; i++) {
		fay_wire_read_member(partial, i, &member);
		const struct fay_machine *machine = fay_root_find(root, member.agent);
		if (!machine || machine->state == FAY_MACHINE_REFUSED) {
			*known = false;
			return FAY_LEDGER_MIXED;
		}
		enum fay_ledger_state state =
			fay_ledger_look(&machine->ledger, member.first, member.last);
		any_new |= state == FAY_LEDGER_NEW || state == FAY_LEDGER_MIXED;
		any_old |= state == FAY_LEDGER_OLD || state == FAY_LEDGER_MIXED;
		/* What replaces is taken in its order only. */
		any_far |= state == FAY_LEDGER_FAR || (root->replaces && state == FAY_LEDGER_NEW &&
						       member.first != machine->ledger.upto + 1);
	}
	if (any_far)
		return FAY_LEDGER_FAR;
	return any_new && any_old ? FAY_LEDGER_MIXED : any_new ? FAY_LEDGER_NEW : FAY_LEDGER_OLD;
}

static void enter(struct fay_root *root, const struct fay_wire_partial *partial, uint64_t now)
{
	struct fay_wire_member member;
	for (uint16_t i = 0; i < partial->members.count; i++) {
		fay_wire_read_member(partial, i, &member);
		struct fay_machine *machine = fay_root_find(root, member.agent);
		uint64_t before = machine->ledger.upto;
		fay_ledger_enter(&machine->ledger, member.first, member.last);
		for (uint64_t s = member.first; s <= member.last; s++)
			machine->ends[s % FAY_LEDGER_AHEAD] =
				s == member.last && member.flags & FAY_MEMBER_LAST ? member.window
										   : 0;
		for (uint64_t s = before + 1; s <= machine->ledger.upto; s++)
			if (machine->ends[s % FAY_LEDGER_AHEAD])
				machine->window = machine->ends[s % FAY_LEDGER_AHEAD];
		root->last_window =
			machine->window > root->last_window ? machine->window : root->last_window;
		machine->heard = now;
		machine->tree = member.tree;
		if (member.flags & FAY_MEMBER_FINAL) {
			machine->final = member.last;
			machine->why = member.why;
		}
		if (machine->state == FAY_MACHINE_ASKED) {
			machine->state = FAY_MACHINE_TRACING; /* its answer was lost */
			root->membership_changed = true;
		}
		if (machine->final && machine->ledger.upto >= machine->final)
			machine->state = FAY_MACHINE_FINISHED;
	}
}

/* Of a query with windows: which were changed. */
static void note_times(struct fay_root *root, const struct fay_wire_block *block)
{
	const struct fay_schema_state *state = &root->verdict->schema.states[block->state];
	const struct fay_schema_column *key = &root->verdict->schema.columns[state->first_column];
	if (!root->options.horizon || !state->keys || key->size != sizeof(uint64_t))
		return;
	for (uint32_t i = 0; i < block->rows; i++) {
		uint64_t start =
			fay_wire_peek64(block->bytes + (size_t)i * state->row_size + key->offset);
		root->earliest = start < root->earliest ? start : root->earliest;
		root->coverage.rows_late += start < root->settled;
	}
}

/* Before the rows, which may be shown as they come. */
/* Whether a hash is this name's, so that no machine can call another's rows something else. Of
 * names that were cut that cannot be told. */
static bool is_named(uint64_t hash, struct fay_text name)
{
	char text[FAY_WIRE_NAME_MAX];
	if (name.size >= FAY_WIRE_NAME_MAX)
		return true;
	memcpy(text, name.bytes, name.size);
	text[name.size] = 0;
	uint64_t right = fay_name_hash(text);
	return hash == (right ? right : 1);
}

static void add_names(struct fay_root *root, const struct fay_wire_partial *partial)
{
	struct fay_reader rest = partial->rest;
	for (uint16_t i = 0; i < partial->blocks; i++)
		fay_wire_block(&rest, &root->verdict->schema);
	for (uint16_t names = fay_wire_u16(&rest); names; names--) {
		uint64_t hash = fay_wire_u64(&rest);
		struct fay_text name = fay_wire_string(&rest, FAY_WIRE_NAME_MAX);
		if (is_named(hash, name))
			fay_names_add(&root->names, hash, name);
	}
}

static int merge_block(struct fay_root *root, struct fay_machine *machine,
		       const struct fay_wire_block *block, struct fay_error *error)
{
	if (!root->replaces || root->verdict->schema.states[block->state].kind == FAY_STATE_STREAM)
		return fay_aggregator_merge(root->aggregator, block->state, block->bytes,
					    block->rows, error);
	if (block->final)
		return fay_aggregator_settle(machine->settled, machine->own, block->state,
					     block->bytes, block->rows, error);
	return fay_aggregator_replace(machine->own, block->state, block->bytes, block->rows, error);
}

/* Where a machine's rows replace: both or none. */
static int make_own(struct fay_root *root, struct fay_machine *machine, struct fay_error *error)
{
	if (!root->replaces || machine->own)
		return FAY_OK;
	if (!machine->settled &&
	    fay_aggregator_create(&root->verdict->schema, &machine->settled, error))
		return error->code;
	return fay_aggregator_create(&root->verdict->schema, &machine->own, error);
}

static int merge_blocks(struct fay_root *root, struct fay_machine *machine,
			struct fay_wire_partial *partial, struct fay_error *error)
{
	if (make_own(root, machine, error))
		return error->code;
	for (uint16_t i = 0; i < partial->blocks; i++) {
		struct fay_wire_block block =
			fay_wire_block(&partial->rest, &root->verdict->schema);
		if (merge_block(root, machine, &block, error))
			return error->code;
		if (!block.final) /* else nothing changed */
			note_times(root, &block);
	}
	return FAY_OK;
}

static void add_losses(struct fay_root *root, const uint64_t losses[FAY_WIRE_LOSSES])
{
	struct fay_result lost = { .events_lost_reentrant = losses[0],
				   .events_lost_full = losses[1] + losses[4],
				   .events_lost_no_slot = losses[2],
				   .calls_lost = losses[3],
				   .threads = (uint32_t)losses[5] };
	root->coverage.rows_shed += losses[4];
	root->losses.events_lost_reentrant += lost.events_lost_reentrant;
	root->losses.events_lost_full += lost.events_lost_full;
	root->losses.events_lost_no_slot += lost.events_lost_no_slot;
	root->losses.calls_lost += lost.calls_lost;
	root->losses.threads += lost.threads;
	fay_aggregator_account(root->aggregator, &lost);
}

void fay_root_merge(struct fay_root *root, const struct fay_wire_head *head)
{
	struct fay_wire_partial partial;
	uint64_t now = fay_monotonic();
	bool known;
	struct fay_machine *machine = fay_root_find(root, head->sender);
	if (!machine || machine->state == FAY_MACHINE_REFUSED ||
	    memcmp(machine->key, head->key, FAY_KEY_BYTES)) {
		root->coverage.unknown++;
		return;
	}
	if (!fay_wire_read_partial(head->body, &root->verdict->schema, &partial) ||
	    !may_send(machine, &partial)) {
		root->coverage.malformed++;
		return;
	}
	machine->heard = root->again ? machine->heard : now;
	enum fay_ledger_state state = look(root, &partial, &known);
	root->coverage.unknown += !known;
	root->coverage.duplicates += state == FAY_LEDGER_OLD;
	root->coverage.conflicts += known && state == FAY_LEDGER_MIXED;
	root->coverage.early += state == FAY_LEDGER_FAR;
	if (!known || state != FAY_LEDGER_NEW || root->failure.code)
		return;
	add_names(root, &partial);
	/* After a failure nothing is acknowledged any more, and the trace ends. */
	if (merge_blocks(root, machine, &partial, &root->failure))
		return;
	add_losses(root, partial.losses);
	root->coverage.merged++;
	root->coverage.combined += partial.combined;
	enter(root, &partial, now);
}

/* --- windows of time in a query --- */

bool fay_root_is_astray(const struct fay_machine *machine)
{
	return machine->event_clock < -FAY_ROOT_BEHIND_MAX;
}

uint64_t fay_root_complete_until(const struct fay_root *root)
{
	uint64_t least = UINT64_MAX, began = fay_realtime() - (fay_monotonic() - root->began);
	for (size_t i = 0; i < root->machine_count; i++) {
		const struct fay_machine *machine = root->machines[i];
		if (machine->state != FAY_MACHINE_TRACING || machine->lost || machine->late ||
		    fay_root_is_astray(machine))
			continue;
		uint64_t until = began + machine->window * root->options.window +
				 (uint64_t)machine->event_clock;
		least = until < least ? until : least;
	}
	return least;
}

uint64_t fay_root_clock_behind(const struct fay_root *root)
{
	int64_t least = 0;
	for (size_t i = 0; i < root->machine_count; i++)
		if (root->machines[i]->event_clock < least &&
		    !fay_root_is_astray(root->machines[i]))
			least = root->machines[i]->event_clock;
	return -(uint64_t)least;
}

uint64_t fay_root_earliest(struct fay_root *root, uint64_t settled)
{
	uint64_t earliest = root->earliest;
	root->earliest = UINT64_MAX;
	root->settled = settled;
	return earliest;
}
