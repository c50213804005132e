/* SPDX-License-Identifier: MIT */
/*
 * What is told of a verdict: the manifest of an accepted image, the whole story of a refused one; as text for people and as one line of JSON
 * (docs/verify-json.md). Everything from the image (names, patterns) is untrusted bytes: control characters never reach the terminal.
 */
#include "report.h"

#include "decode.h"

#include <inttypes.h>
#include <string.h>

static const char *const kind_names[] = { "?",	 "entry", "return",	  "exception",	"offset",
					  "begin", "end",	  "thread begin", "thread end", "timer" };
static const char *const merge_names[] = { "key", "count", "sum", "min", "max", "average", "log2 histogram", "linear histogram",
	"log-linear histogram", "quantiles", "distinct", "top", "first", "last", "sample" };
static const char *const state_names[] = { "?", "cell", "table", "stream" };
static const char *const field_names[] = { "arg[0]", "arg[1]", "arg[2]",   "arg[3]", "arg[4]", "arg[5]", "retval",   "time", "cycles",
					   "function", "module", "pid",	   "tid",    "cpu",    "reserved", "comm", "stack_pointer",
					   "duration", "address", "retval2", "retval_float", "reg", "flags" };
#define FIELD_COUNT (sizeof(field_names) / sizeof(*field_names))

static const char *name_of(const char *const *names, size_t count, unsigned index)
{
	return index < count ? names[index] : "?";
}
#define NAME(names, index) name_of(names, sizeof(names) / sizeof(*names), index)

/* --- places ------------------------------------------------------------------------------------- */

static bool in_text(const struct fay_image *image, uint64_t address)
{
	return address - image->text.start < image->text.size;
}

static const uint8_t *text_at(const struct fay_image *image, uint64_t address)
{
	return image->layout.bytes + (address - image->layout_base);
}

const char *fay_verify_function(struct fay_arena *arena, const struct fay_image *image, uint64_t address, uint64_t *start)
{
	const char *name = NULL;
	uint64_t best = image->text.start;

	/* Symbols are for messages; they are sorted, but a linear look is enough for the one place of a refusal. */
	for (uint32_t i = 0; i < image->symbol_count && image->symbols[i].address <= address; i++) {
		if (in_text(image, image->symbols[i].address)) {
			name = image->symbols[i].name;
			best = image->symbols[i].address;
		}
	}
	for (uint32_t i = 0; !name && i < image->probe_count; i++) {
		uint64_t code = image->layout_base + image->probes[i].code_offset;

		if (code <= address && code >= best) {
			name = fay_arena_printf(arena, "probe %" PRIu32, i);
			best = code;
		}
	}
	*start = best;
	return name ? name : ".text";
}

#define LINES_AROUND 3
#define LINE_BYTES 160
/* How far back the start of a listing may be looked for, in instructions. */
#define LISTING_MAX 65536

static void format_line(const struct fay_image *image, uint64_t address, uint64_t marked, char *line, unsigned *length)
{
	char text[96];
	size_t left = image->text.size - (address - image->text.start);
	int size = fay_disassemble(text_at(image, address), left, address, text, sizeof(text));

	if (size <= 0) {
		size = 1;
		snprintf(text, sizeof(text), "(not an instruction) %02x", *text_at(image, address));
	}
	*length = (unsigned)size;
	snprintf(line, LINE_BYTES, "  %s %6" PRIx64 ":  %s\n", address == marked ? "=>" : "  ", address - image->text.start, text);
}

const char *fay_verify_disassembly(struct fay_arena *arena, const struct fay_image *image, uint64_t address)
{
	char lines[2 * LINES_AROUND + 1][LINE_BYTES], all[(2 * LINES_AROUND + 1) * LINE_BYTES] = "";
	unsigned count = 0, length;
	uint64_t at;

	if (!in_text(image, address))
		return NULL;
	fay_verify_function(arena, image, address, &at);
	/* Before: the last lines of a walk from the function's start, if the walk meets the address. */
	for (unsigned walked = 0; at < address && walked < LISTING_MAX; walked++) {
		if (count == LINES_AROUND) {
			memmove(lines[0], lines[1], sizeof(lines[0]) * (LINES_AROUND - 1));
			count--;
		}
		format_line(image, at, address, lines[count++], &length);
		at += length;
	}
	if (at != address) {
		count = 0;
		at = address;
	}
	unsigned end = count + LINES_AROUND + 1;
	while (count < end && in_text(image, at)) {
		format_line(image, at, address, lines[count++], &length);
		at += length;
	}
	for (unsigned i = 0; i < count; i++)
		strcat(all, lines[i]);
	return fay_arena_printf(arena, "%s", all);
}

