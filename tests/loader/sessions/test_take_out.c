/* SPDX-License-Identifier: MIT */
/*
 * Places taken out of a session that goes on, alone and in a chain with another session, which
 * leaves first or last: what is out is not counted any more, the rest is, exactly, and in the end
 * the text is what it was. What the account of costs says of events is exact, too. Places come back
 * where nothing else has changed, also when another session has been planned. Calls are counted
 * without any probe.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"

#define PROGRAM "fay-test-target"

static struct fay_session *attach_as(struct victim *victim, struct fay_target **target,
				     const struct hand_verdict *hand, bool counts_only)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .costs = !counts_only,
					      .counts_only = counts_only };
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };

	if (fay_target_open_pid(victim->pid, target, &error) ||
	    fay_session_attach(*target, &hand->verdict, &options, &session, &error))
		fail_msg("attach: %s", error.message);
	return session;
}

static struct fay_session *attach_with_costs(struct victim *victim, struct fay_target **target,
					     const struct hand_verdict *hand)
{
	return attach_as(victim, target, hand, false);
}

static struct fay_point_cost cost_of(struct fay_session *session, const char *name)
{
	struct fay_point_cost *costs = calloc(fay_session_cost_count(session), sizeof(*costs)),
			      cost;

	assert_non_null(costs);
	fay_session_costs(session, costs);
	cost = costs[point_named(session, name)];
	free(costs);
	return cost;
}

static void take_out(struct fay_session *session, const char *name)
{
	size_t point = point_named(session, name);
	struct fay_error error = { 0 };

	if (fay_session_take_out(session, &point, 1, &error))
		fail_msg("take out %s: %s", name, error.message);
}

static void test_alone(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	session = attach_with_costs(&victim, &target, &hand);
	assert_int_equal(victim_ask(&victim, "run fn_c 4 1000"), 4000);
	assert_int_equal(cost_of(session, "fn_c").events, 4000);
	assert_true(cost_of(session, "fn_c").nanoseconds > 0);
	take_out(session, "fn_c");
	assert_true(cost_of(session, "fn_c").taken_out);
	assert_int_equal(victim_ask(&victim, "run fn_c 4 1000"), 4000);
	assert_int_equal(victim_ask(&victim, "run fn_riprel 4 500"), 2000);
	assert_int_equal(total(session, 0), 4000 + 2000);
	assert_int_equal(cost_of(session, "fn_c").events, 4000);
	assert_int_equal(cost_of(session, "fn_riprel").events, 2000);
	take_out(session, "fn_c"); /* again: nothing is there, and nothing is wrong */
	detach(session, target);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(mappings(victim.pid, "memfd:fay-"), 0);
	victim_end(&victim);
}

/* `above`: the session that loses a place came last, so its jump is the one that is in the program.
 * */
static void chain(struct victim *victim, bool above, bool leaves_first)
{
	struct fay_target *target, *other_target;
	struct fay_session *session, *other = NULL;
	struct hand_verdict all, one;

	hand_verdict(&all, PROBE_COUNT, PROGRAM "!fn_*");
	hand_verdict(&one, PROBE_COUNT, PROGRAM "!fn_c");
	if (above)
		other = attach(victim, &other_target, &one);
	session = attach_with_costs(victim, &target, &all);
	if (!above)
		other = attach(victim, &other_target, &one);
	assert_int_equal(victim_ask(victim, "run fn_c 2 1000"), 2000);
	take_out(session, "fn_c");
	assert_int_equal(victim_ask(victim, "run fn_c 2 1000"), 2000);
	assert_int_equal(total(session, 0), 2000);
	assert_int_equal(total(other, 0), 4000);
	if (leaves_first)
		detach(session, target);
	else
		detach(other, other_target);
	assert_int_equal(victim_ask(victim, "run fn_c 2 1000"), 2000);
	if (leaves_first) {
		assert_int_equal(total(other, 0), 6000);
		detach(other, other_target);
	} else {
		assert_int_equal(total(session, 0), 2000);
		detach(session, target);
	}
}

static void test_chains(void **state)
{
	struct victim victim;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	for (int i = 0; i < 4; i++) {
		chain(&victim, i & 1, i & 2);
		assert_true(victim_ask(&victim, "checksum") == checksum);
		assert_int_equal(mappings(victim.pid, "memfd:fay-"), 0);
	}
	victim_end(&victim);
}

static bool puts_back(struct fay_session *session, const char *name)
{
	size_t point = point_named(session, name);
	struct fay_error error = { 0 };
	int code = fay_session_put_back(session, &point, 1, &error);

	assert_true(!code || code == FAY_E_REFUSED);
	return !code;
}

