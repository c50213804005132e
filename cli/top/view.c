/* SPDX-License-Identifier: MIT */
/* What the views ask: a query each, run by libfay_trace, whose pictures of the whole result become
 * rows. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "fay/clock.h"
#include "fay/loader.h"

#include "loader/process/process.h"
#include "trace/library/tracer.h"

#include "parts.h"

#define READABLE 64u      /* bytes of a name */
#define EVERY 1000000000u /* ns between pictures, if these do not take long */

/* Results are the name, of functions of libraries the module's first, then the columns' values. */
static const struct {
	struct fay_top_column columns[FAY_TOP_VALUES];
	size_t count;
	const char *query; /* with what is asked about for %s */
} kinds[FAY_TOP_KINDS] = {
	[FAY_TOP_PROCESSES] = { { { "CALLS", false, true }, { "TIME", true, true } },
				2,
				"from s in cluster.Syscall(\"*\") group s by s.pid into g select "
				"new { g.Key, calls = g.Count(), time = g.Sum(x => x.Duration) }" },
	[FAY_TOP_FUNCTIONS] = { { { "CALLS", false, true },
				  { "P50", true, false },
				  { "P99", true, false },
				  { "TIME", true, true } },
				4,
				"from r in cluster.Return(\"%s\") group r by %s into g "
				"select new { g.Key, calls = g.Count(), p50 = g.Quantile(0.5, x => "
				"x.Duration), p99 = g.Quantile(0.99, x => x.Duration), time = "
				"g.Sum(x => x.Duration) }" },
	[FAY_TOP_STACKS] = { { { "CALLS", false, true } },
			     1,
			     "from f in cluster.Function(\"%s\") group f by f.Stack(16) into g "
			     "select new { g.Key, calls = g.Count() }" },
};

size_t fay_top_columns(enum fay_top_kind kind, const struct fay_top_column **columns)
{
	*columns = kinds[kind].columns;
	return kinds[kind].count;
}

static uint64_t number_of(const struct fay_cell *cell)
{
	if (cell->kind == FAY_CELL_U64)
		return cell->u64;
	if (cell->kind == FAY_CELL_I64)
		return cell->i64 > 0 ? (uint64_t)cell->i64 : 0;
	return cell->kind == FAY_CELL_DOUBLE && cell->real > 0 ? (uint64_t)cell->real : 0;
}

/* "outer > inner", of a stack; the same stack has the same name. */
static char *name_of_stack(const struct fay_cell *cell)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = cell->size; i-- > 0;)
		fprintf(out, "%s%s", cell->items[i].label, i ? " > " : "");
	return fclose(out) ? NULL : text;
}

/* "module!function" of two cells. */
static char *name_of_function(const struct fay_cell *cells)
{
	char *text;
	return asprintf(&text, "%.*s!%.*s", (int)cells[0].size, cells[0].bytes, (int)cells[1].size,
			cells[1].bytes) < 0
		       ? NULL
		       : text;
}

static char *name_of(const struct fay_cell *cell)
{
	char number[24];
	if (cell->kind == FAY_CELL_STACK)
		return name_of_stack(cell);
	if (cell->kind == FAY_CELL_TEXT)
		return strndup(cell->bytes, cell->size);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)number_of(cell));
	return strdup(number);
}

/* The name of a process that is over cannot be had any more. */
static void describe_process(struct fay_top_row *row)
{
	char comm[FAY_COMM_SIZE];
	bool named = !row->shown && fay_process_name((pid_t)atoi(row->name), comm);
	if (!row->shown &&
	    asprintf(&row->shown, "%7s %s", row->name, named ? comm : "(has ended)") < 0)
		row->shown = NULL;
	if (row->shown)
		fay_printable(row->shown);
}

/* "module!name+0x1c", by the name that people write. */
static char *readable_frame(const char *label)
{
	char symbol[1024], readable[256], *text;
	const char *bang = strchr(label, '!');
	size_t before = bang ? (size_t)(bang + 1 - label) : 0,
	       length = strcspn(label + before, "+");
	snprintf(symbol, sizeof(symbol), "%.*s", (int)length, label + before);
	if (!bang || length >= sizeof(symbol))
		return strdup(label);
	return asprintf(&text, "%.*s%s%s", (int)before, label,
			fay_readable_name(symbol, readable, sizeof(readable)),
			label + before + length) < 0
		       ? NULL
		       : text;
}

