/* SPDX-License-Identifier: MIT */
/* `fay inspect --json`: docs/cli-json.md has the members. */
#include <inttypes.h>
#include <stdlib.h>

#include "inspect.h"
#include "verifier/explain/report.h"
#include "verifier/explain/report_names.h"

static void put_text(FILE *out, const char *key, const char *text)
{
	fputs(key, out);
	fay_report_string_json(out, text);
}

static void put_refusal(FILE *out, const struct fay_inspected *in)
{
	const struct fay_rejection *r = &in->verdict.rejection;

	fprintf(out, ",\"tables\":%s,\"refusal\":", fay_inspect_has_tables(in) ? "true" : "false");
	if (in->verdict.outcome == FAY_ACCEPTED) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"rule\":\"%s\"", fay_rule_id(r->rule));
	put_text(out, ",\"title\":", fay_rule_title(r->rule));
	put_text(out, ",\"what\":", r->what);
	put_text(out, ",\"function\":", r->function);
	fprintf(out, ",\"text_offset\":%" PRIu64 "}", r->text_offset);
}

static void put_column(FILE *out, const struct fay_schema_column *column)
{
	put_text(out, "{\"name\":", column->name);
	fprintf(out,
		",\"type\":\"%s\",\"merge\":\"%s\",\"offset\":%" PRIu32 ",\"size\":%" PRIu32 "}",
		NAME(type_names, column->type), NAME(merge_names, column->merge), column->offset,
		column->size);
}

static void put_state(FILE *out, const struct fay_schema *schema,
		      const struct fay_schema_state *state)
{
	put_text(out, "{\"name\":", state->name);
	fprintf(out,
		",\"kind\":\"%s\",\"scope\":\"%s\",\"offset\":%" PRIu32 ",\"size\":%" PRIu32
		",\"rows\":%" PRIu32 ",\"row_size\":%" PRIu32 ",\"keys\":%u,\"columns\":[",
		NAME(state_names, state->kind),
		state->scope == FAY_SCOPE_LOCAL ? "thread" : "global", state->offset, state->size,
		state->rows, state->row_size, state->keys);
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		fputs(i ? "," : "", out);
		put_column(out, &schema->columns[state->first_column + i]);
	}
	fputs("]}", out);
}

static void put_tables(FILE *out, const struct fay_inspected *in)
{
	const struct fay_verdict *v = &in->verdict;
	const struct fay_layout *layout = &in->run->image.layout;

	fprintf(out, ",\"local_size\":%" PRIu32 ",\"global_size\":%" PRIu32 ",\"probes\":[",
		v->schema.local_size, v->schema.global_size);
	for (uint32_t i = 0; i < v->probe_count; i++) {
		fprintf(out, "%s{\"text_offset\":%" PRIu32 ",\"facts\":", i ? "," : "",
			v->probes[i].code_offset - layout->code_offset);
		fay_report_probe_json(out, &v->probes[i]);
		fputc('}', out);
	}
	fputs("],\"states\":[", out);
	for (uint32_t i = 0; i < v->schema.state_count; i++) {
		fputs(i ? "," : "", out);
		put_state(out, &v->schema, &v->schema.states[i]);
	}
	fputs("],\"helpers\":[", out);
	for (uint32_t i = 0; fay_inspect_has_tables(in) && i < layout->slot_count; i++)
		fprintf(out, "%s{\"name\":\"%s\",\"slot\":%" PRIu32 "}", i ? "," : "",
			helper_name(layout->slots[i].helper), layout->slots[i].offset);
	fputc(']', out);
}

