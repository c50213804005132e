/* SPDX-License-Identifier: MIT */
#include "saved_trace.h"

#include "fay/loader.h"
#include "saved_reader.h"
#include "tests/query/reference/streams.h"

#include <ctype.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <unistd.h>

/* A field as random queries name it, what is written for it in the question (NULL: the same), and
 * the column that holds it. */
struct field {
	const char *name, *as, *column;
	uint32_t offset, size; /* in the event */
	uint64_t more;         /* than the field, in the column */
};
#define FIELD(name, as, column, member, more)                                                      \
	{ name,                                                                                    \
	  as,                                                                                      \
	  column,                                                                                  \
	  offsetof(struct fay_event, member),                                                      \
	  sizeof(((struct fay_event *)0)->member),                                                 \
	  more }
#define OWN(column, member) FIELD("x." column, NULL, column, member, 0)
#define NAMED(column, name, member) FIELD("x." name, "x." column, column, member, 0)
#define ALWAYS                                                                                     \
	OWN("time", time), OWN("pid", pid), OWN("tid", tid), OWN("cpu", cpu), OWN("comm", comm),   \
		OWN("function", function)
#define ARGUMENTS                                                                                  \
	OWN("Arg(0)", arg[0]), OWN("Arg(1)", arg[1]), OWN("Arg(2)", arg[2]),                       \
		OWN("Arg(3)", arg[3]), OWN("Arg(4)", arg[4]), OWN("Arg(5)", arg[5])
/* EVENT_FAILED is 1 */
#define RESULTS OWN("ReturnValue", retval), OWN("Duration", duration), OWN("Failed", reserved)

static const struct field whole[] = { ALWAYS, OWN("cycles", cycles), ARGUMENTS, { 0 } };
static const struct field named[] = { NAMED("when", "time", time),
				      NAMED("process", "pid", pid),
				      NAMED("thread", "tid", tid),
				      OWN("cpu", cpu),
				      NAMED("who", "comm", comm),
				      NAMED("what", "function", function),
				      NAMED("stamp", "cycles", cycles),
				      NAMED("a", "Arg(0)", arg[0]),
				      NAMED("b", "Arg(1)", arg[1]),
				      NAMED("c", "Arg(2)", arg[2]),
				      FIELD("x.Arg(3)", "(x.more - 1)", "more", arg[3], 1),
				      NAMED("e", "Arg(4)", arg[4]),
				      NAMED("f", "Arg(5)", arg[5]),
				      { 0 } };
static const struct field ends[] = { ALWAYS, OWN("cycles", cycles), RESULTS, { 0 } };
static const struct field syscalls[] = { ALWAYS, ARGUMENTS, RESULTS, { 0 } };

#define RENAMING                                                                                   \
	"from x in cluster.Function(\"a!*\") select new { x.time, f = x.Arg(5), e = x.Arg(4), "    \
	"more = x.Arg(3) + 1, c = x.Arg(2), b = x.Arg(1), "                                        \
	"a = x.Arg(0), stamp = x.cycles, what = x.function, who = x.comm, x.cpu, thread = x.tid, " \
	"process = x.pid, when = x.time }"
#define TWO                                                                                        \
	"from x in cluster.Function(\"a!*\") join y in cluster.Function(\"c!*\") on x.tid equals " \
	"y.tid within 1s select new { x, y }"
#define PROGRAMS (HAS_TIME | HAS_CYCLES)
#define RESULT (HAS_RESULT | HAS_FAILED | HAS_DURATION)

static const struct form {
	const char *save; /* the query */
	const char *kind; /* of the file, as a source; NULL: nothing is said */
	const char *only; /* functions whose name matches; NULL: all */
	uint32_t asked;   /* stream */
	const struct field *fields;
	struct source source; /* of the events */
	bool killed;          /* the trace */
} forms[] = {
	{ "cluster.Function(\"a!*\")",
	  NULL,
	  NULL,
	  0,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  false },
	{ RENAMING, NULL, NULL, 0, named, { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE }, false },
	{ TWO,
	  "Function(\"a!*\")",
	  NULL,
	  0,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  false },
	{ TWO,
	  "Function(\"c!*\")",
	  NULL,
	  1,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  false },
	{ "cluster.Function(\"a!*\")",
	  "Function(\"a!re*\")",
	  "re*",
	  0,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  false },
	{ "cluster.Return(\"a!*\")",
	  "Return(\"a!*\")",
	  NULL,
	  0,
	  ends,
	  { NULL, PROGRAMS | RESULT, END },
	  false },
	{ "cluster.Syscall(\"*\")",
	  "Syscall(\"*\")",
	  NULL,
	  0,
	  syscalls,
	  { NULL, HAS_TIME | HAS_ARGUMENTS | RESULT, END_IN_KERNEL },
	  false },
	{ "cluster.Function(\"a!*\")",
	  NULL,
	  NULL,
	  0,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  true },
	{ TWO,
	  "Function(\"c!*\")",
	  NULL,
	  1,
	  whole,
	  { NULL, PROGRAMS | HAS_ARGUMENTS, ANYWHERE },
	  true },
};
const unsigned saved_trace_forms = sizeof(forms) / sizeof(*forms);