/* "inner < outer", names alone: the frames are shown whole when the row is chosen. */
static char *shorten_stack(const struct fay_top_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; i < row->frame_count; i++) {
		const char *frame = row->frames[i], *bang = strchr(frame, '!'),
			   *name = bang ? bang + 1 : frame, *offset = strstr(name, "+0x");
		fprintf(out, "%s%.*s", i ? " < " : "",
			(int)(offset ? (size_t)(offset - name) : strlen(name)), name);
	}
	return fclose(out) ? NULL : text;
}

/* By the name that people write; the symbol's is asked for. */
static void describe_function(struct fay_top_row *row)
{
	char readable[READABLE];
	const char *bang = strchr(row->name, '!'), *symbol = bang ? bang + 1 : row->name;
	const char *name =
		row->shown ? symbol : fay_readable_name(symbol, readable, sizeof(readable));
	if (name == symbol)
		return;
	if (asprintf(&row->shown, "%.*s%s", (int)(symbol - row->name), row->name, name) < 0)
		row->shown = NULL;
	if (row->shown)
		fay_printable(row->shown);
}

static void describe_stack(struct fay_top_row *row, const struct fay_cell *cell)
{
	if (row->frames)
		return;
	row->frames = calloc(cell->size + 1, sizeof(*row->frames));
	for (size_t i = 0; row->frames && i < cell->size; i++) {
		char *frame = readable_frame(cell->items[i].label);
		if (!frame)
			break;
		fay_printable(frame);
		row->frames[row->frame_count++] = frame;
	}
	row->shown = shorten_stack(row);
}

static void take_row(void *context, const struct fay_row *row)
{
	struct fay_top_view *view = context;
	uint64_t values[FAY_TOP_VALUES] = { 0 };
	unsigned sums = 0;
	bool modules = view->kind == FAY_TOP_FUNCTIONS && *view->wanted;
	size_t first = modules ? 2 : 1;
	if (view->paused || row->count < kinds[view->kind].count + first)
		return;
	char *name = modules ? name_of_function(row->cells) : name_of(&row->cells[0]);
	if (!name)
		return;
	fay_printable(name);
	for (size_t i = 0; i < kinds[view->kind].count; i++) {
		values[i] = number_of(&row->cells[i + first]);
		sums |= (unsigned)kinds[view->kind].columns[i].sum << i;
	}
	struct fay_top_row *made =
		fay_top_table_put(&view->table, row->picture, name, values, sums);
	free(name);
	if (made && view->kind == FAY_TOP_PROCESSES)
		describe_process(made);
	if (made && view->kind == FAY_TOP_FUNCTIONS)
		describe_function(made);
	if (made && view->kind == FAY_TOP_STACKS)
		describe_stack(made, &row->cells[0]);
}

static void take_message(void *context, const char *text)
{
	struct fay_top_view *view = context;
	snprintf(view->message, sizeof(view->message), "%.511s", text);
	fay_printable(view->message);
}

static void fail(struct fay_top_view *view, const struct fay_error *error)
{
	char first_line[sizeof(error->message)];
	snprintf(first_line, sizeof(first_line), "%.*s", (int)strcspn(error->message, "\n"),
		 error->message);
	take_message(view, first_line);
	size_t length = strlen(view->message);
	if (view->kind == FAY_TOP_STACKS && error->code == FAY_E_REFUSED)
		snprintf(view->message + length, sizeof(view->message) - length,
			 ". Its callers alone: `fay trace -p %d 'from f in "
			 "cluster.Function(\"%s\") group f by f.Caller into g select new { g.Key, "
			 "calls = g.Count() }'`",
			 view->pid, view->function);
	view->failed = true;
}

/* Text within a string of a query, of which each character stands for itself in a pattern. `!` ends
 * a module's name there. */
static void put_literally(FILE *out, const char *text, bool module)
{
	for (; *text; text++) {
		if (*text == '!' && module)
			fputc('?', out);
		else if (strchr("*?[]\\", *text))
			fprintf(out, *text == '\\' ? "\\\\\\\\" : "\\\\%c", *text);
		else
			fprintf(out, *text == '"' ? "\\%c" : "%c", *text);
	}
}

static bool put_pattern(FILE *out, const char *module, const char *function)
{
	put_literally(out, module, true);
	fputc('!', out);
	if (function)
		put_literally(out, function, false);
	else
		fputc('*', out);
	return !fclose(out);
}

