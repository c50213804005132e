/* SPDX-License-Identifier: MIT */
/* What an image can do, in sentences that need no knowledge of images. */
#include <inttypes.h>
#include <string.h>

#include "page.h"
#include "verifier/explain/report.h"
#include "verifier/explain/report_names.h"

/* What arguments of well-known functions of the C library are. */
static const struct {
	const char *function, *arguments[3];
} known[] = {
	{ "read", { "file descriptor", "buffer's address", "size asked for" } },
	{ "write", { "file descriptor", "buffer's address", "size" } },
	{ "recv", { "socket", "buffer's address", "size asked for" } },
	{ "send", { "socket", "buffer's address", "size" } },
	{ "pread64", { "file descriptor", "buffer's address", "size asked for" } },
	{ "pwrite64", { "file descriptor", "buffer's address", "size" } },
	{ "malloc", { "size", NULL, NULL } },
	{ "calloc", { "count", "size", NULL } },
	{ "realloc", { "block's address", "size", NULL } },
	{ "free", { "block's address", NULL, NULL } },
	{ "open", { "name's address", "flags", "mode" } },
	{ "close", { "file descriptor", NULL, NULL } },
	{ "memcpy", { "target's address", "source's address", "size" } },
};

/* What an argument of the pattern's function is, or NULL. */
static const char *argument(const char *pattern, unsigned number)
{
	const char *function = strchr(pattern, '!');

	for (size_t i = 0; function && !strncmp(pattern, "libc!", 5) && number < 3 &&
			   i < sizeof(known) / sizeof(known[0]);
	     i++)
		if (!strcmp(function + 1, known[i].function))
			return known[i].arguments[number];
	return NULL;
}

/* What a bit of the event's fields is. */
static const char *field(const struct fay_probe_facts *probe, unsigned bit)
{
	switch (1u << bit) {
	case FAY_FIELD_RETVAL: return "the result";
	case FAY_FIELD_RETVAL2:
		return probe->kind == FAY_PROBE_ENTRY ? "the frame pointer"
						      : "the result's second word";
	case FAY_FIELD_RETVAL_FLOAT: return "the result, a floating-point number";
	case FAY_FIELD_TIME: return "the time";
	case FAY_FIELD_CYCLES: return "the processor's clock";
	case FAY_FIELD_FUNCTION: return "which function it is";
	case FAY_FIELD_MODULE: return "which module it is in";
	case FAY_FIELD_PID: return "the process ID";
	case FAY_FIELD_TID: return "the thread ID";
	case FAY_FIELD_CPU: return "the processor's number";
	case FAY_FIELD_COMM: return "the thread's name";
	case FAY_FIELD_STACK_POINTER: return "where the stack is";
	case FAY_FIELD_DURATION: return "how long the call took";
	case FAY_FIELD_ADDRESS: return "the function's address";
	case FAY_FIELD_REGISTERS: return "all general registers";
	case FAY_FIELD_FLAGS:
		return probe->kind == FAY_PROBE_OFFSET || probe->kind == FAY_PROBE_MARKER
			       ? "the flags"
			       : "the caller's address";
	default: return field_name(bit);
	}
}

static void put_when(FILE *out, const struct fay_probe_facts *probe)
{
	static const char *const when[] = {
		[FAY_PROBE_ENTRY] = "At each call of ",
		[FAY_PROBE_RETURN] = "At each return from ",
		[FAY_PROBE_EXCEPTION] = "At each exception that leaves ",
		[FAY_PROBE_OFFSET] = "At an instruction in ",
		[FAY_PROBE_BEGIN] = "When tracing begins",
		[FAY_PROBE_END] = "When tracing ends",
		[FAY_PROBE_THREAD_BEGIN] = "At each begin of a thread",
		[FAY_PROBE_THREAD_END] = "At each end of a thread",
		[FAY_PROBE_TIMER] = "At a timer",
		[FAY_PROBE_MARKER] = "At each pass of the marker ",
	};
	bool placed = probe->kind == FAY_PROBE_MARKER || probe->kind <= FAY_PROBE_OFFSET;

	fputs(probe->kind < sizeof(when) / sizeof(when[0]) && when[probe->kind] ? when[probe->kind]
										: "At ",
	      out);
	if (placed) {
		fputs("<b>", out);
		fay_page_text(out, probe->pattern);
		fputs("</b>", out);
	}
	if (probe->kind == FAY_PROBE_OFFSET)
		fprintf(out, "+0x%" PRIx64, probe->parameter);
	if (probe->kind == FAY_PROBE_TIMER)
		fprintf(out, ", every %" PRIu64 " ns", probe->parameter);
}

static void put_field(FILE *out, const struct fay_probe_facts *probe, unsigned bit)
{
	const char *what = bit < 6 ? argument(probe->pattern, bit) : NULL;

	if (bit >= 6)
		fputs(field(probe, bit), out);
	else
		fprintf(out, "argument %u%s%s%s", bit + 1, what ? " (the " : "", what ? what : "",
			what ? ")" : "");
}

static void put_reads(FILE *out, const struct fay_probe_facts *probe)
{
	const char *separator = "";

	fputs("<li>reads ", out);
	for (unsigned bit = 0; bit < 32; bit++) {
		if (!(probe->event_fields >> bit & 1))
			continue;
		fputs(separator, out);
		put_field(out, probe, bit);
		separator = ", ";
	}
	if (!*separator)
		fputs("nothing of the call", out);
	if (!(probe->helpers >> FAY_HELPER_TRY_READ & 1))
		fputs("; <b>no memory of the program</b>", out);
	fputs("</li>\n", out);
}