static void find_source_line(const struct fay_image *image, uint64_t offset, struct fay_rejection *rejection)
{
	for (uint32_t i = 0; i < image->line_count && image->lines[i].code_offset <= offset; i++) {
		rejection->source_file = image->line_files[image->lines[i].file];
		rejection->source_line = image->lines[i].line;
	}
}

void fay_rejection_fill(struct fay_arena *arena, const struct fay_image *image, const struct fay_refusal *refusal,
			struct fay_rejection *rejection)
{
	uint64_t start;

	rejection->rule = refusal->rule;
	rejection->outcome = refusal->outcome;
	rejection->what = refusal->what;
	rejection->missing = refusal->missing;
	if (!image || !image->layout.bytes || !in_text(image, refusal->address))
		return;
	rejection->function = fay_verify_function(arena, image, refusal->address, &start);
	rejection->function_offset = refusal->address - start;
	rejection->text_offset = refusal->address - image->text.start;
	rejection->disassembly = fay_verify_disassembly(arena, image, refusal->address);
	find_source_line(image, rejection->text_offset, rejection);
}

/* --- text ---------------------------------------------------------------------------------------- */

/* Untrusted text, control characters as \xNN; each line of it begins with `indent`. */
static void print_text(FILE *out, const char *indent, const char *text, bool lines)
{
	fputs(indent, out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '\n' && lines) {
			fputc('\n', out);
			if (c[1])
				fputs(indent, out);
		} else if (*c < 0x20 || *c == 0x7f) {
			fprintf(out, "\\x%02x", *c);
		} else {
			fputc(*c, out);
		}
	}
}

static void print_hex(FILE *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", bytes[i]);
}

static void print_block(FILE *out, const char *title, const char *text)
{
	if (!text)
		return;
	fprintf(out, "  %s:\n", title);
	print_text(out, "    ", text, true);
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

static void print_rejection(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	const struct fay_rejection *rejection = &verdict->rejection;

	fprintf(out, "%s: REJECTED (%s): %s: %s\n", name, fay_outcome_name(verdict->outcome), fay_rule_id(rejection->rule),
		fay_rule_title(rejection->rule));
	if (rejection->what) {
		print_text(out, "  ", rejection->what, false);
		fputc('\n', out);
	}
	if (rejection->function) {
		print_text(out, "  in ", rejection->function, false);
		fprintf(out, "+0x%" PRIx64 " (.text+0x%" PRIx64 ")", rejection->function_offset, rejection->text_offset);
		if (rejection->source_file) {
			print_text(out, ", ", rejection->source_file, false);
			fprintf(out, ":%" PRIu32, rejection->source_line);
		}
		fputc('\n', out);
	}
	if (rejection->disassembly) {
		fputc('\n', out);
		print_text(out, "", rejection->disassembly, true);
		fputc('\n', out);
	}
	print_path(out, rejection);
	print_block(out, "missing", rejection->missing);
	if (rejection->counterexample)
		print_block(out,
			    rejection->replayed ? "counterexample (replayed: it does break the rule)" :
						  "counterexample (from the solver, not replayed)",
			    rejection->counterexample);
	fprintf(out, "  see docs/rules.md, section %s\n", fay_rule_id(rejection->rule));
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

static const char *field_name(unsigned index)
{
	return NAME(field_names, index);
}

static const char *helper_name(unsigned index)
{
	const char *name = fay_helper_name(index);

	return name ? name : "?";
}

static const char *gpr_name(unsigned index)
{
	return fay_gpr_name(index, 64);
}

static const char *vector_name(unsigned index)
{
	static const char *const names[] = { "xmm0", "xmm1", "xmm2",  "xmm3",  "xmm4",	"xmm5",	 "xmm6",  "xmm7",
					     "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" };

	return NAME(names, index);
}

static const char *feature_name(unsigned index)
{
	const char *name = fay_cpu_feature_name(index);

	return name ? name : "?";
}

static void print_vectors(FILE *out, const struct fay_probe_facts *probe)
{
	fprintf(out, "\n    vectors clobbered:    ");
	print_list(out, probe->clobbered_vectors, vector_name, "none");
	fprintf(out, "%s%s", probe->clobbers_upper ? " (whole registers)" : "", probe->uses_mxcsr ? ", floating point" : "");
	fprintf(out, "\n    CPU must have:        ");
	print_list(out, probe->cpu_features, feature_name, "nothing beyond SSE2");
}

static void print_probe(FILE *out, const struct fay_probe_facts *probe)
{
	print_text(out, "  probe ", probe->pattern, false);
	fprintf(out, " (%s)\n    reads of the event:   ", NAME(kind_names, probe->kind));
	print_list(out, probe->event_fields, field_name, "nothing");
	fprintf(out, "\n    helpers called:       ");
	print_list(out, probe->helpers, helper_name, "none");
	fprintf(out, "\n    registers clobbered:  ");
	print_list(out, probe->clobbered_gprs, gpr_name, "none");
	if (probe->clobbered_vectors || probe->cpu_features)
		print_vectors(out, probe);
	fprintf(out, "\n    worst case:           %" PRIu64 " instructions, %" PRIu64 " bytes of stack\n", probe->worst_instructions,
		probe->worst_stack);
}

static void print_state(FILE *out, const struct fay_schema *schema, const struct fay_schema_state *state)
{
	print_text(out, "  state ", state->name, false);
	fprintf(out, " (%s, %s, %" PRIu32 " bytes", NAME(state_names, state->kind),
		state->scope == FAY_SCOPE_LOCAL ? "per thread" : "shared", state->size);
	if (state->kind == FAY_STATE_TABLE)
		fprintf(out, ", %" PRIu32 " rows", state->rows);
	fprintf(out, "):");
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];

		print_text(out, i ? ", " : " ", column->name, false);
		fprintf(out, " %s", NAME(merge_names, column->merge));
	}
	fputc('\n', out);
}