/* Entries, and exits of calls without records. */
static void back(uint32_t kind)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	hand.probes[0].kind = kind;
	session = attach_with_costs(&victim, &target, &hand);
	assert_false(puts_back(session, "fn_c")); /* it is not out */
	for (uint64_t round = 1; round <= 20; round++) {
		assert_int_equal(victim_ask(&victim, "run fn_c 4 100"), 400);
		take_out(session, "fn_c");
		assert_int_equal(victim_ask(&victim, "run fn_c 4 50"), 200);
		assert_true(fay_session_comes_back(session, point_named(session, "fn_c")));
		assert_true(puts_back(session, "fn_c"));
		assert_false(cost_of(session, "fn_c").taken_out);
		assert_int_equal(cost_of(session, "fn_c").events, round * 400);
		assert_int_equal(total(session, 0), round * 400);
	}
	/* while it is called */
	victim_tell(&victim, "run fn_c 4 3000000");
	for (int round = 0; round < 20; round++) {
		take_out(session, "fn_c");
		puts_back(session, "fn_c"); /* or a thread stays where it cannot */
	}
	assert_int_equal(victim_answer(&victim), 12000000);
	assert_int_equal(cost_of(session, "fn_c").events, total(session, 0));
	detach(session, target);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	assert_int_equal(mappings(victim.pid, "memfd:fay-"), 0);
	victim_end(&victim);
}

static void test_back(void **state)
{
	back(FAY_PROBE_ENTRY);
	back(FAY_PROBE_RETURN);
}

static pid_t other_thread(pid_t pid)
{
	char path[32];
	struct dirent *entry;
	pid_t tid = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tasks = opendir(path);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != pid)
			tid = atoi(entry->d_name);
	closedir(tasks);
	return tid;
}

/* Steps the thread to the address. Its process stands afterwards, until SIGCONT. */
static void stand_at(pid_t tid, uint64_t address)
{
	struct user_regs_struct registers = { 0 };

	assert_int_equal(ptrace(PTRACE_SEIZE, tid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, 0, 0), 0);
	assert_int_equal(waitpid(tid, NULL, __WALL), tid);
	for (int step = 0; step < 10000 && registers.rip != address; step++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, tid, 0, 0), 0);
		assert_int_equal(waitpid(tid, NULL, __WALL), tid);
		assert_int_equal(ptrace(PTRACE_GETREGS, tid, 0, &registers), 0);
	}
	assert_true(registers.rip == address);
	assert_int_equal(ptrace(PTRACE_DETACH, tid, 0, (long)SIGSTOP), 0);
}

/* A thread between a short jump and the one in its hole, of a function that is in place. */
static void test_back_beside(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	hand_verdict_also(&hand, PROGRAM "!hops");
	hand.probes[0].kind = hand.probes[1].kind = FAY_PROBE_RETURN;
	session = attach_with_costs(&victim, &target, &hand);
	take_out(session, "fn_c");
	victim_ask(&victim, "start hops 1");
	stand_at(other_thread(victim.pid),
		 fay_session_point(session, point_named(session, "hops"))->address + 5);
	assert_true(puts_back(session, "fn_c"));
	kill(victim.pid, SIGCONT);
	usleep(10000);
	assert_true(victim_ask(&victim, "stop") > 0); /* it has not aborted */
	detach(session, target);
	victim_end(&victim);
}

/* Not while another session's jump is there. */
static void test_stays_out(void **state)
{
	struct victim victim;
	struct fay_target *target, *other_target;
	struct fay_session *session, *other;
	struct hand_verdict hand, one;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	hand_verdict(&one, PROBE_COUNT, PROGRAM "!fn_c");
	session = attach_with_costs(&victim, &target, &hand);
	take_out(session, "fn_c");
	other = attach(&victim, &other_target, &one);
	assert_false(puts_back(session, "fn_c"));
	assert_int_equal(victim_ask(&victim, "run fn_c 2 100"), 200);
	assert_int_equal(total(session, 0), 0);
	assert_int_equal(total(other, 0), 200);
	detach(other, other_target);
	assert_true(puts_back(session, "fn_c"));
	assert_int_equal(victim_ask(&victim, "run fn_c 2 100"), 200);
	assert_int_equal(total(session, 0), 200);
	detach(session, target);
	/* installed over another one's */
	other = attach(&victim, &other_target, &one);
	session = attach_with_costs(&victim, &target, &hand);
	take_out(session, "fn_c");
	assert_false(puts_back(session, "fn_c"));
	detach(other, other_target);
	assert_false(puts_back(session, "fn_c"));
	detach(session, target);

	victim_end(&victim);
}

/* With records of calls. A call that was under way when its function was taken out has left one at
 * the place of the stack at which another one ends when it is back. */
static void test_records(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_function_list plain = { 0 };
	struct fay_error error;
	uint64_t inside, begin, checksum, before;
	pid_t tid;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!hops");
	hand.probes[0].kind = FAY_PROBE_RETURN;
	hand.probes[0].event_fields = FAY_FIELD_DURATION;
	session = attach_with_costs(&victim, &target, &hand);
	begin = fay_session_point(session, point_named(session, "hops"))->address;
	assert_int_equal(fay_target_find(target, PROGRAM "!fn_plain", &plain, &error), 0);
	inside = plain.items[0].address + 4; /* which hops calls */
	fay_function_list_deinit(&plain);
	assert_int_equal(victim_ask(&victim, "run hops 2 100"), 200);
	assert_int_equal(cost_of(session, "hops").events, 200);
	assert_int_equal(cost_of(session, "hops").passes, 400);
	victim_ask(&victim, "start hops 1");
	tid = other_thread(victim.pid);
	stand_at(tid, inside);
	take_out(session, "hops");
	kill(victim.pid, SIGCONT);
	usleep(10000);
	stand_at(tid, inside);
	before = total(session, 0);
	assert_true(puts_back(session, "hops"));
	stand_at(tid, begin);
	assert_int_equal(total(session, 0), before);
	kill(victim.pid, SIGCONT);
	usleep(10000);
	assert_true(victim_ask(&victim, "stop") > 0);
	assert_true(total(session, 0) > before);
	detach(session, target);
	assert_true(victim_ask(&victim, "checksum") == checksum);
	victim_end(&victim);
}

