/* SPDX-License-Identifier: MIT */
/* What `fay inspect` tells people. Names are the image's: they are printed by fay_report_text(). */
#include <inttypes.h>
#include <stdlib.h>

#include "inspect.h"
#include "verifier/explain/report.h"
#include "verifier/explain/report_names.h"

static void print_name(FILE *out, const char *before, const char *name)
{
	fay_report_text(out, before, name, false);
}

static void print_column(FILE *out, const struct fay_schema_column *column)
{
	print_name(out, "    ", column->name);
	fprintf(out, ": %s, %s, %" PRIu32 " bytes at %" PRIu32 "\n", NAME(type_names, column->type),
		NAME(merge_names, column->merge), column->size, column->offset);
}

static void print_state(FILE *out, const struct fay_schema *schema, uint32_t number)
{
	const struct fay_schema_state *state = &schema->states[number];

	fprintf(out, "  %" PRIu32 " ", number);
	print_name(out, "", state->name);
	fprintf(out, ": %s, %s", NAME(state_names, state->kind),
		state->scope == FAY_SCOPE_LOCAL ? "per thread" : "shared");
	if (state->size)
		fprintf(out, ", %" PRIu32 " bytes at %" PRIu32, state->size, state->offset);
	if (state->kind == FAY_STATE_TABLE)
		fprintf(out, ", %" PRIu32 " rows", state->rows);
	fprintf(out, ", %" PRIu32 " bytes a row\n", state->row_size);
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++)
		print_column(out, &schema->columns[state->first_column + i]);
}

static void print_tables(FILE *out, const struct fay_inspected *in)
{
	const struct fay_verdict *v = &in->verdict;
	const struct fay_layout *layout = &in->run->image.layout;

	fprintf(out, "probes\n");
	for (uint32_t i = 0; i < v->probe_count; i++) {
		fay_report_probe(out, &v->probes[i]);
		if (v->probes[i].parameter)
			fprintf(out, "    parameter:            %" PRIu64 "\n",
				v->probes[i].parameter);
		fprintf(out, "    code:                 .text+0x%" PRIx32 "%s\n",
			v->probes[i].code_offset - layout->code_offset,
			v->probes[i].analysed ? "" : ", of which nothing is proved");
	}
	fprintf(out, "state: %" PRIu32 " bytes a thread, %" PRIu32 " bytes shared\n",
		v->schema.local_size, v->schema.global_size);
	for (uint32_t i = 0; i < v->schema.state_count; i++)
		print_state(out, &v->schema, i);
	for (uint32_t i = 0; i < layout->slot_count; i++)
		fprintf(out, "%s  %s, its slot at image+0x%" PRIx32 "\n", i ? "" : "helpers\n",
			helper_name(layout->slots[i].helper), layout->slots[i].offset);
}

static void print_texts(FILE *out, const struct fay_inspected *in)
{
	uint64_t at = 0, offset;
	const char *text;
	unsigned count = 0;

	while (fay_inspect_text(in, &at, &offset, &text)) {
		if (count++ == FAY_INSPECT_TEXTS) {
			fprintf(out, "  and more\n");
			return;
		}
		fprintf(out, "%s  .rodata+0x%" PRIx64 " \"%s\"\n",
			count == 1 ? "texts among the constants\n" : "", offset, text);
	}
}

static void print_loops(FILE *out, const struct fay_inspected *in)
{
	const char *title = "loops\n";

	for (uint32_t i = 0; i < in->block_count; i++) {
		const struct fay_inspected_block *block = &in->blocks[i];

		if (!block->head)
			continue;
		fprintf(out, "%s  .text+0x%" PRIx64, title, fay_inspect_offset(in, block->start));
		title = "";
		print_name(out, " in ", fay_inspect_function(in, block->start)->name);
		fprintf(out, ": at most %" PRIu64 " rounds\n", block->bound);
	}
}

/* The instructions from `start` to `end`; a line of the source before those that are of it. */
static void print_code(FILE *out, const struct fay_inspected *in, uint64_t start, uint64_t end,
		       bool att)
{
	const struct fay_image_line *last = NULL;
	struct fay_inspected_line line;
	unsigned length;

	for (uint64_t at = start; at < end; at += length) {
		length = fay_inspect_line(in, at, att, &line);
		if (line.source && line.source != last) {
			print_name(out, "    ", in->run->image.line_files[line.source->file]);
			fprintf(out, ":%" PRIu32 "\n", line.source->line);
		}
		last = line.source;
		fprintf(out, "      %6" PRIx64 ":  %s", fay_inspect_offset(in, at), line.text);
		if (*line.note)
			print_name(out, "    # ", line.note);
		fputc('\n', out);
	}
}