static void print_manifest(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	fprintf(out, "%s: accepted\n  image sha256          ", name);
	print_hex(out, verdict->image_sha256, 32);
	fprintf(out, "\n  code sha256           ");
	print_hex(out, verdict->layout.sha256, 32);
	fprintf(out, "\n  state                 %" PRIu32 " bytes a thread, %" PRIu32 " bytes shared\n", verdict->schema.local_size,
		verdict->schema.global_size);
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		print_probe(out, &verdict->probes[i]);
	for (uint32_t i = 0; i < verdict->schema.state_count; i++)
		print_state(out, &verdict->schema, &verdict->schema.states[i]);
	fprintf(out,
		"  proved                %" PRIu64 " obligations over %" PRIu64 " instructions, %" PRIu64 " blocks, %" PRIu64
		" loops; %" PRIu64 " by the solver; in %.3f ms\n",
		verdict->obligations, verdict->instructions, verdict->blocks, verdict->loops, verdict->obligations_by_solver,
		(double)verdict->nanoseconds / 1e6);
}

void fay_verdict_print(FILE *out, const char *name, const struct fay_verdict *verdict)
{
	if (verdict->outcome == FAY_ACCEPTED)
		print_manifest(out, name, verdict);
	else
		print_rejection(out, name, verdict);
}

/* --- JSON ---------------------------------------------------------------------------------------- */

/* The length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if there is none. The terminating NUL ends any sequence. */
static size_t utf8_sequence(const unsigned char *s)
{
	size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return length;
}

/* UTF-8 goes through; any other byte becomes U+FFFD, so that the line is valid JSON whatever the file's name holds. */
static void json_string(FILE *out, const char *text)
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
		}
		else
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

