/* SPDX-License-Identifier: MIT */
/*
 * The refusals as a log of SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for
 * code-scanning services: a rule for each that was broken, a result for each refusal, with its
 * place in the source, if the image has that, and in the image. The way that leads there is a code
 * flow.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "review.h"
#include "verifier/explain/report.h"
#include "verifier/explain/report_names.h"

#define SCHEMA                                                                                     \
	"https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/"                      \
	"sarif-schema-2.1.0.json"

static void put_text(FILE *out, const char *key, const char *text)
{
	fputs(key, out);
	fay_report_string_json(out, text ? text : "");
}

/* A path as a reference (RFC 3986): what is neither unreserved nor a slash is %XX. */
static void put_uri(FILE *out, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";

	fprintf(out, "\"%s", *path == '/' ? "file://" : "");
	for (const unsigned char *c = (const unsigned char *)path; *c; c++)
		fprintf(out, strchr(plain, *c) ? "%c" : "%%%02X", *c);
	fputc('"', out);
}

/* ---- rules ---- */

static const struct fay_rejection *refusal_at(const struct fay_verdict *v, uint32_t number)
{
	return number ? &v->others[number - 1] : &v->rejection;
}

static uint32_t refusal_count(const struct fay_verdict *v)
{
	return v->outcome == FAY_ACCEPTED ? 0 : 1 + v->other_count;
}

/* The first refusal by the same rule. */
static uint32_t first_of(const struct fay_verdict *v, uint32_t number)
{
	uint32_t first = 0;

	while (refusal_at(v, first)->rule != refusal_at(v, number)->rule)
		first++;
	return first;
}

/* The rule's place in the list of rules. */
static uint32_t rule_index(const struct fay_verdict *v, uint32_t number)
{
	uint32_t first = first_of(v, number), index = 0;

	for (uint32_t i = 0; i < first; i++)
		index += first_of(v, i) == i;
	return index;
}

static void put_rules(FILE *out, const struct fay_verdict *v)
{
	fputs("\"rules\":[", out);
	for (uint32_t i = 0; i < refusal_count(v); i++) {
		const struct fay_rejection *r = refusal_at(v, i);

		if (first_of(v, i) != i)
			continue;
		fprintf(out, "%s{\"id\":\"%s\"", i ? "," : "", fay_rule_id(r->rule));
		put_text(out, ",\"shortDescription\":{\"text\":", fay_rule_title(r->rule));
		fputc('}', out);
		if (r->hint) {
			put_text(out, ",\"help\":{\"text\":", r->hint);
			fputc('}', out);
		}
		fputc('}', out);
	}
	fputc(']', out);
}

/* ---- results ---- */

static void put_region(FILE *out, const struct fay_rejection *r)
{
	if (!r->source_line)
		return;
	fprintf(out, ",\"region\":{\"startLine\":%" PRIu32, r->source_line);
	if (r->source_column)
		fprintf(out, ",\"startColumn\":%" PRIu32, r->source_column);
	if (r->source_text) {
		put_text(out, ",\"snippet\":{\"text\":", r->source_text);
		fputc('}', out);
	}
	fputc('}', out);
}

/* In the source, or in the image; the instruction's address is an offset in .text. */
static void put_location(FILE *out, const struct fay_review *review, const struct fay_rejection *r)
{
	fputs("{\"physicalLocation\":{\"artifactLocation\":{\"uri\":", out);
	put_uri(out, r->source_file ? r->source_file : review->image);
	fputc('}', out);
	if (r->source_file)
		put_region(out, r);
	if (r->function) {
		fprintf(out,
			",\"address\":{\"relativeAddress\":%" PRIu64
			",\"kind\":\"instruction\",\"fullyQualifiedName\":\".text+0x%" PRIx64 "\"}",
			r->text_offset, r->text_offset);
		put_text(out,
			 "},\"logicalLocations\":[{\"kind\":\"function\",\"name\":", r->function);
		fputs("}]}", out);
		return;
	}
	fputs("}}", out);
}

static void put_step(FILE *out, const struct fay_review *review, uint64_t offset)
{
	fputs("{\"location\":{\"physicalLocation\":{\"artifactLocation\":{\"uri\":", out);
	put_uri(out, review->image);
	fprintf(out,
		"},\"address\":{\"relativeAddress\":%" PRIu64
		",\"kind\":\"instruction\"}},\"message\":{\"text\":\".text+0x%" PRIx64 "\"}}}",
		offset, offset);
}

static void put_flow(FILE *out, const struct fay_review *review, const struct fay_rejection *r)
{
	if (!r->path_length)
		return;
	fputs(",\"codeFlows\":[{\"threadFlows\":[{\"locations\":[", out);
	for (size_t i = 0; i < r->path_length && i < FAY_MAX_PATH_STEPS; i++) {
		fputs(i ? "," : "", out);
		put_step(out, review, r->path[i]);
	}
	fputs("]}]}]", out);
}

/* What is wrong, what is missing, what to change: one text. */
static void put_message(FILE *out, const struct fay_rejection *r)
{
	const char *const parts[] = { r->what ? r->what : fay_rule_title(r->rule),
				      r->missing ? "\nmissing: " : NULL,
				      r->missing,
				      r->counterexample ? "\ncounterexample:\n" : NULL,
				      r->counterexample,
				      r->advice ? "\n" : NULL,
				      r->advice };
	char *text = NULL;
	size_t size = 0;
	FILE *all = open_memstream(&text, &size);

	for (size_t i = 0; all && i < sizeof(parts) / sizeof(parts[0]); i++)
		fputs(parts[i] ? parts[i] : "", all);
	if (all)
		fclose(all);
	put_text(out, ",\"message\":{\"text\":", text ? text : parts[0]);
	fputc('}', out);
	free(text);
}

static void put_result(FILE *out, const struct fay_review *review, uint32_t number)
{
	const struct fay_rejection *r = refusal_at(review->verdict, number);

	fprintf(out, "%s{\"ruleId\":\"%s\",\"ruleIndex\":%" PRIu32 ",\"level\":\"error\"",
		number ? "," : "", fay_rule_id(r->rule), rule_index(review->verdict, number));
	put_message(out, r);
	fputs(",\"locations\":[", out);
	put_location(out, review, r);
	fputc(']', out);
	put_flow(out, review, r);
	fprintf(out, ",\"properties\":{\"outcome\":\"%s\"}}", fay_outcome_name(r->outcome));
}

void fay_review_sarif(FILE *out, const struct fay_review *review)
{
	const struct fay_verdict *v = review->verdict;

	fputs("{\"$schema\":\"" SCHEMA "\",\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{"
	      "\"name\":\"fay verify\",",
	      out);
	put_rules(out, v);
	fputs("}},\"artifacts\":[{\"location\":{\"uri\":", out);
	put_uri(out, review->image);
	fputs("},\"roles\":[\"analysisTarget\"]", out);
	if (fay_review_hashed(v)) {
		fputs(",\"hashes\":{\"sha-256\":\"", out);
		print_hex(out, v->image_sha256, sizeof(v->image_sha256));
		fputs("\"}", out);
	}
	fprintf(out,
		"}],\"invocations\":[{\"executionSuccessful\":%s}],\"columnKind\":"
		"\"unicodeCodePoints\",\"results\":[",
		v->outcome == FAY_EXHAUSTED ? "false" : "true");
	for (uint32_t i = 0; i < refusal_count(v); i++)
		put_result(out, review, i);
	fputs("]}]}\n", out);
}
