/* SPDX-License-Identifier: MIT */
/* test_tracer TARGET: libfay_trace as its users see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fay/trace.h"

#define ROUNDS "4000"

static char *target;

/* What came of a trace: of the final picture each row as text, of events their number. */
struct seen {
	uint64_t rows, pictures;
	char text[4096], messages[4096];
};

static void put_cell(char *text, size_t size, const struct fay_cell *cell)
{
	size_t used = strlen(text);

	if (cell->kind == FAY_CELL_TEXT)
		snprintf(text + used, size - used, " '%s'", cell->bytes);
	else if (cell->kind == FAY_CELL_I64)
		snprintf(text + used, size - used, " %lld", (long long)cell->i64);
	else if (cell->kind == FAY_CELL_U64 || cell->kind == FAY_CELL_BOOL)
		snprintf(text + used, size - used, " %llu", (unsigned long long)cell->u64);
	else if (cell->kind == FAY_CELL_DOUBLE)
		snprintf(text + used, size - used, " %g", cell->real);
	else if (cell->kind == FAY_CELL_TIME)
		snprintf(text + used, size - used, " %s", cell->u64 >> 58 ? "time" : "early");
	for (size_t i = 0; i < cell->size && cell->kind >= FAY_CELL_HISTOGRAM; i++) {
		used = strlen(text);
		snprintf(text + used, size - used, " %s:%llu:%g", cell->items[i].label,
			 (unsigned long long)cell->items[i].count, cell->items[i].value);
	}
}

static void take_row(void *context, const struct fay_row *row)
{
	struct seen *seen = context;
	size_t used = strlen(seen->text);

	seen->rows++;
	seen->pictures = row->picture;
	if (row->picture && !row->final)
		return;
	if (!row->picture && seen->rows > 1)
		return;
	for (size_t i = 0; i < row->count; i++)
		put_cell(seen->text, sizeof(seen->text), &row->cells[i]);
	used = strlen(seen->text);
	snprintf(seen->text + used, sizeof(seen->text) - used, "\n");
}

static void take_message(void *context, const char *text)
{
	struct seen *seen = context;
	size_t used = strlen(seen->messages);

	assert_null(strchr(text, '\n'));
	snprintf(seen->messages + used, sizeof(seen->messages) - used, "%s\n", text);
}

/* From begin to end; the statistics are the final ones. */
static void trace(const char *query, struct fay_tracer_options options, struct seen *seen,
		  struct fay_tracer_statistics *statistics)
{
	struct fay_error error = { 0 };
	struct fay_tracer *tracer;

	*statistics = (struct fay_tracer_statistics){ .size = sizeof(*statistics) };
	options.size = sizeof(options);
	options.context = seen;
	options.row = take_row;
	options.message = take_message;
	if (fay_tracer_open(query, &options, &tracer, &error))
		fail_msg("%s: %s", query, error.message);
	while (!fay_tracer_over(tracer))
		if (fay_tracer_step(tracer, -1, &error))
			fail_msg("%s: %s", query, error.message);
	if (fay_tracer_finish(tracer, &error))
		fail_msg("%s: %s", query, error.message);
	assert_int_equal(fay_tracer_finish(tracer, &error), FAY_OK);
	assert_int_equal(fay_tracer_statistics(tracer, statistics, &error), FAY_OK);
	fay_tracer_close(tracer);
}

static void trace_command(const char *query, struct seen *seen)
{
	struct fay_tracer_statistics statistics;
	char *command[] = { target, ROUNDS, NULL };

	memset(seen, 0, sizeof(*seen));
	trace(query, (struct fay_tracer_options){ .command = command }, seen, &statistics);
	assert_int_equal(statistics.rows, seen->rows);
	assert_int_equal(statistics.lost_full + statistics.lost_reentrant + statistics.lost_calls,
			 0);
}

static void test_values(void **state)
{
	struct seen seen;

	trace_command("cluster.Function(\"tracer_target!add_up\").Count()", &seen);
	assert_string_equal(seen.text, " 4000\n");
	assert_non_null(strstr(seen.messages, "tracing 1 function in 1 process"));
	assert_int_not_equal(strncmp(seen.messages, "fay:", 4), 0);
	trace_command("from f in cluster.Function(\"tracer_target!add_up\") "
		      "group f by new { f.kind, f.function, f.word } into g orderby g.Key.kind "
		      "select new { kind = g.Key.kind, function = g.Key.function, "
		      "word = g.Key.word, n = g.Count(), least = g.Min(f => f.kind), "
		      "mean = g.Average(f => f.kind) }",
		      &seen);
	assert_string_equal(seen.text,
			    " 0 'add_up' 'even, and longer than fifteen bytes' 1000 0 0\n"
			    " 1 'add_up' 'odd' 1000 1 1\n"
			    " 2 'add_up' 'even, and longer than fifteen bytes' 1000 2 2\n"
			    " 3 'add_up' 'odd' 1000 3 3\n");
	trace_command("cluster.Function(\"tracer_target!add_up\").Histogram(f => f.kind)", &seen);
	assert_string_equal(seen.text, " <= 0:1000:0 1:1000:0 2..3:2000:0\n");
	trace_command("from f in cluster.Function(\"tracer_target!add_up\") "
		      "group f by f.Stack(2) into g "
		      "select new { s = g.Key, h = g.Histogram(f => f.kind), n = g.Count() }",
		      &seen);
	assert_int_equal(strncmp(seen.text, " tracer_target!add_up:0:0 tracer_target!main+0x", 47),
			 0);
	assert_non_null(strstr(seen.text, ":0:0 <= 0:1000:0 1:1000:0 2..3:2000:0 4000\n"));
	trace_command("from f in cluster.Function(\"tracer_target!add_up\") "
		      "select new { f.time, f.comm, two = f.kind == 2 }",
		      &seen);
	assert_int_equal(seen.rows, 4000);
	assert_int_equal(seen.pictures, 0);
	assert_string_equal(seen.text, " time 'tracer_target' 0\n");
}

