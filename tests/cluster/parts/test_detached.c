/* SPDX-License-Identifier: MIT */
/* Reading a detached query's stream, without a server: libnats' own functions are replaced by a
 * stream of a few messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/bus/bus_private.h"
#include "fixture.h"

#define STORED 8u

static struct stored {
	void *bytes; /* NULL: there is none of that number */
	size_t size;
	natsStatus fails; /* NATS_OK: it does not */
} stored[STORED + 1];

natsStatus __wrap_natsConnection_JetStream(jsCtx **context, natsConnection *connection,
					   jsOptions *options);
natsStatus __wrap_natsConnection_JetStream(jsCtx **context, natsConnection *connection,
					   jsOptions *options)
{
	*context = NULL;
	return NATS_OK;
}

natsStatus __wrap_js_GetStreamInfo(jsStreamInfo **info, jsCtx *context, const char *name,
				   jsOptions *options, jsErrCode *code);
natsStatus __wrap_js_GetStreamInfo(jsStreamInfo **info, jsCtx *context, const char *name,
				   jsOptions *options, jsErrCode *code)
{
	*info = calloc(1, sizeof(**info));
	(*info)->State.FirstSeq = 1;
	for (uint64_t i = 1; i <= STORED; i++)
		(*info)->State.LastSeq = stored[i].bytes ? i : (*info)->State.LastSeq;
	return NATS_OK;
}

void __wrap_jsStreamInfo_Destroy(jsStreamInfo *info);
void __wrap_jsStreamInfo_Destroy(jsStreamInfo *info)
{
	free(info);
}

natsStatus __wrap_js_GetMsg(natsMsg **message, jsCtx *context, const char *name, uint64_t sequence,
			    jsOptions *options, jsErrCode *code);
natsStatus __wrap_js_GetMsg(natsMsg **message, jsCtx *context, const char *name, uint64_t sequence,
			    jsOptions *options, jsErrCode *code)
{
	const struct stored *one = &stored[sequence];
	if (one->fails != NATS_OK || !one->bytes)
		return one->fails != NATS_OK ? one->fails : NATS_NOT_FOUND;
	return natsMsg_Create(message, "up", NULL, one->bytes, (int)one->size);
}

static struct stored published;
natsStatus __wrap_js_Publish(jsPubAck **ack, jsCtx *context, const char *subject, const void *bytes,
			     int size, jsPubOptions *options, jsErrCode *code);
natsStatus __wrap_js_Publish(jsPubAck **ack, jsCtx *context, const char *subject, const void *bytes,
			     int size, jsPubOptions *options, jsErrCode *code)
{
	published = (struct stored){ .bytes = malloc((size_t)size), .size = (size_t)size };
	memcpy(published.bytes, bytes, (size_t)size);
	return NATS_OK;
}

/* Message `number` of the stream: a window of an agent's, which counted one. */
static void store(const struct fixture *fixture, uint64_t number, uint64_t agent, uint64_t sequence,
		  uint8_t flags)
{
	static const uint64_t losses[FAY_WIRE_LOSSES];
	struct fay_parts parts = { 0 };
	struct fay_writer_buffer out = { 0 };
	struct fay_wire_member member = { .agent = agent,
					  .first = sequence,
					  .last = sequence,
					  .window = sequence,
					  .flags = flags | FAY_MEMBER_LAST,
					  .why = FAY_FINAL_STOPPED };
	struct fixture_row row = { .key = 1, .count = 1, .least = 1 };
	fay_parts_row(&parts, 0, (const uint8_t *)&row, sizeof(row));
	fay_wire_begin(&out, FAY_WIRE_PARTIAL, 1, agent);
	fay_parts_finish(&parts, false, &member, 1, losses, &out);
	assert_true(fay_wire_end(&out, &fixture->keys));
	fay_parts_deinit(&parts);
	stored[number].bytes = out.bytes;
	stored[number].size = out.size;
}

static struct fay_bus bus;
static struct fay_detached detached;
static struct fixture fixture;

static int begin(void **state)
{
	struct fay_error error;
	fixture_init(&fixture, 2);
	memset(&detached, 0, sizeof(detached));
	assert_int_equal(fay_stream_open(&bus, 1, &detached.stream, &error), FAY_OK);
	fixture.root.detached = &detached;
	return 0;
}

static int end(void **state)
{
	fay_stream_close(detached.stream);
	fixture_deinit(&fixture);
	for (size_t i = 1; i <= STORED; i++)
		free(stored[i].bytes);
	memset(stored, 0, sizeof(stored));
	return 0;
}

static void replay(void)
{
	struct fay_error error;
	assert_int_equal(fay_root_replay(&fixture.root, &error), FAY_OK);
}

/* A server that stands still for a moment loses nothing: what it did not give is read at the next
 * look. What is not there is passed over. */