struct saved_trace {
	const struct form *form;
	int file;
	char path[64], source[128];
	struct fay_plan *plan;
	struct fay_save_layout layout;
	struct fay_verdict verdict; /* of events in programs */
	struct fay_save *save;      /* while the file is written */
	struct stream written;      /* to the stream that is asked */
};

/* --- the query that saves --- */

void saved_trace_verify(const struct fay_plan *plan, struct fay_verdict *verdict)
{
	struct fay_compile_options options = { .size = sizeof(options) };
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	struct fay_buffer image;
	struct fay_error error = { 0 };
	fay_buffer_init(&image);
	if (fay_plan_generate(plan, context, &module, &error) ||
	    fay_compile_module(module, &plan->spec, &options, &image, &error))
		fail_msg("%s\n%s", plan->text, error.message);
	LLVMContextDispose(context);
	fay_verify(image.data, image.size, NULL, verdict);
	if (verdict->outcome != FAY_ACCEPTED) {
		fay_verdict_print(stderr, plan->text, verdict);
		fail_msg("%s: refused", plan->text);
	}
	fay_buffer_deinit(&image);
}

struct saved_trace *saved_trace_create(unsigned form)
{
	struct saved_trace *t = calloc(1, sizeof(*t));
	struct fay_error error = { 0 };
	struct fay_schema schema;
	assert_non_null(t);
	t->form = &forms[form];
	t->file = memfd_create("saved", MFD_CLOEXEC);
	assert_true(t->file >= 0);
	snprintf(t->path, sizeof(t->path), "/proc/self/fd/%d", t->file);
	snprintf(t->source, sizeof(t->source), "file(\"%s\")%s%s", t->path,
		 t->form->kind ? "." : "", t->form->kind ? t->form->kind : "");
	if (fay_query_plan_with(t->form->save,
				&(struct fay_query_options){ .now = NOW, .whole_events = true },
				&t->plan, &error))
		fail_msg("%s\n%s", t->form->save, error.message);
	if (t->plan->domain == DOMAIN_USER)
		saved_trace_verify(t->plan, &t->verdict);
	else
		fay_plan_schema(t->plan, &schema);
	if (fay_plan_save_layout(t->plan,
				 t->plan->domain == DOMAIN_USER ? &t->verdict.schema : &schema,
				 &t->layout, &error))
		fail_msg("%s\n%s", t->form->save, error.message);
	return t;
}

void saved_trace_destroy(struct saved_trace *t)
{
	fay_plan_destroy(t->plan);
	fay_verdict_deinit(&t->verdict);
	close(t->file);
	free(t);
}

/* --- writing --- */

static void take_row(void *context, uint32_t state, const uint8_t *row)
{
	struct saved_trace *t = context;
	fay_save_row(t->save, state, row);
}

/* Rows that no probe in a program makes: the fields, each in its column. */
static void put_row(struct saved_trace *t, const struct fay_event *event)
{
	uint8_t row[FAY_SAVED_ROW] = { 0 };
	for (uint32_t i = 0; i < t->layout.streams[0].column_count; i++) {
		const struct fay_saved_column *column = &t->layout.columns[0][i];
		for (const struct field *f = t->form->fields; f->name; f++)
			if (!strcmp(f->column, column->name))
				memcpy(row + column->offset, (const uint8_t *)event + f->offset,
				       f->size);
	}
	fay_save_row(t->save, 0, row);
}

/* The probe for an event of the stream that is asked: of calls that end there are two, else there
 * is one for each stream. */
static uint32_t probe_for(const struct saved_trace *t, const struct fay_event *event)
{
	enum fay_probe_kind kind =
		event->reserved & EVENT_FAILED ? FAY_PROBE_EXCEPTION : FAY_PROBE_RETURN;
	uint32_t probe = 0;
	if (t->form->source.where != END)
		return t->form->asked;
	while (probe < t->verdict.probe_count && t->verdict.probes[probe].kind != kind)
		probe++;
	assert_true(probe < t->verdict.probe_count);
	return probe;
}

static const char *function_name(void *context, uint64_t hash)
{
	(void)context;
	return hash == fay_name_hash("read")    ? "read"
	       : hash == fay_name_hash("write") ? "write"
						: NULL;
}

static void no_address(void *context, uint64_t address, bool exact, char *text, size_t size)
{
	(void)context, (void)address, (void)exact;
	snprintf(text, size, "?");
}

