/* SPDX-License-Identifier: MIT */
/*
 * A verdict for other tools and machines: a statement of in-toto (v1) in an envelope of DSSE, which
 * `fay sign` signs. It says nothing of the machine, the user, the time or the file's name, so the
 * same image under the same policy gives the same bytes wherever this release verifies it.
 * docs/internals/review.md has the members.
 */
#include <stdlib.h>
#include <string.h>

#include "review.h"
#include "verifier/explain/report.h"

#define SHOWN 40 /* bytes of a difference */

static void put_hex(FILE *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", bytes[i]);
}

static void put_refusals(FILE *out, const struct fay_verdict *verdict)
{
	const struct fay_rejection *rejection = &verdict->rejection;

	fputs(",\"refusals\":[", out);
	for (uint32_t i = 0; verdict->outcome != FAY_ACCEPTED && i <= verdict->other_count; i++) {
		rejection = i ? &verdict->others[i - 1] : rejection;
		fprintf(out, "%s{\"rule\":\"%s\",\"function\":", i ? "," : "",
			fay_rule_id(rejection->rule));
		fay_report_string_json(out, rejection->function);
		fprintf(out, ",\"text_offset\":%llu,\"what\":",
			(unsigned long long)rejection->text_offset);
		fay_report_string_json(out, rejection->what);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_statement(FILE *out, const struct fay_review *review)
{
	const struct fay_verdict *verdict = review->verdict;

	fputs("{\"_type\":\"https://in-toto.io/Statement/v1\",\"subject\":[{\"digest\":{\"sha256\":"
	      "\"",
	      out);
	put_hex(out, verdict->image_sha256, sizeof(verdict->image_sha256));
	fputs("\"}}],\"predicateType\":\"" FAY_ATTESTED_TYPE
	      "\",\"predicate\":{\"verifier\":{\"name\":\"fay\",\"version\":\"" FAY_VERSION
	      "\"},\"policy\":",
	      out);
	if (review->policy) {
		fputs("{\"digest\":{\"sha256\":\"", out);
		put_hex(out, review->policy_sha256, sizeof(review->policy_sha256));
		fputs("\"}}", out);
	} else {
		fputs("null", out);
	}
	fprintf(out, ",\"kernel\":%s,\"outcome\":\"%s\",\"certified\":%s",
		review->kernel ? "true" : "false", fay_outcome_name(verdict->outcome),
		verdict->certified ? "true" : "false");
	fay_report_manifest_json(out, verdict);
	put_refusals(out, verdict);
	fputs("}}", out);
}

/* Base64 of RFC 4648. */
static void put_base64(FILE *out, const char *text, size_t size)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *bytes = (const uint8_t *)text;

	for (size_t i = 0; i < size; i += 3) {
		uint32_t group = (uint32_t)bytes[i] << 16;

		group |= i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0;
		group |= i + 2 < size ? bytes[i + 2] : 0;
		fputc(digits[group >> 18], out);
		fputc(digits[group >> 12 & 63], out);
		fputc(i + 1 < size ? digits[group >> 6 & 63] : '=', out);
		fputc(i + 2 < size ? digits[group & 63] : '=', out);
	}
}

void fay_review_attestation(FILE *out, const struct fay_review *review)
{
	char *text = NULL;
	size_t size = 0;
	FILE *statement = open_memstream(&text, &size);

	if (!statement)
		return;
	put_statement(statement, review);
	if (!fclose(statement)) {
		fputs(FAY_ATTESTED_HEAD, out);
		put_base64(out, text, size);
		fputs(FAY_ATTESTED_TAIL "]}\n", out);
	}
	free(text);
}

/* ---- the same, anew ---- */

static int value_of(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* The statement, as far as it is one, ended by a NUL; to be freed. */
static char *read_statement(const char *envelope, size_t size)
{
	char *text = calloc(1, size + 4);
	size_t at = sizeof(FAY_ATTESTED_HEAD) - 1, used = 0;

	for (; text && at + 4 <= size; at += 4) {
		uint32_t group = 0;

		for (size_t i = 0; i < 4; i++) {
			int value = value_of(envelope[at + i]);

			if (value < 0 && (i < 2 || envelope[at + i] != '='))
				return text;
			group = group << 6 | (value < 0 ? 0 : (uint32_t)value);
		}
		text[used++] = (char)(group >> 16);
		text[used++] = (char)(group >> 8);
		text[used++] = (char)group;
	}
	return text;
}

/* Where two statements part, with what stands there in each. */
static void tell_difference(FILE *out, const char *theirs, const char *ours)
{
	size_t at = 0, from;

	while (theirs[at] && theirs[at] == ours[at])
		at++;
	from = at < SHOWN / 2 ? 0 : at - SHOWN / 2;
	fprintf(out, "  attested: %s", from ? "..." : "");
	fay_report_text(out, "", strndupa(theirs + from, SHOWN), false);
	fprintf(out, "\n  here:     %s", from ? "..." : "");
	fay_report_text(out, "", strndupa(ours + from, SHOWN), false);
	fputc('\n', out);
}

bool fay_review_reproduces(FILE *out, const struct fay_review *review, const char *attested,
			   size_t size)
{
	char *own = NULL, *theirs, *ours;
	size_t own_size = 0, head;
	FILE *file = open_memstream(&own, &own_size);
	bool same;

	if (!file)
		return false;
	fay_review_attestation(file, review);
	if (fclose(file) || own_size < sizeof(FAY_ATTESTED_HEAD) + sizeof(FAY_ATTESTED_TAIL)) {
		free(own);
		return false;
	}
	head = own_size - (sizeof("]}\n") - 1); /* signatures are another matter */
	same = size >= head && !memcmp(own, attested, head);
	if (same) {
		fprintf(out, "reproduced: %s\n", fay_outcome_name(review->verdict->outcome));
	} else if (size < sizeof(FAY_ATTESTED_HEAD) - 1 ||
		   memcmp(attested, FAY_ATTESTED_HEAD, sizeof(FAY_ATTESTED_HEAD) - 1)) {
		fputs("not reproduced: that is no attestation of `fay verify --attest`\n", out);
	} else {
		theirs = read_statement(attested, size);
		ours = read_statement(own, own_size);
		fputs("not reproduced: the verdict here is another one\n", out);
		if (theirs && ours)
			tell_difference(out, theirs, ours);
		free(theirs);
		free(ours);
	}
	free(own);
	return same;
}
