/* SPDX-License-Identifier: MIT */
/*
 * An inner agent: merges its children's partials with its own into one message. What it does not
 * want (a stranger's, something seen before, more than it has room for) it leaves: the sender keeps
 * it until the root has it, and sends it to the root in the end.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "job_parts.h"

bool fay_job_is_inner(const struct fay_job *job)
{
	return job->child_count > 0;
}

static struct fay_child *find_in(struct fay_child *children, size_t count, uint64_t agent)
{
	for (size_t i = 0; i < count; i++)
		if (children[i].agent == agent)
			return &children[i];
	return NULL;
}

/* Also one of the tree before: what it sends is merged, but nobody waits for it. */
static struct fay_child *find_child(struct fay_job *job, uint64_t agent)
{
	struct fay_child *child = find_in(job->children, job->child_count, agent);
	return child ? child : find_in(job->former, job->former_count, agent);
}

/* Begins at the sequence that is seen first: an earlier one that comes later is left to the root.
 * 0: does not make one. */
static struct fay_ledger *find_ledger(struct fay_job *job, uint64_t agent, uint64_t first)
{
	for (size_t i = 0; i < job->below_count; i++)
		if (job->below[i].agent == agent)
			return &job->below[i].ledger;
	if (!first || job->below_count == FAY_WIRE_AGENTS_MAX)
		return NULL;
	struct fay_below *grown = realloc(job->below, (job->below_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	job->below = grown;
	job->below[job->below_count] =
		(struct fay_below){ .agent = agent, .ledger.upto = first - 1 };
	return &job->below[job->below_count++].ledger;
}

static bool make_pending(struct fay_job *job)
{
	struct fay_error error;
	if (!job->pending)
		job->pending = calloc(1, sizeof(*job->pending));
	if (job->pending && !job->pending->rows &&
	    !fay_aggregator_create(&job->verdict->schema, &job->pending->rows, &error))
		fay_aggregator_set_limit(job->pending->rows, job->limits.memory);
	return job->pending && job->pending->rows;
}

/* --- what comes before its tree --- */

static uint32_t newest_tree(const struct fay_wire_partial *partial)
{
	struct fay_wire_member member;
	uint32_t newest = 0;
	for (uint16_t i = 0; i < partial->members.count; i++) {
		fay_wire_read_member(partial, i, &member);
		newest = member.tree > newest ? member.tree : newest;
	}
	return newest;
}

void fay_job_collect_message(struct fay_job *job, const struct fay_wire_head *head,
			     const void *bytes, size_t size)
{
	struct fay_wire_partial partial;
	bool full = job->early_count == FAY_JOB_EARLY_MAX ||
		    size > FAY_JOB_EARLY_BYTES - job->early_bytes;
	if (full || find_child(job, head->sender) ||
	    !fay_wire_read_partial(head->body, &job->verdict->schema, &partial) ||
	    newest_tree(&partial) <= job->tree) {
		fay_job_collect(job, head);
		return;
	}
	uint8_t *copy = malloc(size);
	if (!copy)
		return;
	memcpy(copy, bytes, size);
	job->early[job->early_count++] = (struct fay_early){ copy, size };
	job->early_bytes += size;
}

/* Each once: who is no child in this tree either is not waited for any longer. */
static void collect_early(struct fay_job *job)
{
	struct fay_wire_head head;
	for (size_t i = 0; i < job->early_count; i++) {
		if (fay_wire_open(job->early[i].bytes, job->early[i].size, &head))
			fay_job_collect(job, &head);
		free(job->early[i].bytes);
	}
	job->early_count = job->early_bytes = 0;
}

void fay_job_assign(struct fay_job *job, const struct fay_wire_assign *assign)
{
	if (assign->version <= job->tree)
		return;
	fay_job_forward(job, true);
	struct fay_child *children = calloc(assign->children.count + 1u, sizeof(*children));
	if (!children)
		return; /* the old tree goes on */
	for (uint16_t i = 0; i < assign->children.count; i++) {
		const uint8_t *at = assign->children.bytes + (size_t)i * FAY_ASSIGN_CHILD;
		children[i].agent = fay_wire_peek64(at);
		memcpy(children[i].key, at + 8, FAY_KEY_BYTES);
	}
	free(job->former);
	job->former = job->children;
	job->former_count = job->child_count;
	job->children = children;
	job->child_count = assign->children.count;
	job->parent = assign->parent == job->agent ? 0 : assign->parent;
	job->tree = assign->version;
	collect_early(job);
}

/* --- collecting --- */

static bool all_new(struct fay_job *job, const struct fay_wire_partial *partial, uint64_t sender)
{
	struct fay_wire_member member;
	for (uint16_t i = 0; i < partial->members.count; i++) {
		fay_wire_read_member(partial, i, &member);
		struct fay_ledger *ledger = find_ledger(job, member.agent, member.first);
		/* One that never came here holds the others up: it is given up. */
		if (ledger && fay_ledger_look(ledger, member.first, member.last) == FAY_LEDGER_FAR)
			*ledger = (struct fay_ledger){ .upto = member.first - 1 };
		if (!ledger || (!partial->combined && member.agent != sender) ||
		    fay_ledger_look(ledger, member.first, member.last) != FAY_LEDGER_NEW)
			return false;
	}
	return true;
}

/* A sequence that follows the one before becomes one range with it. */
static void add_member(struct fay_job *job, const struct fay_wire_member *member)
{
	struct fay_pending *pending = job->pending;
	for (uint16_t i = 0; i < pending->count; i++) {
		struct fay_wire_member *there = &pending->members[i];
		if (there->agent != member->agent || there->last + 1 != member->first ||
		    member->last - there->first >= FAY_LEDGER_AHEAD ||
		    !(there->flags & FAY_MEMBER_LAST))
			continue;
		there->last = member->last;
		there->window = member->window;
		there->tree = member->tree;
		there->flags = member->flags;
		there->why = member->why;
		return;
	}
	pending->members[pending->count++] = *member;
}

static bool add_rows(struct fay_job *job, struct fay_wire_partial *partial)
{
	struct fay_error error;
	struct fay_pending *pending = job->pending;
	for (uint16_t i = 0; i < partial->blocks; i++) {
		struct fay_wire_block block = fay_wire_block(&partial->rest, &job->verdict->schema);
		const struct fay_schema_state *state = &job->verdict->schema.states[block.state];
		if (state->kind != FAY_STATE_STREAM) {
			if (fay_aggregator_merge(pending->rows, block.state, block.bytes,
						 block.rows, &error))
				return false;
			continue;
		}
		for (uint32_t r = 0; r < block.rows; r++)
			fay_parts_row(&pending->parts, block.state,
				      block.bytes + (size_t)r * state->row_size, state->row_size);
	}
	for (uint16_t names = fay_wire_u16(&partial->rest); names; names--) {
		uint64_t hash = fay_wire_u64(&partial->rest);
		struct fay_text name = fay_wire_string(&partial->rest, FAY_WIRE_NAME_MAX);
		fay_parts_name(&pending->parts, hash, name.bytes, name.size);
	}
	return true;
}

static size_t pending_size(const struct fay_pending *pending)
{
	return fay_parts_size(&pending->parts) + fay_aggregator_row_bytes(pending->rows) +
	       pending->count * FAY_WIRE_MEMBER;
}

/* Half-merged rows are thrown away with all that is pending; everything in it comes again to the
 * root. */
static void drop_pending(struct fay_job *job)
{
	struct fay_pending *pending = job->pending;
	fay_aggregator_destroy(pending->rows);
	fay_parts_deinit(&pending->parts);
	memset(pending, 0, sizeof(*pending));
}

static void enter(struct fay_job *job, const struct fay_wire_partial *partial,
		  struct fay_child *child)
{
	struct fay_wire_member member;
	for (uint16_t i = 0; i < partial->members.count; i++) {
		fay_wire_read_member(partial, i, &member);
		struct fay_ledger *ledger = find_ledger(job, member.agent, 0);
		fay_ledger_enter(ledger, member.first, member.last);
		add_member(job, &member);
		if (child && member.agent == child->agent && member.flags & FAY_MEMBER_LAST)
			child->window =
				member.flags & FAY_MEMBER_FINAL ? UINT64_MAX : member.window;
	}
}

void fay_job_collect(struct fay_job *job, const struct fay_wire_head *head)
{
	struct fay_wire_partial partial;
	struct fay_child *child = find_child(job, head->sender);
	bool own =
		head->sender == job->agent && !memcmp(head->key, job->keys->public, FAY_KEY_BYTES);
	if (!own && (!child || memcmp(head->key, child->key, FAY_KEY_BYTES))) {
		job->inner_refused++;
		return;
	}
	if (!fay_wire_read_partial(head->body, &job->verdict->schema, &partial) ||
	    partial.members.count > FAY_JOB_MEMBERS_MAX) {
		job->inner_refused++;
		return;
	}
	size_t size = (size_t)(head->body.end - head->body.at);
	if (!make_pending(job))
		return;
	if (job->pending->count &&
	    (pending_size(job->pending) + size > FAY_WIRE_PARTIAL_MAX ||
	     job->pending->count + partial.members.count > FAY_JOB_MEMBERS_MAX)) {
		fay_job_forward(job, true);
		if (!make_pending(job))
			return;
	}
	if (!all_new(job, &partial, head->sender)) {
		job->inner_duplicates++;
		return;
	}
	if (!add_rows(job, &partial)) {
		drop_pending(job);
		return;
	}
	if (!job->pending->count)
		job->pending->since = fay_monotonic();
	for (unsigned i = 0; i < FAY_WIRE_LOSSES; i++)
		job->pending->losses[i] += partial.losses[i];
	enter(job, &partial, child);
}

/* --- forwarding --- */

/* The newest window of which anything is there is closed here and by all children: one that is
 * ahead of the others does not go up alone. */
static bool window_closed(const struct fay_job *job)
{
	uint64_t window = job->window_done;
	for (uint16_t i = 0; i < job->pending->count; i++)
		window = job->pending->members[i].window > window ? job->pending->members[i].window
								  : window;
	if (job->window_done < window && !job->final)
		return false;
	for (size_t i = 0; i < job->child_count; i++)
		if (job->children[i].window < window)
			return false;
	return true;
}

static int by_agent(const void *left, const void *right)
{
	const struct fay_wire_member *x = left, *y = right;
	if (x->agent != y->agent)
		return x->agent < y->agent ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static void send_pending(struct fay_job *job)
{
	struct fay_pending *pending = job->pending;
	struct fay_error error;
	for (uint32_t s = 0; s < job->verdict->schema.state_count; s++) {
		struct fay_result rows;
		if (job->verdict->schema.states[s].kind == FAY_STATE_STREAM)
			continue;
		if (fay_aggregator_snapshot(pending->rows, s, &rows, &error)) {
			drop_pending(job);
			return;
		}
		for (size_t i = 0; i < rows.row_count; i++)
			fay_parts_row(&pending->parts, (uint16_t)s, rows.rows + i * rows.row_size,
				      rows.row_size);
		fay_result_deinit(&rows);
	}
	qsort(pending->members, pending->count, sizeof(*pending->members), by_agent);
	fay_wire_begin(&job->out, FAY_WIRE_PARTIAL, job->query, job->agent);
	fay_parts_finish(&pending->parts, true, pending->members, pending->count, pending->losses,
			 &job->out);
	if (fay_wire_end(&job->out, job->keys))
		fay_job_send(job, job->parent, job->out.bytes, job->out.size);
	drop_pending(job);
}

void fay_job_forward(struct fay_job *job, bool always)
{
	if (!job->pending || !job->pending->count)
		return;
	if (always || window_closed(job) ||
	    fay_monotonic() - job->pending->since > job->window / 2 || !fay_job_is_inner(job))
		send_pending(job);
}

void fay_job_collect_deinit(struct fay_job *job)
{
	if (job->pending)
		drop_pending(job);
	free(job->pending);
	for (size_t i = 0; i < job->early_count; i++)
		free(job->early[i].bytes);
	free(job->children);
	free(job->former);
	free(job->below);
}
