/* SPDX-License-Identifier: MIT */
/*
 * A verdict as one JSON object on one line: docs/verify-json.md lists the members,
 * docs/verify.schema.json is their schema, and the test verify_json holds reports against it.
 * Everything from the image is untrusted bytes: what is not UTF-8 becomes U+FFFD.
 */
#include <inttypes.h>
#include <string.h>

#include "report.h"
#include "report_names.h"

/* The length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if there is none. The terminating
 * NUL ends any sequence. */
static size_t utf8_sequence(const unsigned char *s)
{
	size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

void fay_report_string_json(FILE *out, const char *text)
{
	if (!text) {
		fputs("null", out);
		return;
	}
	fputc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			fprintf(out, "\\%c", *c);
		else if (*c == '\n')
			fputs("\\n", out);
		else if (*c < 0x20 || *c == 0x7f)
			fprintf(out, "\\u%04x", *c);
		else if (*c > 0x7f && !utf8_sequence(c))
			fputs("\\ufffd", out);
		else if (*c > 0x7f) {
			size_t length = utf8_sequence(c);
			fwrite(c, 1, length, out);
			c += length - 1;
		} else
			fputc(*c, out);
	}
	fputc('"', out);
}

static void json_list(FILE *out, const char *key, uint32_t mask, const char *(*name)(unsigned))
{
	const char *separator = "";

	fprintf(out, ",\"%s\":[", key);
	for (unsigned i = 0; i < 32; i++) {
		if (!(mask >> i & 1))
			continue;
		fprintf(out, "%s\"%s\"", separator, name(i));
		separator = ",";
	}
	fputc(']', out);
}

/* What every refusal has: the members up to the source's column. */
static void json_refusal(FILE *out, const struct fay_rejection *rejection)
{
	fprintf(out, "{\"rule\":\"%s\",\"title\":", fay_rule_id(rejection->rule));
	fay_report_string_json(out, fay_rule_title(rejection->rule));
	fprintf(out, ",\"what\":");
	fay_report_string_json(out, rejection->what);
	fprintf(out, ",\"function\":");
	fay_report_string_json(out, rejection->function);
	fprintf(out,
		",\"function_offset\":%" PRIu64 ",\"text_offset\":%" PRIu64 ",\"source_file\":",
		rejection->function_offset, rejection->text_offset);
	fay_report_string_json(out, rejection->source_file);
	fprintf(out, ",\"source_line\":%" PRIu32 ",\"source_column\":%" PRIu32,
		rejection->source_line, rejection->source_column);
}

static void json_others(FILE *out, const struct fay_verdict *verdict)
{
	fprintf(out, ",\"others\":[");
	for (uint32_t i = 0; i < verdict->other_count; i++) {
		fputs(i ? "," : "", out);
		json_refusal(out, &verdict->others[i]);
		fprintf(out, ",\"missing\":");
		fay_report_string_json(out, verdict->others[i].missing);
		fprintf(out, ",\"hint\":");
		fay_report_string_json(out, verdict->others[i].hint);
		fputc('}', out);
	}
	fputc(']', out);
}