static void json_rejection(FILE *out, const struct fay_rejection *rejection)
{
	fprintf(out, ",\"rejection\":{\"rule\":\"%s\",\"title\":", fay_rule_id(rejection->rule));
	json_string(out, fay_rule_title(rejection->rule));
	fprintf(out, ",\"what\":");
	json_string(out, rejection->what);
	fprintf(out, ",\"function\":");
	json_string(out, rejection->function);
	fprintf(out, ",\"function_offset\":%" PRIu64 ",\"text_offset\":%" PRIu64 ",\"source_file\":", rejection->function_offset,
		rejection->text_offset);
	json_string(out, rejection->source_file);
	fprintf(out, ",\"source_line\":%" PRIu32 ",\"disassembly\":", rejection->source_line);
	json_string(out, rejection->disassembly);
	fprintf(out, ",\"missing\":");
	json_string(out, rejection->missing);
	fprintf(out, ",\"counterexample\":");
	json_string(out, rejection->counterexample);
	fprintf(out, ",\"replayed\":%s,\"path\":[", rejection->replayed ? "true" : "false");
	for (size_t i = 0; i < rejection->path_length && i < FAY_MAX_PATH_STEPS; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", rejection->path[i]);
	fprintf(out, "]}");
}

static void json_probe(FILE *out, const struct fay_probe_facts *probe)
{
	fprintf(out, "{\"pattern\":");
	json_string(out, probe->pattern);
	fprintf(out, ",\"kind\":\"%s\",\"parameter\":%" PRIu64, NAME(kind_names, probe->kind), probe->parameter);
	json_list(out, "event_fields", probe->event_fields, field_name);
	json_list(out, "helpers", probe->helpers, helper_name);
	json_list(out, "clobbers", probe->clobbered_gprs, gpr_name);
	json_list(out, "clobbers_vectors", probe->clobbered_vectors, vector_name);
	fprintf(out, ",\"clobbers_upper\":%s,\"floating_point\":%s,\"aligned_stack\":%s", probe->clobbers_upper ? "true" : "false",
		probe->uses_mxcsr ? "true" : "false", probe->aligned_stack ? "true" : "false");
	json_list(out, "cpu_features", probe->cpu_features, feature_name);
	fprintf(out, ",\"worst_instructions\":%" PRIu64 ",\"worst_stack\":%" PRIu64 "}", probe->worst_instructions, probe->worst_stack);
}

static void json_state(FILE *out, const struct fay_schema *schema, const struct fay_schema_state *state)
{
	fprintf(out, "{\"name\":");
	json_string(out, state->name);
	fprintf(out, ",\"kind\":\"%s\",\"scope\":\"%s\",\"offset\":%" PRIu32 ",\"size\":%" PRIu32 ",\"rows\":%" PRIu32 ",\"columns\":[",
		NAME(state_names, state->kind), state->scope == FAY_SCOPE_LOCAL ? "thread" : "global", state->offset, state->size,
		state->rows);
	for (unsigned i = 0; i < (unsigned)state->keys + state->values; i++) {
		const struct fay_schema_column *column = &schema->columns[state->first_column + i];

		fprintf(out, "%s{\"name\":", i ? "," : "");
		json_string(out, column->name);
		fprintf(out, ",\"merge\":\"%s\"}", NAME(merge_names, column->merge));
	}
	fprintf(out, "]}");
}

static void json_manifest(FILE *out, const struct fay_verdict *verdict)
{
	fprintf(out, ",\"code_sha256\":\"");
	print_hex(out, verdict->layout.sha256, 32);
	fprintf(out, "\",\"local_size\":%" PRIu32 ",\"global_size\":%" PRIu32 ",\"probes\":[", verdict->schema.local_size,
		verdict->schema.global_size);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		if (i)
			fputc(',', out);
		json_probe(out, &verdict->probes[i]);
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
	fprintf(out, "{\"image\":");
	json_string(out, name);
	fprintf(out, ",\"outcome\":\"%s\",\"image_sha256\":\"", fay_outcome_name(verdict->outcome));
	print_hex(out, verdict->image_sha256, 32);
	fputc('"', out);
	if (verdict->outcome == FAY_ACCEPTED)
		json_manifest(out, verdict);
	else
		json_rejection(out, &verdict->rejection);
	fprintf(out,
		",\"instructions\":%" PRIu64 ",\"blocks\":%" PRIu64 ",\"loops\":%" PRIu64 ",\"obligations\":%" PRIu64
		",\"obligations_by_solver\":%" PRIu64 ",\"nanoseconds\":%" PRIu64 "}\n",
		verdict->instructions, verdict->blocks, verdict->loops, verdict->obligations, verdict->obligations_by_solver,
		verdict->nanoseconds);
}