static void test_counts_only(void **state)
{
	static const uint32_t kinds[] = { FAY_PROBE_ENTRY, FAY_PROBE_RETURN, FAY_PROBE_EXCEPTION };
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		hand_verdict(&hand, PROBE_SLOW, PROGRAM "!fn_*");
		hand.probes[0].kind = kinds[i];
		session = attach_as(&victim, &target, &hand, true);
		assert_int_equal(victim_ask(&victim, "run fn_c 4 1000"), 4000);
		assert_int_equal(victim_ask(&victim, "run fn_riprel 2 500"), 1000);
		assert_int_equal(cost_of(session, "fn_c").events, 4000);
		assert_int_equal(cost_of(session, "fn_riprel").events, 1000);
		detach(session, target);
		assert_true(victim_ask(&victim, "checksum") == checksum);
	}
	/* the first place of an image without state is counted, too */
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	session = attach_as(&victim, &target, &hand, true);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 10"), 10);
	assert_int_equal(cost_of(session, "fn_c").events, 10);
	detach(session, target);
	victim_end(&victim);
}

static void test_target_gone(void **state)
{
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	struct fay_error error = { 0 };
	size_t point = 0;

	victim_start(&victim);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	session = attach_with_costs(&victim, &target, &hand);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 10"), 10);
	victim_end(&victim);
	assert_int_not_equal(fay_session_take_out(session, &point, 1, &error), 0);
	assert_int_equal(cost_of(session, "fn_c").events, 10);
	detach(session, target);
}

/* A trace that puts a place back when another one has been planned. */
struct overtaker {
	struct fay_session *session;
	const char *name;
	bool done;
};

static int overtake(void *context, pid_t pid, struct fay_error *error)
{
	struct overtaker *other = context;

	(void)pid;
	(void)error;
	other->done = puts_back(other->session, other->name);
	return 0;
}

/*
 * The other finds a jump when it may have written its own at lower places, which it takes back; the
 * jump stays, although its first byte is that of the other's, and the next plan goes on to it.
 */
static void overtaken(const char *module, const char *name, bool leaves_first)
{
	struct victim victim;
	struct fay_target *target, *other_target;
	struct overtaker other = { .name = name };
	struct fay_attach_options options = { .size = sizeof(options),
					      .permit = overtake,
					      .permit_context = &other };
	struct fay_session *session;
	struct hand_verdict hand, one;
	struct fay_error error;
	char pattern[64];
	uint64_t checksum;
	bool is_c = !strcmp(name, "fn_c");

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	snprintf(pattern, sizeof(pattern), "%s!%s", module, name);
	hand_verdict(&one, PROBE_COUNT, pattern);
	other.session = attach_with_costs(&victim, &other_target, &one);
	take_out(other.session, name);
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	hand_verdict_also(&hand, "libc!getppid");
	hand_verdict_also(&hand, "libc!setlocale");
	assert_int_equal(fay_target_open_pid(victim.pid, &target, &error), 0);
	if (fay_session_attach(target, &hand.verdict, &options, &session, &error))
		fail_msg("attach: %s", error.message);
	assert_true(other.done);
	assert_int_equal(victim_ask(&victim, "run fn_c 2 1000"), 2000);
	assert_int_equal(victim_ask(&victim, "run fn_jcc 2 500"), 1000);
	assert_int_equal(total(session, 0), 3000);
	assert_int_equal(total(other.session, 0), is_c ? 2000 : 0);
	if (leaves_first)
		detach(session, target);
	else
		detach(other.session, other_target);
	assert_int_equal(victim_ask(&victim, "run fn_c 2 500"), 1000);
	if (leaves_first) {
		assert_int_equal(total(other.session, 0), is_c ? 3000 : 0);
		detach(other.session, other_target);
	} else {
		assert_int_equal(total(session, 0), 4000);
		detach(session, target);
	}
	assert_clean(&victim, checksum);
	victim_end(&victim);
}

static void test_overtaken(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		overtaken(PROGRAM, "fn_c", i);
		overtaken("libc", "getppid", i);
		overtaken("libc", "setlocale", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),       cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_chains),      cmocka_unit_test(test_back),
		cmocka_unit_test(test_back_beside), cmocka_unit_test(test_stays_out),
		cmocka_unit_test(test_counts_only), cmocka_unit_test(test_records),
		cmocka_unit_test(test_target_gone)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