static void put_texts(FILE *out, const struct fay_inspected *in)
{
	uint64_t at = 0, offset;
	const char *text;

	fputs(",\"texts\":[", out);
	for (unsigned i = 0; i < FAY_INSPECT_TEXTS && fay_inspect_text(in, &at, &offset, &text);
	     i++) {
		fprintf(out, "%s{\"rodata_offset\":%" PRIu64 ",\"text\":", i ? "," : "", offset);
		fay_report_string_json(out, text);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_code(FILE *out, const struct fay_inspected *in, uint64_t start, uint64_t end,
		     bool att)
{
	struct fay_inspected_line line;
	unsigned length;

	fputs("\"code\":[", out);
	for (uint64_t at = start; at < end; at += length) {
		length = fay_inspect_line(in, at, att, &line);
		fprintf(out, "%s{\"text_offset\":%" PRIu64 ",\"length\":%u,\"text\":",
			at == start ? "" : ",", fay_inspect_offset(in, at), length);
		fay_report_string_json(out, line.text);
		if (*line.note)
			put_text(out, ",\"note\":", line.note);
		if (line.source) {
			put_text(out,
				 ",\"source_file\":", in->run->image.line_files[line.source->file]);
			fprintf(out, ",\"source_line\":%" PRIu32, line.source->line);
		}
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_count(FILE *out, const char *key, bool known, uint64_t count)
{
	if (known && count != UINT64_MAX)
		fprintf(out, "%s%" PRIu64, key, count);
	else
		fprintf(out, "%snull", key);
}

static void put_block(FILE *out, const struct fay_inspected *in, uint32_t number, bool att)
{
	const struct fay_inspected_block *block = &in->blocks[number];
	const char *separator = "";

	fprintf(out, "{\"text_offset\":%" PRIu64 ",\"instructions\":%" PRIu32,
		fay_inspect_offset(in, block->start), in->run->cfg.blocks[number].count);
	put_count(out, ",\"runs\":", block->known, block->runs);
	put_count(out, ",\"loop_bound\":", block->head, block->bound);
	fputs(",\"next\":[", out);
	for (uint32_t k = 0; k < fay_inspect_successors(in, number); k++) {
		uint32_t to = fay_inspect_successor(in, number, k);

		if (to == FAY_NONE)
			continue;
		fprintf(out, "%s%" PRIu64, separator, fay_inspect_offset(in, in->blocks[to].start));
		separator = ",";
	}
	fputs("],", out);
	put_code(out, in, block->start, block->end, att);
	fputc('}', out);
}

static void put_calls(FILE *out, const struct fay_inspected *in, uint32_t number)
{
	struct fay_inspected_calls calls;
	const char *separator = "";
	bool ok = fay_inspect_calls(in, number, &calls);

	fputs(",\"calls\":[", out);
	for (uint32_t i = 0; ok && i < calls.count; i++) {
		fputs(i ? "," : "", out);
		fay_report_string_json(out, in->functions[calls.functions[i]].name);
	}
	fputs("],\"helpers\":[", out);
	for (unsigned i = 0; i < FAY_HELPER_COUNT; i++)
		if (calls.helpers >> i & 1) {
			fprintf(out, "%s\"%s\"", separator, helper_name(i));
			separator = ",";
		}
	fprintf(out, "],\"helper_by_register\":%s", calls.by_register ? "true" : "false");
	free(calls.functions);
}

static void put_function(FILE *out, const struct fay_inspected *in, uint32_t number, bool att)
{
	const struct fay_inspected_function *f = &in->functions[number];

	put_text(out, "{\"name\":", f->name);
	fprintf(out, ",\"text_offset\":%" PRIu64 ",\"size\":%" PRIu64 ",\"reached\":%s",
		fay_inspect_offset(in, f->start), f->end - f->start,
		f->first != f->last ? "true" : "false");
	put_calls(out, in, number);
	fputs(",\"blocks\":[", out);
	for (uint32_t block = f->first; block < f->last; block++) {
		fputs(block == f->first ? "" : ",", out);
		put_block(out, in, block, att);
	}
	fputc(']', out);
	if (f->first == f->last) {
		fputc(',', out);
		put_code(out, in, f->start, f->end, att);
	}
	fputc('}', out);
}

void fay_inspect_print_json(FILE *out, const char *name, bool att, const struct fay_inspected *in)
{
	put_text(out, "{\"version\":1,\"image\":", name);
	fputs(",\"image_sha256\":\"", out);
	print_hex(out, in->verdict.image_sha256, sizeof(in->verdict.image_sha256));
	fputc('"', out);
	put_refusal(out, in);
	put_tables(out, in);
	put_texts(out, in);
	fprintf(out, ",\"text_size\":%" PRIu64 ",\"functions\":[",
		fay_inspect_has_code(in) ? in->run->image.text.size : 0);
	for (uint32_t i = 0; i < in->function_count; i++) {
		fputs(i ? "," : "", out);
		put_function(out, in, i, att);
	}
	fputs("]}\n", out);
}