static pid_t start_target(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		execl(target, target, NULL);
		_exit(127);
	}
	usleep(200000);
	return pid;
}

static void end_target(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Pictures on the way; it is stopped, and the program goes on. */
static void test_stopped(void **state)
{
	pid_t pid = start_target();
	struct seen seen = { 0 };
	struct fay_tracer_options options = { .size = sizeof(options),
					      .pids = &pid,
					      .pid_count = 1,
					      .every_ns = 50000000,
					      .context = &seen,
					      .row = take_row };
	struct fay_tracer *tracer;
	struct fay_error error;

	if (fay_tracer_open("cluster.Function(\"tracer_target!add_up\").Count()", &options, &tracer,
			    &error))
		fail_msg("%s", error.message);
	assert_int_equal(fay_tracer_results(tracer), 1);
	assert_int_equal(fay_tracer_columns(tracer, 0), 1);
	assert_non_null(fay_tracer_column(tracer, 0, 0));
	assert_null(fay_tracer_column(tracer, 0, 1));
	assert_null(fay_tracer_column(tracer, 1, 0));
	while (seen.pictures < 3)
		assert_int_equal(fay_tracer_step(tracer, -1, &error), FAY_OK);
	assert_null(fay_tracer_over(tracer));
	fay_tracer_stop(tracer);
	assert_int_equal(fay_tracer_step(tracer, -1, &error), FAY_OK);
	assert_string_equal(fay_tracer_over(tracer), "interrupted");
	assert_string_equal(seen.text, "");
	fay_tracer_close(tracer);
	assert_true(atol(seen.text) > 0);
	assert_int_equal(kill(pid, 0), 0);
	end_target(pid);
}

/* A command that goes on is its caller's; of one that is not traced nothing is left. */
static void test_command(void **state)
{
	char *command[] = { target, NULL };
	struct fay_tracer_options options = { .size = sizeof(options), .command = command };
	struct fay_tracer *tracer;
	struct fay_error error;

	if (fay_tracer_open("cluster.Function(\"tracer_target!add_up\").Count()", &options, &tracer,
			    &error))
		fail_msg("%s", error.message);
	assert_int_equal(fay_tracer_step(tracer, -1, &error), FAY_OK);
	pid_t pid = fay_tracer_command(tracer);
	assert_true(pid > 0);
	fay_tracer_close(tracer);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	end_target(pid);
	assert_int_equal(fay_tracer_open("cluster.Function(\"tracer_target!none\").Count()",
					 &options, &tracer, &error),
			 FAY_E_USAGE);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void *trace_in_thread(void *argument)
{
	for (int i = 0; i < 3; i++)
		trace_command("cluster.Function(\"tracer_target!add_up\").Count()", argument);
	return NULL;
}

static void test_threads(void **state)
{
	static struct seen seen[2];
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, trace_in_thread, &seen[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_string_equal(seen[0].text, " 4000\n");
	assert_string_equal(seen[1].text, " 4000\n");
}

static void refuse(const char *query, struct fay_tracer_options options, int code, const char *what)
{
	struct fay_error error = { 0 };
	struct fay_tracer *tracer = (void *)&error;

	assert_int_equal(fay_tracer_open(query, &options, &tracer, &error), code);
	assert_null(tracer);
	if (!strstr(error.message, what))
		fail_msg("'%s' is not in '%s'", what, error.message);
	assert_int_equal(fay_tracer_open(query, &options, &tracer, NULL), code);
}

static void test_refused(void **state)
{
	static const char count[] = "cluster.Function(\"libc!malloc\").Count()";
	const size_t size = sizeof(struct fay_tracer_options);
	const char *comm = "no such name";
	pid_t none = 1 << 30;
	char *missing[] = { "/no/such/program", NULL };

	refuse(count, (struct fay_tracer_options){ 0 }, FAY_E_USAGE, "another size");
	refuse("cluster.Nonsense()", (struct fay_tracer_options){ .size = size }, FAY_E_USAGE,
	       "Nonsense");
	refuse(count, (struct fay_tracer_options){ .size = size }, FAY_E_USAGE, "which process");
	refuse(count, (struct fay_tracer_options){ .size = size, .comms = &comm, .comm_count = 1 },
	       FAY_E_REFUSED, "no process is named");
	refuse(count, (struct fay_tracer_options){ .size = size, .pids = &none, .pid_count = 1 },
	       FAY_E_REFUSED, "");
	refuse(count, (struct fay_tracer_options){ .size = size, .command = missing }, FAY_E_USAGE,
	       "/no/such/program");
	refuse(count, (struct fay_tracer_options){ .size = size, .budget = 2 }, FAY_E_USAGE,
	       "budget");
	fay_tracer_close(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_command), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_refused),
	};

	if (argc != 2)
		return 2;
	target = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
