/* SPDX-License-Identifier: MIT */
/*
 * What is told of a verdict: the manifest of an accepted image, the whole story of a refused one;
 * as text for people and as one line of JSON (docs/verify-json.md). Everything from the image
 * (names, patterns) is untrusted bytes: control characters never reach the terminal.
 */
#include "report.h"
#include "report_names.h"

#include "fay/utf8.h"

#include <inttypes.h>
#include <string.h>

void fay_report_text(FILE *out, const char *indent, const char *text, bool lines)
{
	const unsigned char *end = (const unsigned char *)text + strlen(text);

	fputs(indent, out);
	for (const unsigned char *c = (const unsigned char *)text; c < end;) {
		size_t length = fay_utf8_printable(c, (size_t)(end - c));

		if (*c == '\n' && lines) {
			fputc('\n', out);
			if (c[1])
				fputs(indent, out);
		} else if (length) {
			fwrite(c, 1, length, out);
		} else {
			fprintf(out, "\\x%02x", *c);
		}
		c += length ? length : 1;
	}
}

static void print_block(FILE *out, const char *title, const char *text)
{
	if (!text)
		return;
	fprintf(out, "  %s:\n", title);
	fay_report_text(out, "    ", text, true);
	if (*text && text[strlen(text) - 1] != '\n')
		fputc('\n', out);
}

static void print_path(FILE *out, const struct fay_rejection *rejection)
{
	if (rejection->path_length < 2)
		return;
	fprintf(out, "  path:");
	for (size_t i = 0; i < rejection->path_length && i < FAY_MAX_PATH_STEPS; i++)
		fprintf(out, "%s .text+0x%" PRIx64, i ? " ->" : "", rejection->path[i]);
	fputc('\n', out);
}

/*
 * The source line with a caret under the column, or, where the line information has none, with the
 * whole statement underlined. Tabs and control characters are one blank each, so that the caret
 * stands where it should.
 */
static void print_source(FILE *out, const struct fay_rejection *rejection)
{
	const char *text = rejection->source_text;
	size_t begin, length, column = rejection->source_column;
	char line[512];

	if (!text)
		return;
	snprintf(line, sizeof(line), "%s", text);
	for (char *c = line; *c; c++)
		*c = (unsigned char)*c < ' ' || *c == 0x7f ? ' ' : *c;
	begin = strspn(line, " ");
	length = strlen(line);
	if (column && column <= length) {
		begin = column - 1;
		length = column;
	}
	fprintf(out, "\n  %5" PRIu32 " | ", rejection->source_line);
	fay_report_text(out, "", line, false);
	fputs("\n        | ", out);
	for (size_t i = 0; i < length; i++)
		fputc(i < begin ? ' ' : i == begin ? '^' : '~', out);
	fputc('\n', out);
}

static void print_facts(FILE *out, const struct fay_rejection *rejection)
{
	if (rejection->fact_count)
		fputs("  known here:\n", out);
	for (size_t i = 0; i < rejection->fact_count; i++)
		fprintf(out, "    %s: %s\n", rejection->facts[i].where, rejection->facts[i].value);
}

static void print_place(FILE *out, const char *before, const struct fay_rejection *rejection)
{
	if (!rejection->function)
		return;
	fay_report_text(out, before, rejection->function, false);
	fprintf(out, "+0x%" PRIx64 " (.text+0x%" PRIx64 ")", rejection->function_offset,
		rejection->text_offset);
	if (rejection->source_file) {
		fay_report_text(out, ", ", rejection->source_file, false);
		fprintf(out, ":%" PRIu32, rejection->source_line);
		if (rejection->source_column)
			fprintf(out, ":%" PRIu32, rejection->source_column);
	}
	fputc('\n', out);
}

static void print_rejection(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	const struct fay_rejection *rejection = &verdict->rejection;

	fprintf(out, "%s: REJECTED (%s): %s: %s\n", name, fay_outcome_name(verdict->outcome),
		fay_rule_id(rejection->rule), fay_rule_title(rejection->rule));
	if (rejection->what) {
		fay_report_text(out, "  ", rejection->what, false);
		fputc('\n', out);
	}
	print_place(out, "  in ", rejection);
	print_source(out, rejection);
	if (rejection->disassembly) {
		fputc('\n', out);
		fay_report_text(out, "", rejection->disassembly, true);
		fputc('\n', out);
	}
	print_facts(out, rejection);
	if (rejection->steps)
		print_block(out, "path", rejection->steps);
	else
		print_path(out, rejection);
	print_block(out, "missing", rejection->missing);
	if (rejection->counterexample)
		print_block(out,
			    rejection->replayed ? "counterexample (replayed: it breaks the rule)"
						: "counterexample (from the solver, not replayed)",
			    rejection->counterexample);
	if (rejection->native_detail)
		fprintf(out, "  run by the CPU: %s: %s\n", native_name(rejection->native),
			rejection->native_detail);
	if (rejection->advice || rejection->hint)
		fputs("  to fix:\n", out);
	if (rejection->advice)
		fprintf(out, "    %s\n", rejection->advice);
	if (rejection->hint)
		fprintf(out, "    %s\n", rejection->hint);
	fprintf(out, "  see docs/rules.md, section %s\n", fay_rule_id(rejection->rule));
}

/* The rest, in short. */
static void print_others(FILE *out, const struct fay_verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->other_count; i++) {
		const struct fay_rejection *other = &verdict->others[i];

		fprintf(out, "%s    %s: %s\n", i ? "" : "  also refused:\n",
			fay_rule_id(other->rule), fay_rule_title(other->rule));
		if (other->what) {
			fay_report_text(out, "      ", other->what, false);
			fputc('\n', out);
		}
		print_place(out, "      in ", other);
		if (other->missing) {
			fay_report_text(out, "      missing: ", other->missing, false);
			fputc('\n', out);
		}
	}
}

