/* SPDX-License-Identifier: MIT */
/*
 * Saved traces that do not have what a question needs, or something else under its name: each such
 * question is refused in words, none is answered with zeros. And columns that would be taken for an
 * event's own field are not saved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/query.h"

#define NOW 1700000000000000000u

static const char *no_name(void *context, uint64_t hash)
{
	(void)context, (void)hash;
	return NULL;
}

static void no_address(void *context, uint64_t address, bool exact, char *text, size_t size)
{
	(void)context, (void)address, (void)exact;
	snprintf(text, size, "?");
}

struct column {
	const char *name;
	enum fay_column_type type;
};

/* An empty trace of calls' ends, or of calls, with these columns; its descriptor, and its path in
 * `path`. */
static int make_trace(bool ends, const struct column *columns, unsigned count, char path[64])
{
	const struct fay_save_names names = { .function = no_name, .address = no_address };
	struct fay_save_layout layout = { .text = "", .stream_count = 1 };
	struct fay_error error = { 0 };
	struct fay_save *save;
	uint32_t at = 0;
	layout.streams[0] = (struct fay_saved_stream){ .source = ends ? 2 : 1,
						       .column_count = count,
						       .pattern = "a!b" };
	for (unsigned i = 0; i < count; i++) {
		struct fay_saved_column *column = &layout.columns[0][i];
		*column =
			(struct fay_saved_column){ .type = columns[i].type,
						   .offset = at,
						   .size = columns[i].type == FAY_TYPE_STRING ? 16
											      : 8 };
		snprintf(column->name, sizeof(column->name), "%s", columns[i].name);
		at += column->size;
	}
	layout.streams[0].row_size = at;
	int fd = memfd_create("saved", MFD_CLOEXEC);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	assert_int_equal(fay_save_create(path, &layout, &save, &error), 0);
	assert_int_equal(fay_save_finish(save, 0, &names, &error), 0);
	return fd;
}

/* `question` with the trace for each `$`; says: part of the refusal, NULL if it is planned. */
static void ask(const char *path, const char *question, const char *says)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan = NULL;
	char text[1024] = "", *at = text;
	for (; *question; question++)
		if (*question == '$')
			at += sprintf(at, "file(\"%s\")", path);
		else
			*at++ = *question;
	*at = '\0';
	int code = fay_query_plan(text, NOW, &plan, &error);
	fay_plan_destroy(plan);
	if (says ? code != FAY_E_REFUSED || !strstr(error.message, says) : code)
		fail_msg("%s: %d, %s", text, code, error.message);
}

/* What goes by time needs one. */
static void without_time(void **state)
{
	static const struct column columns[] = { { "fd", FAY_TYPE_I64 },
						 { "ReturnValue", FAY_TYPE_I64 } };
	static const char *const needy[] = {
		"$.Tumbling(1s).Count()",
		"$.Sliding(2s, 1s).Count()",
		"$.Every(10).Count()",
		"$.First(x => x.fd)",
		"$.Last(x => x.fd)",
		"from x in $ group x by x.fd into g select new { g.Key, last = g.Last(y => "
		"y.ReturnValue) }",
		"from x in $ group x by x.fd into g group g by g.Count() into h select new { "
		"h.Key, last = h.Last(y => y.Key) }",
		"from a in $ join b in $ on a.fd equals b.fd within 1s select new { a.fd }",
	};
	char path[64];
	int fd = make_trace(true, columns, 2, path);
	for (size_t i = 0; i < sizeof(needy) / sizeof(*needy); i++)
		ask(path, needy[i],
		    strstr(needy[i], "join") ? "joined by time"
					     : "does not have `time`; it has fd, ReturnValue");
	ask(path,
	    "from x in $ group x by x.fd into g orderby g.Key select new { g.Key, n = g.Sum(y => "
	    "y.ReturnValue), top = g.TopK(3, y => y.fd) }",
	    NULL);
	ask(path,
	    "from x in $ group x by x.fd into g orderby g.Key group g by g.Count() into h select "
	    "new { h.Key, last = h.Last(y => y.Key) }",
	    NULL);
	close(fd);
}