static void print_block(FILE *out, const struct fay_inspected *in, uint32_t number, bool att)
{
	const struct fay_inspected_block *block = &in->blocks[number];
	uint32_t count = in->run->cfg.blocks[number].count;

	fprintf(out, "    .text+0x%" PRIx64 ": %" PRIu32 " instruction%s",
		fay_inspect_offset(in, block->start), count, count == 1 ? "" : "s");
	if (block->known && block->runs == UINT64_MAX)
		fprintf(out, ", more runs a call than can be counted");
	else if (block->known)
		fprintf(out, ", at most %" PRIu64 " run%s a call", block->runs,
			block->runs == 1 ? "" : "s");
	if (block->head)
		fprintf(out, ", a loop of at most %" PRIu64 " rounds", block->bound);
	for (uint32_t k = 0; k < fay_inspect_successors(in, number); k++) {
		uint32_t to = fay_inspect_successor(in, number, k);

		if (to != FAY_NONE)
			fprintf(out, "%s.text+0x%" PRIx64, k ? ", " : " -> ",
				fay_inspect_offset(in, in->blocks[to].start));
	}
	fputc('\n', out);
	print_code(out, in, block->start, block->end, att);
}

static void print_calls(FILE *out, const struct fay_inspected *in, uint32_t number)
{
	struct fay_inspected_calls calls;
	const char *separator = "    calls ";

	if (fay_inspect_calls(in, number, &calls)) {
		for (uint32_t i = 0; i < calls.count; i++, separator = ", ")
			print_name(out, separator, in->functions[calls.functions[i]].name);
		for (unsigned i = 0; i < FAY_HELPER_COUNT; i++)
			if (calls.helpers >> i & 1) {
				fprintf(out, "%s%s", separator, helper_name(i));
				separator = ", ";
			}
		if (calls.by_register)
			fprintf(out, "%sa helper by a register", separator);
		if (calls.count || calls.helpers || calls.by_register)
			fputc('\n', out);
	}
	free(calls.functions);
}

static void print_function(FILE *out, const struct fay_inspected *in, uint32_t number, bool att)
{
	const struct fay_inspected_function *f = &in->functions[number];

	print_name(out, "  ", f->name);
	fprintf(out, " at .text+0x%" PRIx64 ", %" PRIu64 " bytes%s\n",
		fay_inspect_offset(in, f->start), f->end - f->start,
		in->block_count && f->first == f->last ? ", which no probe reaches" : "");
	print_calls(out, in, number);
	for (uint32_t block = f->first; block < f->last; block++)
		print_block(out, in, block, att);
	if (f->first == f->last)
		print_code(out, in, f->start, f->end, att);
}

/* What the prover could not show bounds what is known here. */
static void print_refusal(FILE *out, const struct fay_inspected *in)
{
	const struct fay_rejection *r = &in->verdict.rejection;

	fprintf(out, "%s: %s: %s\n",
		fay_inspect_has_tables(in) ? "not everything is proved, since"
					   : "not read to the end, since",
		fay_rule_id(r->rule), fay_rule_title(r->rule));
	if (r->what)
		print_name(out, "  ", r->what);
	if (r->function)
		fprintf(out, " (.text+0x%" PRIx64 ")", r->text_offset);
	fputc('\n', out);
}

void fay_inspect_print(FILE *out, const char *name, bool att, const struct fay_inspected *in)
{
	print_name(out, "", name);
	fprintf(out, ": image of sha256 ");
	print_hex(out, in->verdict.image_sha256, sizeof(in->verdict.image_sha256));
	fputc('\n', out);
	if (in->verdict.outcome != FAY_ACCEPTED)
		print_refusal(out, in);
	if (fay_inspect_has_tables(in))
		print_tables(out, in);
	print_texts(out, in);
	print_loops(out, in);
	if (!fay_inspect_has_code(in))
		return;
	fprintf(out,
		"functions: %" PRIu64 " bytes of code, %" PRIu32 " instructions that probes "
		"reach\n",
		in->run->image.text.size, in->block_count ? in->run->cfg.insn_count : 0);
	for (uint32_t i = 0; i < in->function_count; i++)
		print_function(out, in, i, att);
}