static void print_list(FILE *out, uint32_t mask, const char *(*name)(unsigned), const char *none)
{
	const char *separator = "";

	for (unsigned i = 0; i < 32; i++) {
		if (!(mask >> i & 1))
			continue;
		fprintf(out, "%s%s", separator, name(i));
		separator = ", ";
	}
	if (!mask)
		fputs(none, out);
}

static void print_vectors(FILE *out, const struct fay_probe_facts *probe)
{
	fprintf(out, "\n    vectors clobbered:    ");
	print_list(out, probe->clobbered_vectors, vector_name, "none");
	fprintf(out, "%s%s", probe->clobbers_upper ? " (whole registers)" : "",
		probe->uses_mxcsr ? ", floating point" : "");
	fprintf(out, "\n    CPU must have:        ");
	print_list(out, probe->cpu_features, feature_name, "nothing beyond SSE2");
}

void fay_report_probe(FILE *out, const struct fay_probe_facts *probe)
{
	fay_report_text(out, "  probe ", probe->pattern, false);
	fprintf(out, " (%s)\n", kind_name(probe->kind));
	if (!probe->analysed)
		return;
	fprintf(out, "    reads of the event:   ");
	print_list(out, probe->event_fields, field_name, "nothing");
	fprintf(out, "\n    helpers called:       ");
	print_list(out, probe->helpers, helper_name, "none");
	fprintf(out, "\n    registers clobbered:  ");
	print_list(out, probe->clobbered_gprs, gpr_name, "none");
	if (probe->clobbered_vectors || probe->cpu_features)
		print_vectors(out, probe);
	fprintf(out,
		"\n    worst case:           %" PRIu64 " instructions, %" PRIu64
		" bytes of stack\n",
		probe->worst_instructions, probe->worst_stack);
}

static void print_state(FILE *out, const struct fay_schema *schema,
			const struct fay_schema_state *state)
{
	fay_report_text(out, "  state ", state->name, false);
	fprintf(out, " (%s, %s, %" PRIu32 " bytes", NAME(state_names, state->kind),
		state->scope == FAY_SCOPE_LOCAL ? "per thread" : "shared", state->size);
	if (state->kind == FAY_STATE_TABLE)
		fprintf(out, ", %" PRIu32 " rows", state->rows);
	fprintf(out, "):");
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];

		fay_report_text(out, i ? ", " : " ", column->name, false);
		fprintf(out, " %s", NAME(merge_names, column->merge));
	}
	fputc('\n', out);
}

/* What belongs to no result: scratch of the probes. */
uint32_t fay_report_scratch(const struct fay_schema *schema, unsigned scope)
{
	uint64_t bytes = scope == FAY_SCOPE_LOCAL ? schema->local_size : schema->global_size;

	for (uint32_t i = 0; i < schema->state_count; i++) {
		uint64_t size = schema->states[i].scope == scope ? schema->states[i].size : 0;

		bytes -= size < bytes ? size : bytes;
	}
	return (uint32_t)bytes;
}

static void print_scratch(FILE *out, const struct fay_schema *schema)
{
	uint32_t local = fay_report_scratch(schema, FAY_SCOPE_LOCAL);
	uint32_t global = fay_report_scratch(schema, FAY_SCOPE_GLOBAL);

	if (local || global)
		fprintf(out,
			"  state in no result    %" PRIu32 " bytes a thread, %" PRIu32
			" bytes shared\n",
			local, global);
}

static void print_tables(FILE *out, const struct fay_verdict *verdict)
{
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		fay_report_probe(out, &verdict->probes[i]);
	for (uint32_t i = 0; i < verdict->schema.state_count; i++)
		print_state(out, &verdict->schema, &verdict->schema.states[i]);
	print_scratch(out, &verdict->schema);
}

static void print_manifest(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	fprintf(out, "%s: accepted%s\n  image sha256          ", name,
		verdict->certified ? " by a certificate" : "");
	print_hex(out, verdict->image_sha256, 32);
	fprintf(out, "\n  code sha256           ");
	print_hex(out, verdict->layout.sha256, 32);
	fprintf(out,
		"\n  state                 %" PRIu32 " bytes a thread, %" PRIu32 " bytes shared\n",
		verdict->schema.local_size, verdict->schema.global_size);
	print_tables(out, verdict);
	if (verdict->certified) {
		fprintf(out, "  checked               %" PRIu64 " instructions in %.3f ms\n",
			verdict->instructions, (double)verdict->nanoseconds / 1e6);
		return;
	}
	fprintf(out,
		"  proved                %" PRIu64 " obligations over %" PRIu64
		" instructions, %" PRIu64 " blocks, %" PRIu64 " loops; %" PRIu64
		" by the solver; in %.3f ms\n",
		verdict->obligations, verdict->instructions, verdict->blocks, verdict->loops,
		verdict->obligations_by_solver, (double)verdict->nanoseconds / 1e6);
}

void fay_verdict_print(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	if (verdict->outcome == FAY_ACCEPTED) {
		print_manifest(out, name, verdict);
		return;
	}
	print_rejection(out, name, verdict);
	print_others(out, verdict);
	if (!verdict->probe_count)
		return;
	fprintf(out,
		"  what it requests, and what was proved of it before:\n  state                 "
		"%" PRIu32 " bytes a thread, %" PRIu32 " bytes shared\n",
		verdict->schema.local_size, verdict->schema.global_size);
	print_tables(out, verdict);
}