static void test_a_message_is_not_given(void **state)
{
	store(&fixture, 1, 1, 1, 0);
	store(&fixture, 2, 2, 1, FAY_MEMBER_FINAL);
	store(&fixture, 4, 1, 2, FAY_MEMBER_FINAL);
	stored[2].fails = NATS_TIMEOUT;
	replay();
	assert_int_equal(fixture.root.coverage.merged, 1);
	assert_true(fay_root_is_behind(&fixture.root));
	replay();
	assert_int_equal(fixture.root.coverage.merged, 1);
	stored[2].fails = NATS_OK;
	stored[4].fails = NATS_ERR;
	replay();
	assert_int_equal(fixture.root.coverage.merged, 2);
	assert_true(fay_root_is_behind(&fixture.root));
	stored[4].fails = NATS_OK;
	replay();
	assert_int_equal(fixture.root.coverage.merged, 3);
	assert_int_equal(fixture.root.coverage.duplicates, 0);
	assert_false(fay_root_is_behind(&fixture.root));
	assert_true(fay_root_finished(&fixture.root));
}

/* What came too early before the message that was not given is looked at again. */
static void test_early_before_it(void **state)
{
	store(&fixture, 1, 1, 2 + FAY_LEDGER_AHEAD, 0);
	store(&fixture, 2, 2, 1, 0);
	store(&fixture, 3, 1, 1, 0);
	store(&fixture, 4, 1, 2, 0);
	stored[3].fails = NATS_TIMEOUT;
	replay();
	assert_true(fay_root_is_behind(&fixture.root));
	stored[3].fails = NATS_OK;
	replay();
	assert_int_equal(fixture.root.coverage.merged, 4);
}

/* What is read again, since there is a gap in the stream, says nothing of whether its sender is
 * still there. */
static void test_silence(void **state)
{
	const uint64_t second = 1000000000;
	struct fay_machine *const *machines = fixture.root.machines;
	store(&fixture, 1, 1, 1, 0);
	store(&fixture, 2, 1, 3 + FAY_LEDGER_AHEAD, 0);
	replay();
	assert_true(fay_root_silence(&fixture.root) < second);
	for (size_t i = 0; i < 2; i++)
		machines[i]->heard = fay_monotonic() - 20 * second;
	uint64_t early = fixture.root.coverage.early;
	replay();
	assert_true(fixture.root.coverage.early > early);
	assert_true(fay_root_silence(&fixture.root) >= 20 * second);
	assert_true(machines[0]->late && machines[1]->late);
	store(&fixture, 3, 2, 1, 0);
	replay();
	assert_true(fay_root_silence(&fixture.root) < second);
	assert_true(machines[0]->late && !machines[1]->late);
	assert_false(fay_root_give_up(&fixture.root, 10 * second));
	assert_true(machines[0]->lost && !machines[1]->lost);
	assert_true(fay_root_give_up(&fixture.root, 0));
	assert_true(machines[1]->lost);
}

/* Who attaches goes by the machines' clocks as they were when the query began, and by the lease
 * that they have. */
static void test_what_is_told(void **state)
{
	const int64_t behind = -100000000000;
	struct fay_root *root = &fixture.root, *attached;
	struct fay_wire_head head;
	struct fay_error error;
	root->keys = &fixture.keys;
	root->stream = detached.stream;
	root->options =
		(struct fay_root_options){ .text = "q", .window = 1000, .life = 5, .lease = 7 };
	root->machines[1]->clock_offset = behind;
	assert_int_equal(fay_root_detach(root, &error), FAY_OK);
	assert_true(fay_wire_open(published.bytes, published.size, &head) &&
		    head.type == FAY_WIRE_META);
	assert_true(fay_wire_read_meta(head.body, &detached.meta));
	assert_int_equal(detached.meta.life, 5);
	assert_int_equal(detached.meta.lease, 7);
	assert_int_equal(fay_root_attach(&root->options, &fixture.keys, &detached, &fixture.verdict,
					 fixture.aggregator, &attached, &error),
			 FAY_OK);
	assert_int_equal(fay_root_machine_count(attached), 2);
	assert_int_equal(fay_root_machine(attached, 0)->event_clock, 0);
	assert_int_equal(fay_root_machine(attached, 1)->event_clock, behind);
	assert_int_equal(fay_root_clock_behind(attached), -behind);
	fay_root_destroy(attached);
	fay_wire_free(&root->out);
	free(published.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_message_is_not_given, begin, end),
		cmocka_unit_test_setup_teardown(test_early_before_it, begin, end),
		cmocka_unit_test_setup_teardown(test_silence, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_told, begin, end),
	};
	if (nats_Open(-1) != NATS_OK)
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	nats_Close();
	return failed;
}