static void put_helpers(FILE *out, const struct fay_probe_facts *probe)
{
	uint32_t helpers = probe->helpers;

	if (!helpers)
		fputs("<li>calls no helper: sends nothing itself</li>\n", out);
	if (helpers >> FAY_HELPER_EMIT & 1)
		fputs("<li>calls <code>fay_emit</code>: sends rows to whoever traces</li>\n", out);
	if (helpers >> FAY_HELPER_FLUSH & 1)
		fputs("<li>calls <code>fay_flush</code>: hands its tables to whoever traces</li>\n",
		      out);
	if (helpers >> FAY_HELPER_TRY_READ & 1)
		fputs("<li>calls <code>fay_try_read</code>: <b>reads the program's memory at any "
		      "address</b>, and writes none of it</li>\n",
		      out);
}

static void put_probe(FILE *out, const struct fay_probe_facts *probe, bool refused)
{
	fputs("<section class=\"probe\"><p>", out);
	put_when(out, probe);
	if (!probe->analysed) {
		fputs(": <b>nothing is proved of what it does.</b></p></section>\n", out);
		return;
	}
	fputs(refused ? ", as was proved before the refusal, the probe</p><ul>\n"
		      : ", the probe</p><ul>\n",
	      out);
	put_reads(out, probe);
	put_helpers(out, probe);
	fprintf(out,
		"<li>runs at most %" PRIu64 " instruction%s a call%s, and takes %" PRIu64
		" bytes of the thread's stack</li>\n",
		probe->worst_instructions, probe->worst_instructions == 1 ? "" : "s",
		probe->helpers ? " (a helper's call counts as one)" : "", probe->worst_stack);
	for (unsigned bit = 0; bit < 32; bit++)
		if (probe->cpu_features >> bit & 1)
			fprintf(out, "<li>needs a processor with %s</li>\n", feature_name(bit));
	fputs("</ul></section>\n", out);
}

static void put_size(FILE *out, uint32_t bytes)
{
	if (bytes < 10240)
		fprintf(out, "%" PRIu32 " byte%s", bytes, bytes == 1 ? "" : "s");
	else
		fprintf(out, "%" PRIu32 " KiB", (bytes + 1023) / 1024);
}

static void put_columns(FILE *out, const struct fay_schema *schema,
			const struct fay_schema_state *state)
{
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];

		fputs(i ? ", " : "", out);
		fputs("<code>", out);
		fay_page_text(out, column->name);
		fprintf(out, "</code> (%s", NAME(merge_names, column->merge));
		if (column->type == FAY_TYPE_STRING)
			fprintf(out, ", text of %" PRIu32 " bytes", column->size);
		fputc(')', out);
	}
}

/* What the results do not account for. */
static void put_scratch(FILE *out, const struct fay_schema *schema)
{
	uint32_t local = fay_report_scratch(schema, FAY_SCOPE_LOCAL);
	uint32_t global = fay_report_scratch(schema, FAY_SCOPE_GLOBAL);

	if (!local && !global)
		return;
	fputs("<p>Of that, ", out);
	put_size(out, local);
	fputs(" for each thread and ", out);
	put_size(out, global);
	fputs(" shared are in none of its results: notes of its own, or room between them.</p>\n",
	      out);
}

static void put_states(FILE *out, const struct fay_schema *schema)
{
	if (!schema->state_count)
		return;
	fputs("<p class=\"note\">Names are the vendor's: they prove nothing of what is "
	      "counted.</p>\n<div "
	      "class=\"wide\"><table><thead><tr><th>result</th><th>kind</th><th>kept</th>"
	      "<th>columns</th></tr></thead><tbody>\n",
	      out);
	for (uint32_t i = 0; i < schema->state_count; i++) {
		const struct fay_schema_state *state = &schema->states[i];

		fputs("<tr><td><code>", out);
		fay_page_text(out, state->name);
		fprintf(out, "</code></td><td>%s", NAME(state_names, state->kind));
		if (state->kind == FAY_STATE_TABLE)
			fprintf(out, ", %" PRIu32 " rows", state->rows);
		fprintf(out, "</td><td>%s</td><td>",
			state->kind == FAY_STATE_STREAM ? "sent, if <code>fay_emit</code> is called"
			: state->scope == FAY_SCOPE_LOCAL ? "for each thread"
							  : "shared");
		put_columns(out, schema, state);
		fputs("</td></tr>\n", out);
	}
	fputs("</tbody></table></div>\n", out);
}

/* Guarantees 1 to 6 of docs/verifier.md, for who knows none of it. */
static void put_cannot(FILE *out)
{
	fputs("<p>Proved for every input: it cannot change the program's memory or registers, "
	      "make system calls, jump out of its own code, loop without an end, or write "
	      "anything but the state below.</p>\n",
	      out);
}

void fay_page_capabilities(FILE *out, const struct fay_review *r)
{
	const struct fay_verdict *v = r->verdict;
	const struct fay_schema *schema = &v->schema;

	bool refused = v->outcome != FAY_ACCEPTED;

	if (!v->probe_count)
		return;
	fprintf(out, "<h2 id=\"can\">%s</h2>\n", refused ? "What it asks for" : "What it can do");
	if (!refused)
		put_cannot(out);
	else
		fputs("<p>This is what its tables ask for, not what its code does.</p>\n", out);
	for (uint32_t i = 0; i < v->probe_count; i++)
		put_probe(out, &v->probes[i], refused);
	fputs(refused ? "<p>It asks for state of its own: "
		      : "<p>It writes nothing but its own state, which lies in the traced "
			"process: ",
	      out);
	put_size(out, schema->local_size);
	fputs(" for each thread, ", out);
	put_size(out, schema->global_size);
	fputs(" shared. Whoever traces reads it, while tracing and in the end.</p>\n", out);
	put_scratch(out, schema);
	put_states(out, schema);
}