/* Columns of other programs' traces. */
static void of_another_type(void **state)
{
	static const struct column columns[] = {
		{ "time", FAY_TYPE_I64 },   { "function", FAY_TYPE_STRING },
		{ "comm", FAY_TYPE_I64 },   { "Arg(0)", FAY_TYPE_STRING },
		{ "Arg(1)", FAY_TYPE_I64 }, { "tid", FAY_TYPE_I64 }
	};
	char path[64];
	int fd = make_trace(false, columns, 6, path);
	ask(path, "$.Tumbling(1s).Count()", "column `time` is of type integer");
	ask(path, "$.First(x => x.tid)", "column `time` is of type integer");
	ask(path, "$.Count(x => x.time > Now)", "column `time` is of type integer");
	ask(path, "from a in $ join b in $ on a.tid equals b.tid within 1s select new { a.tid }",
	    "joined by time");
	ask(path, "$.GroupBy(x => x.function).Select(g => g.Count())",
	    "column `function` is of type string");
	ask(path, "$.Count(x => x.comm == \"dd\")", "column `comm` is of type integer");
	ask(path, "$.Sum(x => x.Arg(0))", "column `Arg(0)` is of type string");
	ask(path, "$.Sum(x => x.Arg(1) + x.tid)", NULL);
	ask(path, "$.Sum(x => x.Arg(2))", "does not have `Arg(2)`; it has time");
	close(fd);
}

static void with_all(void **state)
{
	static const struct column columns[] = { { "time", FAY_TYPE_TIME },
						 { "function", FAY_TYPE_FUNCTION },
						 { "comm", FAY_TYPE_STRING },
						 { "tid", FAY_TYPE_I64 } };
	char path[64];
	int fd = make_trace(false, columns, 4, path);
	ask(path, "$.Tumbling(1s).Count()", NULL);
	ask(path, "$.First(x => x.tid)", NULL);
	ask(path, "$.Every(10).Count(x => x.comm == \"dd\")", NULL);
	ask(path,
	    "from a in $ join b in $ on a.tid equals b.tid within 1s group a by a.function into g "
	    "select new { g.Key, last = g.Last(x => x.tid) }",
	    NULL);
	close(fd);
}

/* says: NULL if its rows can be saved. */
static void check_save(const char *query, const char *says)
{
	struct fay_error error = { 0 };
	struct fay_plan *plan = NULL;
	struct fay_save_layout layout;
	struct fay_schema schema;
	if (fay_query_plan_with(query,
				&(struct fay_query_options){ .now = NOW, .whole_events = true },
				&plan, &error))
		fail_msg("%s\n%s", query, error.message);
	if (plan->joins)
		fay_plan_sources_schema(plan, &schema);
	else
		fay_plan_schema(plan, &schema);
	int code = fay_plan_save_layout(plan, &schema, &layout, &error);
	fay_plan_destroy(plan);
	if (says ? code != FAY_E_USAGE || !strstr(error.message, says) : code)
		fail_msg("%s: %d, %s", query, code, error.message);
}

static void what_is_saved(void **state)
{
	check_save("cluster.Function(\"a!b\")", NULL);
	check_save("cluster.Return(\"a!b\")", NULL);
	check_save("cluster.Syscall(\"read\")", NULL);
	check_save("from r in cluster.Return(\"a!b\") let time = r.time select new { time, when = "
		   "r.time, r.tid, r.ReturnValue, r.Failed, size = r.Duration / 2 }",
		   NULL);
	check_save("from a in cluster.Function(\"a!b\") join b in cluster.Return(\"a!c\") on a.tid "
		   "equals b.tid within 1s select new { tid = a.pid, b }",
		   NULL);
	check_save("from r in cluster.Function(\"a!b\") select new { r.time, tid = r.Arg(0) }",
		   "column `tid`");
	check_save("from r in cluster.Function(\"a!b\") select new { time = r.Arg(0) }",
		   "column `time`");
	check_save("from r in cluster.Function(\"a!b\") select new { r.time, Duration = r.Arg(1) }",
		   "column `Duration`");
	check_save("from r in cluster.Function(\"a!b\") select new { r.time, module = r.comm }",
		   "column `module`");
	check_save("from r in cluster.Return(\"a!b\") select new { time = r.Duration }",
		   "column `time`");
	check_save("from r in cluster.Return(\"a!b\") select new { ReturnValue = r.Duration }",
		   "column `ReturnValue`");
	check_save("from r in cluster.Return(\"a!b\") select new { pid = r.tid, tid = r.pid }",
		   "column `pid`");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_time),
					    cmocka_unit_test(of_another_type),
					    cmocka_unit_test(with_all),
					    cmocka_unit_test(what_is_saved) };
	return cmocka_run_group_tests_name("questions to saved traces", tests, NULL, NULL);
}
