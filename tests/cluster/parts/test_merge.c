/* SPDX-License-Identifier: MIT */
/*
 * Exactly once, without a network: partials of eight agents, alone and combined by an inner agent,
 * arrive in random order, some twice, some never, until all agents' own have come again. Oracle:
 * what a sequence of an agent adds is a function of the two, so the ledgers alone tell the sum that
 * the root must have at every moment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "quiet_bus.h"
#include "tests/xorshift.h"

#define AGENTS 8u
#define SEQUENCES 40u
#define ROUNDS 15u

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	return xorshift(&random_state) % below;
}

static uint64_t count_of(uint64_t agent, uint64_t sequence)
{
	return agent * 1000 + sequence * 7 + 1;
}

/* `tree`: the version that the agent has. */
static struct letter make_in_tree(struct fixture *fixture, uint64_t agent, uint64_t sequence,
				  uint32_t tree)
{
	struct fay_parts parts = { 0 };
	struct fay_writer_buffer out = { 0 };
	struct fay_wire_member member = { .agent = agent,
					  .first = sequence,
					  .last = sequence,
					  .window = sequence,
					  .tree = tree,
					  .flags = FAY_MEMBER_LAST };
	struct fixture_row row = {
		.key = sequence % 5, .count = count_of(agent, sequence), .sum = 3, .least = ~agent
	};
	struct fixture_event event = { agent * 100 + sequence };
	uint64_t losses[FAY_WIRE_LOSSES] = { 1 };
	if (sequence == SEQUENCES)
		member.flags |= FAY_MEMBER_FINAL;
	fay_parts_row(&parts, 0, (const uint8_t *)&row, sizeof(row));
	fay_parts_row(&parts, 1, (const uint8_t *)&event, sizeof(event));
	fay_parts_name(&parts, fay_name_hash("five"), "four", 4); /* another's name */
	fay_parts_name(&parts, fay_name_hash("five"), "five", 4);
	fay_wire_begin(&out, FAY_WIRE_PARTIAL, 1, agent);
	fay_parts_finish(&parts, false, &member, 1, losses, &out);
	assert_true(fay_wire_end(&out, &fixture->keys));
	fay_parts_deinit(&parts);
	return (struct letter){ out.bytes, out.size };
}

static struct letter make_single(struct fixture *fixture, uint64_t agent, uint64_t sequence)
{
	return make_in_tree(fixture, agent, sequence, 0);
}

static void deliver(struct fixture *fixture, const struct letter *letter)
{
	struct fay_wire_head head;
	assert_true(fay_wire_open(letter->bytes, letter->size, &head));
	fay_root_merge(&fixture->root, &head);
}

static void check(struct fixture *fixture)
{
	struct fay_result result;
	struct fay_error error;
	uint64_t want = 0, sequences = 0, got = 0, sum = 0, events = 0;
	for (size_t i = 0; i < AGENTS; i++)
		for (uint64_t s = 1; s <= SEQUENCES; s++) {
			if (fay_ledger_look(&fixture->root.machines[i]->ledger, s, s) !=
			    FAY_LEDGER_OLD)
				continue;
			want += count_of(i + 1, s);
			events += (i + 1) * 100 + s;
			sequences++;
		}
	assert_int_equal(fay_aggregator_snapshot(fixture->aggregator, 0, &result, &error), FAY_OK);
	for (size_t i = 0; i < result.row_count; i++) {
		const struct fixture_row *row =
			(const struct fixture_row *)(result.rows + i * sizeof(*row));
		got += row->count;
		sum += row->sum;
	}
	assert_int_equal(result.events_lost_reentrant, sequences);
	fay_result_deinit(&result);
	assert_int_equal(got, want);
	assert_int_equal(sum, 3 * sequences);
	assert_int_equal(fixture->events, sequences);
	assert_int_equal(fixture->event_sum, events);
}

/* A few random sequences, some of several agents, go through the inner agent and come out as one
 * message, or two if it is forgotten in between. */