static void json_rejection(FILE *out, const struct fay_rejection *rejection)
{
	fprintf(out, ",\"rejection\":");
	json_refusal(out, rejection);
	fprintf(out, ",\"disassembly\":");
	fay_report_string_json(out, rejection->disassembly);
	fprintf(out, ",\"missing\":");
	fay_report_string_json(out, rejection->missing);
	fprintf(out, ",\"counterexample\":");
	fay_report_string_json(out, rejection->counterexample);
	fprintf(out, ",\"replayed\":%s,\"native\":\"%s\",\"native_detail\":",
		rejection->replayed ? "true" : "false", native_name(rejection->native));
	fay_report_string_json(out, rejection->native_detail);
	fprintf(out, ",\"path\":[");
	for (size_t i = 0; i < rejection->path_length && i < FAY_MAX_PATH_STEPS; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", rejection->path[i]);
	fprintf(out, "],\"steps\":");
	fay_report_string_json(out, rejection->steps);
	fprintf(out, ",\"facts\":[");
	for (size_t i = 0; i < rejection->fact_count; i++) {
		fprintf(out, "%s{\"where\":", i ? "," : "");
		fay_report_string_json(out, rejection->facts[i].where);
		fprintf(out, ",\"value\":");
		fay_report_string_json(out, rejection->facts[i].value);
		fputc('}', out);
	}
	fprintf(out, "],\"source_text\":");
	fay_report_string_json(out, rejection->source_text);
	fprintf(out, ",\"advice\":");
	fay_report_string_json(out, rejection->advice);
	fprintf(out, ",\"hint\":");
	fay_report_string_json(out, rejection->hint);
	fputc('}', out);
}

void fay_report_probe_json(FILE *out, const struct fay_probe_facts *probe)
{
	fprintf(out, "{\"pattern\":");
	fay_report_string_json(out, probe->pattern);
	fprintf(out, ",\"kind\":\"%s\",\"parameter\":%" PRIu64 ",\"analysed\":%s",
		kind_name(probe->kind), probe->parameter, probe->analysed ? "true" : "false");
	if (!probe->analysed) {
		fputc('}', out);
		return;
	}
	json_list(out, "event_fields", probe->event_fields, field_name);
	json_list(out, "helpers", probe->helpers, helper_name);
	json_list(out, "clobbers", probe->clobbered_gprs, gpr_name);
	json_list(out, "clobbers_vectors", probe->clobbered_vectors, vector_name);
	fprintf(out, ",\"clobbers_upper\":%s,\"floating_point\":%s,\"aligned_stack\":%s",
		probe->clobbers_upper ? "true" : "false", probe->uses_mxcsr ? "true" : "false",
		probe->aligned_stack ? "true" : "false");
	json_list(out, "cpu_features", probe->cpu_features, feature_name);
	fprintf(out, ",\"worst_instructions\":%" PRIu64 ",\"worst_stack\":%" PRIu64 "}",
		probe->worst_instructions, probe->worst_stack);
}

static void json_state(FILE *out, const struct fay_schema *schema,
		       const struct fay_schema_state *state)
{
	fprintf(out, "{\"name\":");
	fay_report_string_json(out, state->name);
	fprintf(out,
		",\"kind\":\"%s\",\"scope\":\"%s\",\"offset\":%" PRIu32 ",\"size\":%" PRIu32
		",\"rows\":%" PRIu32 ",\"columns\":[",
		NAME(state_names, state->kind),
		state->scope == FAY_SCOPE_LOCAL ? "thread" : "global", state->offset, state->size,
		state->rows);
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];

		fprintf(out, "%s{\"name\":", i ? "," : "");
		fay_report_string_json(out, column->name);
		fprintf(out, ",\"merge\":\"%s\"}", NAME(merge_names, column->merge));
	}
	fprintf(out, "]}");
}

void fay_report_manifest_json(FILE *out, const struct fay_verdict *verdict)
{
	fprintf(out, ",\"code_sha256\":");
	if (verdict->outcome == FAY_ACCEPTED) {
		fputc('"', out);
		print_hex(out, verdict->layout.sha256, 32);
		fputc('"', out);
	} else {
		fputs("null", out);
	}
	fprintf(out, ",\"local_size\":%" PRIu32 ",\"global_size\":%" PRIu32 ",\"probes\":[",
		verdict->schema.local_size, verdict->schema.global_size);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		if (i)
			fputc(',', out);
		fay_report_probe_json(out, &verdict->probes[i]);
	}
	fprintf(out, "],\"states\":[");
	for (uint32_t i = 0; i < verdict->schema.state_count; i++) {
		if (i)
			fputc(',', out);
		json_state(out, &verdict->schema, &verdict->schema.states[i]);
	}
	fputc(']', out);
}

void fay_verdict_print_json(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	fprintf(out, "{\"version\":1,\"image\":");
	fay_report_string_json(out, name);
	fprintf(out, ",\"outcome\":\"%s\",\"image_sha256\":\"", fay_outcome_name(verdict->outcome));
	print_hex(out, verdict->image_sha256, 32);
	fputc('"', out);
	fay_report_manifest_json(out, verdict);
	if (verdict->outcome != FAY_ACCEPTED) {
		json_rejection(out, &verdict->rejection);
		json_others(out, verdict);
	}
	fprintf(out,
		",\"instructions\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"loops\":%" PRIu64
		",\"obligations\":%" PRIu64 ",\"obligations_by_solver\":%" PRIu64
		",\"solver_queries\":%" PRIu64 ",\"nanoseconds\":%" PRIu64 "%s}\n",
		verdict->instructions, verdict->blocks, verdict->loops, verdict->obligations,
		verdict->obligations_by_solver, verdict->solver_queries, verdict->nanoseconds,
		verdict->certified ? ",\"certified\":true" : "");
}