/* As one that ended before the header was written again, within a row. */
static void kill_trace(struct saved_trace *t)
{
	struct fay_saved_header header;
	assert_int_equal(pread(t->file, &header, sizeof(header), 0), sizeof(header));
	uint64_t end = header.rows_at + header.rows_size,
		 cut = header.rows_size ? below(t->layout.streams[0].row_size) : 0;
	header.rows_size = UINT64_MAX;
	header.row_count = header.names_at = header.name_count = 0;
	assert_int_equal(pwrite(t->file, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(ftruncate(t->file, (off_t)(end - cut)), 0);
}

static void save_events(struct saved_trace *t, struct fay_replay *replay)
{
	for (unsigned i = 0; i < t->written.count;) {
		if (t->plan->joins && below(3) == 0) {
			struct fay_event other = { 0 };
			random_event(&other);
			fay_replay_event(replay, !t->form->asked, &other);
			continue;
		}
		const struct fay_event *event = &t->written.events[i++];
		if (replay)
			fay_replay_event(replay, probe_for(t, event), event);
		else
			put_row(t, event);
	}
}

void saved_trace_write(struct saved_trace *t)
{
	struct fay_replay *replay = NULL;
	struct fay_error error = { 0 };
	random_stream(&t->form->source, &t->written);
	for (unsigned i = 0; i < t->written.count; i++)
		t->written.events[i].reserved &= EVENT_FAILED;
	assert_int_equal(fay_save_create(t->path, &t->layout, &t->save, &error), 0);
	if (t->plan->domain == DOMAIN_USER)
		assert_int_equal(fay_replay_create(&t->verdict, take_row, NULL, t, &replay, &error),
				 0);
	save_events(t, replay);
	fay_replay_destroy(replay);
	const struct fay_save_names names = { .function = function_name, .address = no_address };
	assert_int_equal(fay_save_finish(t->save, 0, &names, &error), 0);
	if (t->form->killed)
		kill_trace(t);
}

/* --- asking --- */

const char *saved_trace_source(const struct saved_trace *t)
{
	return t->source;
}

unsigned saved_trace_have(const struct saved_trace *t)
{
	return t->form->source.have;
}

static const struct field *field_at(const struct field *f, const char *text)
{
	for (; f->name; f++) {
		size_t length = strlen(f->name);
		if (!strncmp(text, f->name, length) && !isalnum((unsigned char)text[length]))
			return f;
	}
	return NULL;
}

char *saved_trace_question(const struct saved_trace *t, const char *text)
{
	char *question = NULL;
	size_t size;
	FILE *out = open_memstream(&question, &size);
	assert_non_null(out);
	while (*text) {
		const struct field *f = field_at(t->form->fields, text);
		if (f)
			fputs(f->as ? f->as : f->name, out);
		else
			fputc(*text, out);
		text += f ? strlen(f->name) : 1;
	}
	fclose(out);
	return question;
}

/* Of calls that end only those that return take part, unless the question looks at `Failed`. */
unsigned saved_trace_without(const struct saved_trace *t, const char *question)
{
	return t->form->source.where == END && !strstr(question, "x.Failed") ? EVENT_FAILED : 0;
}

static void take_fields(const struct saved_trace *t, const struct saved_reader *reader,
			const uint8_t *row, struct fay_event *event)
{
	memset(event, 0, sizeof(*event));
	for (const struct field *f = t->form->fields; f->name; f++) {
		const struct fay_saved_column *column =
			saved_reader_column(reader, t->form->asked, f->column);
		uint64_t value;
		if (!column)
			fail_msg("%s: no column for %s", t->form->save, f->name);
		assert_true(f->size <= column->size);
		memcpy((uint8_t *)event + f->offset, row + column->offset, f->size);
		if (!f->more)
			continue;
		memcpy(&value, row + column->offset, sizeof(value));
		value -= f->more;
		memcpy((uint8_t *)event + f->offset, &value, sizeof(value));
	}
}

static void check_fields(const struct saved_trace *t, const struct fay_event *got,
			 const struct fay_event *want)
{
	for (const struct field *f = t->form->fields; f->name; f++)
		if (memcmp((const uint8_t *)got + f->offset, (const uint8_t *)want + f->offset,
			   f->size) != 0)
			fail_msg("%s: event %td was not saved with the %s that it had",
				 t->form->save, want - t->written.events, f->name);
}

void saved_trace_read(const struct saved_trace *t, struct stream *stream)
{
	struct saved_reader reader;
	unsigned saved = 0;
	uint32_t number;
	char name[16];
	stream->count = 0;
	saved_reader_open(&reader, t->path);
	for (const uint8_t *row; (row = saved_reader_next(&reader, &number));) {
		struct fay_event *event = &stream->events[stream->count];
		if (number != t->form->asked)
			continue;
		assert_true(saved < t->written.count);
		take_fields(t, &reader, row, event);
		check_fields(t, event, &t->written.events[saved++]);
		stream->count += !t->form->only ||
				 (saved_reader_name(&reader, event->function, name, sizeof(name)) &&
				  !fnmatch(t->form->only, name, 0));
	}
	saved_reader_close(&reader);
	if (!t->form->killed)
		assert_int_equal(saved, t->written.count);
	else
		assert_true(t->written.count - saved <= 1);
}