static struct letter combine(struct fixture *fixture, struct letter singles[AGENTS][SEQUENCES + 1])
{
	struct fay_wire_head head;
	uint64_t agent = next_random(AGENTS), sequence = 1 + next_random(SEQUENCES);
	free(fixture->inner.below); /* it was started again: it knows nothing of what it sent */
	fixture->inner.below = NULL;
	fixture->inner.below_count = 0;
	sent.bytes = NULL;
	for (uint64_t n = 2 + next_random(6); n; n--) {
		const struct letter *letter = &singles[agent][sequence];
		assert_true(fay_wire_open(letter->bytes, letter->size, &head));
		fay_job_collect(&fixture->inner, &head);
		if (next_random(2) && sequence < SEQUENCES)
			sequence++;
		else
			agent = next_random(AGENTS);
	}
	fay_job_forward(&fixture->inner, true);
	return sent;
}

static void one_run(uint64_t seed)
{
	static struct fixture fixture;
	static struct letter singles[AGENTS][SEQUENCES + 1];
	random_state = seed * 0x9e3779b97f4a7c15u + 1;
	fixture_init(&fixture, AGENTS);
	fixture.root.machines[0]->inner = true;
	for (uint64_t a = 0; a < AGENTS; a++)
		for (uint64_t s = 1; s <= SEQUENCES; s++)
			singles[a][s] = make_single(&fixture, a + 1, s);
	fixture.inner.agent = 1; /* machine 1 is the inner one */
	for (unsigned i = 0; i < 200; i++) {
		struct letter letter = combine(&fixture, singles);
		for (uint64_t times = next_random(3); letter.bytes && times; times--)
			deliver(&fixture, &letter);
		if (next_random(3) == 0)
			deliver(&fixture,
				&singles[next_random(AGENTS)][1 + next_random(SEQUENCES)]);
		if (i % 20 == 0)
			check(&fixture);
		free(sent.bytes);
		sent.bytes = NULL;
	}
	assert_true(fixture.root.coverage.conflicts > 0 && fixture.root.coverage.duplicates > 0 &&
		    fixture.root.coverage.combined > 0);
	/* Everything comes again, alone. */
	for (uint64_t a = 0; a < AGENTS; a++)
		for (uint64_t s = SEQUENCES; s >= 1; s--)
			deliver(&fixture, &singles[a][s]);
	check(&fixture);
	for (uint64_t a = 0; a < AGENTS; a++) {
		assert_int_equal(fixture.root.machines[a]->ledger.upto, SEQUENCES);
		assert_int_equal(fixture.root.machines[a]->window, SEQUENCES);
		assert_int_equal(fixture.root.machines[a]->state, FAY_MACHINE_FINISHED);
		for (uint64_t s = 1; s <= SEQUENCES; s++)
			free(singles[a][s].bytes);
	}
	assert_string_equal(fay_names_find(&fixture.root.names, fay_name_hash("five")), "five");
	fixture_deinit(&fixture);
}

static void test_random_orders(void **state)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++)
		one_run(seed);
}

/* Who may not send: a stranger, somebody with another key, one that is no inner agent, one that
 * speaks for another. */
static void test_senders(void **state)
{
	struct fixture fixture;
	struct fay_wire_head head;
	fixture_init(&fixture, 2);
	struct letter letter = make_single(&fixture, 1, 1), stranger = make_single(&fixture, 9, 1);
	deliver(&fixture, &stranger);
	assert_int_equal(fixture.root.coverage.unknown, 1);
	fixture.root.machines[0]->key[0] ^= 1;
	deliver(&fixture, &letter);
	assert_int_equal(fixture.root.coverage.unknown, 2);
	fixture.root.machines[0]->key[0] ^= 1;
	assert_true(fay_wire_open(letter.bytes, letter.size, &head));
	head.sender = 2;
	fay_root_merge(&fixture.root, &head);
	assert_int_equal(fixture.root.coverage.malformed, 1);
	letter.bytes[letter.size - 100] ^= 1; /* the last byte of the body */
	assert_false(fay_wire_open(letter.bytes, letter.size, &head));
	letter.bytes[letter.size - 100] ^= 1;
	deliver(&fixture, &letter);
	assert_int_equal(fixture.events, 1);
	free(letter.bytes);
	free(stranger.bytes);
	fixture_deinit(&fixture);
}