/* "module!function" of the process's executable, by the name that messages and results have for it,
 * which is that by which it was executed; `function` NULL: all of them. */
static bool write_pattern(pid_t pid, const char *function, char *pattern, size_t size)
{
	static const uint64_t entry = AT_ENTRY;
	struct fay_target *target;
	struct fay_code_place place;
	struct fay_error error;
	uint64_t address;
	if (!fay_process_auxiliary(pid, &entry, &address, 1) ||
	    fay_target_open_pid(pid, &target, &error))
		return false;
	FILE *out =
		fay_target_describe(target, address, &place) ? fmemopen(pattern, size, "w") : NULL;
	bool written = out && put_pattern(out, place.module, function);
	fay_target_close(target);
	return written;
}

bool fay_top_view_function(struct fay_top_view *view, const char *name)
{
	size_t size = sizeof(view->function);
	const char *bang = *view->wanted ? strchr(name, '!') : NULL;
	if (!bang)
		return write_pattern(view->pid, name, view->function, size);
	char *module = strndup(name, (size_t)(bang - name));
	FILE *out = module ? fmemopen(view->function, size, "w") : NULL;
	bool written = out && put_pattern(out, module, bang + 1);
	free(module);
	return written;
}

void fay_top_view_ask(struct fay_top_view *view)
{
	char program[1024] = "";
	bool functions = view->kind == FAY_TOP_FUNCTIONS;
	*view->message = 0;
	view->failed = functions && !write_pattern(view->pid, NULL, program, sizeof(program));
	if (view->failed)
		snprintf(view->message, sizeof(view->message),
			 "there is no process %d, or it may not be looked at", view->pid);
	else if (functions && *view->wanted)
		snprintf(program, sizeof(program), "%s%s", strchr(view->wanted, '!') ? "" : "*!",
			 view->wanted);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(view->query, sizeof(view->query), kinds[view->kind].query,
		 functions ? program : view->function,
		 *view->wanted ? "new { r.module, r.function }" : "r.function");
#pragma GCC diagnostic pop
}

void fay_top_view_open(struct fay_top_view *view)
{
	struct fay_error error;
	bool all = view->kind == FAY_TOP_PROCESSES;
	const struct fay_tracer_options options = {
		.size = sizeof(options),
		.pids = all ? view->pids : &view->pid,
		.pid_count = all ? view->pid_count : 1,
		.comms = view->comms,
		.comm_count = all ? view->comm_count : 0,
		.every_ns = EVERY,
		.budget = all ? 0 : view->budget, /* it is of probes in programs */
		.context = view,
		.row = take_row,
		.message = take_message,
	};
	if (!view->failed && fay_tracer_open(view->query, &options, &view->tracer, &error))
		fail(view, &error);
	if (!view->tracer)
		return;
	fay_trace_be_calm(&view->tracer->trace);
	view->table.taken = view->tracer->trace.attached_since; /* all began at 0 */
}

void fay_top_view_stop(struct fay_top_view *view)
{
	struct fay_tracer *tracer = view->tracer;
	view->tracer = NULL;
	fay_tracer_close(tracer);
}

/* Stacks are all of one function. */
static void take_left_out(void *context, const struct fay_function *function, bool out,
			  uint64_t absent_ns)
{
	struct fay_top_view *view = context;
	char *name = NULL;
	if (view->kind == FAY_TOP_FUNCTIONS &&
	    asprintf(&name, "%s%s%s", *view->wanted ? function->module : "",
		     *view->wanted ? "!" : "", function->name) < 0)
		return;
	fay_top_table_left_out(&view->table, name, out, absent_ns);
	free(name);
}

void fay_top_view_wait(struct fay_top_view *view, const uint32_t *word, uint32_t seen)
{
	struct fay_error error;
	if (!view->tracer)
		return;
	uint64_t picture = view->table.picture;
	int code = fay_tracer_wait(view->tracer, word, seen, &error);
	if (view->table.picture != picture) {
		fay_trace_budget_visit_out(&view->tracer->trace, take_left_out, view);
		fay_top_table_complete(&view->table);
	}
	if (!code && fay_tracer_over(view->tracer))
		code = fay_error_set(&error, FAY_E_REFUSED, "%s", fay_tracer_over(view->tracer));
	if (!code)
		return;
	fay_top_view_stop(view);
	fail(view, &error);
}

void fay_top_view_close(struct fay_top_view *view)
{
	fay_top_view_stop(view);
	fay_top_table_clear(&view->table);
}