/* Every cut of a message, and every byte more, is malformed. */
static void test_lengths(void **state)
{
	struct fixture fixture;
	struct fay_wire_head head;
	struct fay_wire_partial partial;
	fixture_init(&fixture, 1);
	struct letter letter = make_single(&fixture, 1, 1);
	assert_true(fay_wire_open(letter.bytes, letter.size, &head));
	assert_true(fay_wire_read_partial(head.body, &fixture_schema, &partial));
	for (const uint8_t *end = head.body.at; end < head.body.end; end++)
		assert_false(
			fay_wire_read_partial((struct fay_reader){ .at = head.body.at, .end = end },
					      &fixture_schema, &partial));
	head.body.end++; /* into the key */
	assert_false(fay_wire_read_partial(head.body, &fixture_schema, &partial));
	free(letter.bytes);
	fixture_deinit(&fixture);
}

static void test_ledger(void **state)
{
	struct fay_ledger ledger = { 0 };
	assert_int_equal(fay_ledger_look(&ledger, 1, 1), FAY_LEDGER_NEW);
	assert_int_equal(fay_ledger_look(&ledger, FAY_LEDGER_AHEAD, FAY_LEDGER_AHEAD),
			 FAY_LEDGER_NEW);
	assert_int_equal(fay_ledger_look(&ledger, FAY_LEDGER_AHEAD + 1, FAY_LEDGER_AHEAD + 1),
			 FAY_LEDGER_FAR);
	fay_ledger_enter(&ledger, 2, 3);
	assert_int_equal(ledger.upto, 0);
	assert_int_equal(fay_ledger_look(&ledger, 1, 2), FAY_LEDGER_MIXED);
	assert_int_equal(fay_ledger_look(&ledger, 3, 4), FAY_LEDGER_MIXED);
	assert_int_equal(fay_ledger_look(&ledger, 2, 3), FAY_LEDGER_OLD);
	fay_ledger_enter(&ledger, 1, 1);
	assert_int_equal(ledger.upto, 3);
	for (uint64_t i = 4; i <= 5 * FAY_LEDGER_AHEAD; i++) {
		assert_int_equal(fay_ledger_look(&ledger, i, i), FAY_LEDGER_NEW);
		fay_ledger_enter(&ledger, i, i);
		assert_int_equal(ledger.upto, i);
	}
	assert_int_equal(fay_ledger_look(&ledger, 1, UINT32_MAX), FAY_LEDGER_FAR);
}

/* The inner agent hears of a tree in which these are its children. */
static void hear_of_tree(struct fixture *fixture, uint32_t version, const uint64_t *agents,
			 uint16_t count)
{
	uint8_t children[4 * FAY_ASSIGN_CHILD];
	for (uint16_t i = 0; i < count; i++) {
		memcpy(children + i * FAY_ASSIGN_CHILD, &agents[i], sizeof(agents[i]));
		memcpy(children + i * FAY_ASSIGN_CHILD + sizeof(agents[i]), fixture->key,
		       FAY_KEY_BYTES);
	}
	fay_job_assign(
		&fixture->inner,
		&(struct fay_wire_assign){ .version = version, .children = { children, count } });
}

static void to_inner(struct fixture *fixture, uint64_t agent, uint64_t sequence, uint32_t tree)
{
	struct letter letter = make_in_tree(fixture, agent, sequence, tree);
	struct fay_wire_head head;
	assert_true(fay_wire_open(letter.bytes, letter.size, &head));
	fay_job_collect_message(&fixture->inner, &head, letter.bytes, letter.size);
	free(letter.bytes);
}

static size_t pending(const struct fixture *fixture)
{
	return fixture->inner.pending ? fixture->inner.pending->count : 0;
}

/* Parents and children hear of a new tree at different times: what is sent meanwhile is merged all
 * the same. */
static void test_trees(void **state)
{
	struct fixture fixture;
	const uint64_t one[] = { 1 }, nine[] = { 9, 1 };
	fixture_init(&fixture, 3);
	fixture.inner.window = 1000000000;
	hear_of_tree(&fixture, 2, one, 1);
	to_inner(&fixture, 2, 1, 1); /* a child no more, and does not know yet */
	assert_int_equal(pending(&fixture), 1);
	to_inner(&fixture, 9, 1, 3); /* knows that it is one */
	assert_int_equal(pending(&fixture), 1);
	assert_int_equal(fixture.inner.early_count, 1);
	assert_int_equal(fixture.inner.inner_refused, 0);
	hear_of_tree(&fixture, 3, nine, 2); /* sends what is pending, and takes what came early */
	assert_int_equal(fixture.inner.early_count, 0);
	assert_int_equal(fixture.inner.early_bytes, 0);
	assert_int_equal(pending(&fixture), 1);
	assert_int_equal(fixture.inner.pending->members[0].agent, 9);
	to_inner(&fixture, 9, 1, 3); /* once only */
	assert_int_equal(pending(&fixture), 1);
	assert_int_equal(fixture.inner.inner_duplicates, 1);
	to_inner(&fixture, 2, 2, 3); /* neither of this tree nor of the one before */
	assert_int_equal(fixture.inner.inner_refused, 1);
	for (uint64_t i = 1; i <= FAY_JOB_EARLY_MAX + 5; i++)
		to_inner(&fixture, 2, i, 4);
	assert_int_equal(fixture.inner.early_count, FAY_JOB_EARLY_MAX);
	assert_int_equal(fixture.inner.inner_refused, 6);
	fixture_deinit(&fixture);
}

static int no_rows(void *context, uint32_t state, struct fay_result *result,
		   struct fay_error *error)
{
	*result = (struct fay_result){ .state = state,
				       .row_size = fixture_schema.states[state].row_size };
	return FAY_OK;
}

static void do_nothing(void *context)
{
}

/* A child's partial, and one of the inner agent itself, for which there is no room beside it: the
 * child's goes up alone, then its own. */
static void test_own_is_large(void **state)
{
	struct fixture fixture;
	struct fay_error error;
	struct fay_wire_head head;
	struct fay_wire_partial partial;
	struct fixture_event event = { 1 };
	const unsigned rows = FAY_WIRE_PARTIAL_MAX * 2 / 3 / sizeof(event);
	fixture_init(&fixture, 1);
	struct fay_job *inner = &fixture.inner;
	struct letter child = make_single(&fixture, 1, 1);
	assert_true(fay_wire_open(child.bytes, child.size, &head));
	fay_job_collect(inner, &head);
	for (unsigned i = 0; i < rows; i++)
		fay_parts_row(&inner->pending->parts, 1, (const uint8_t *)&event, sizeof(event));
	inner->feed = (struct fay_feed){ .stop = do_nothing, .snapshot = no_rows };
	inner->stream.limit = FAY_JOB_STREAM_MAX;
	assert_int_equal(fay_changes_create(&fixture.verdict.schema, 0, &inner->changes, &error),
			 FAY_OK);
	for (unsigned i = 0; i < rows; i++)
		fay_job_row(inner, 1, (const uint8_t *)&event);
	fay_job_end(inner, FAY_FINAL_ENDED);
	assert_int_equal(inner->inner_duplicates, 0);
	assert_int_equal(pending(&fixture), 1);
	assert_int_equal(inner->pending->members[0].agent, inner->agent);
	assert_true(fay_wire_open(sent.bytes, sent.size, &head) &&
		    fay_wire_read_partial(head.body, &fixture_schema, &partial));
	assert_int_equal(partial.members.count, 1);
	fay_job_forward(inner, true);
	assert_true(fay_wire_open(sent.bytes, sent.size, &head) &&
		    fay_wire_read_partial(head.body, &fixture_schema, &partial));
	assert_true(partial.combined && partial.members.count == 1);
	free(child.bytes);
	free(sent.bytes);
	sent.bytes = NULL;
	fay_changes_destroy(inner->changes);
	free(inner->kept[0].bytes);
	free(inner->kept);
	fay_parts_deinit(&inner->parts);
	fay_wire_free(&inner->stream);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_orders), cmocka_unit_test(test_senders),
		cmocka_unit_test(test_lengths),       cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_trees),         cmocka_unit_test(test_own_is_large),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
