/* SPDX-License-Identifier: MIT */
/*
 * The reviewer's page. It opens from a file, on any screen and on paper, without a script. It is
 * well-formed XML as well, so that a test can tell markup from text; and its policy (CSP) forbids
 * the browser to run one or to load anything, should a name of the image ever get through as
 * markup.
 */
#include <inttypes.h>
#include <string.h>

#include "fay/utf8.h"
#include "page.h"
#include "verifier/explain/report_names.h"

static const char style[] =
#include "style.inc" /* from style.css */
	;

/* ---- text ---- */

static void put_character(FILE *out, const unsigned char *c, size_t length)
{
	switch (*c) {
	case '<': fputs("&lt;", out); break;
	case '>': fputs("&gt;", out); break;
	case '&': fputs("&amp;", out); break;
	case '"': fputs("&quot;", out); break;
	case '\'': fputs("&#39;", out); break;
	default: fwrite(c, 1, length, out); break;
	}
}

/* out NULL: only counted. */
unsigned fay_page_text_short(FILE *out, const char *text, unsigned most)
{
	const unsigned char *c = (const unsigned char *)text, *end = c + strlen(text);
	unsigned columns = 0;

	while (c < end && columns < most) {
		size_t length = fay_utf8_printable(c, (size_t)(end - c));
		unsigned wide = length ? 1 : 4;
		bool last = columns + wide >= most && c + (length ? length : 1) < end;

		if (out && last)
			fputs("…", out);
		else if (out && length)
			put_character(out, c, length);
		else if (out)
			fprintf(out, "\\x%02x", *c);
		columns = last ? most : columns + wide;
		c += length ? length : 1;
	}
	return columns;
}

/* newlines: those are kept. */
static void put_text(FILE *out, const char *text, size_t size, bool newlines)
{
	const unsigned char *c = (const unsigned char *)text, *end = c + size;

	while (c < end) {
		size_t length = fay_utf8_printable(c, (size_t)(end - c));

		if (length)
			put_character(out, c, length);
		else if (*c == '\n' && newlines)
			fputc('\n', out);
		else
			fprintf(out, "\\x%02x", *c);
		c += length ? length : 1;
	}
}

void fay_page_text(FILE *out, const char *text)
{
	put_text(out, text, strlen(text), false);
}

static void put_pre(FILE *out, const char *text)
{
	fputs("<pre>", out);
	put_text(out, text, strlen(text), true);
	fputs("</pre>\n", out);
}

static void put_pair(FILE *out, const char *name, const char *text)
{
	fprintf(out, "<dt>%s</dt><dd>", name);
	fay_page_text(out, text);
	fputs("</dd>\n", out);
}

static void put_hash(FILE *out, const char *name, const uint8_t hash[32])
{
	fprintf(out, "<dt>%s</dt><dd>", name);
	print_hex(out, hash, 32);
	fputs("</dd>\n", out);
}

/* ---- the verdict ---- */

static bool is_policy(enum fay_rule rule)
{
	return !strncmp(fay_rule_id(rule), "POL-", 4);
}

/* What an outcome means for who has to decide. */
static const char *meaning(const struct fay_review *r)
{
	const struct fay_verdict *v = r->verdict;

	switch (v->outcome) {
	case FAY_ACCEPTED:
		return v->certified && r->certificate_size
			       ? "The certificate that it brings, whoever made it, was checked "
				 "against its bytes: this image keeps to its memory, its code and "
				 "its bounds."
			       : "It is proved, from its bytes alone, that this image keeps to its "
				 "memory, its code and its bounds.";
	case FAY_UNSAFE: return "It breaks a rule. Do not load it; the vendor has to change it.";
	case FAY_UNPROVED:
		return "It may be harmless, but a fact that shows it is missing. It is not loaded.";
	case FAY_UNSUPPORTED:
		if (is_policy(v->rejection.rule))
			return "It does more than the policy allows. Another policy may accept it.";
		return "It has an instruction or a construct that the verifier does not admit.";
	case FAY_MALFORMED: return "This is no probe image that could be read.";
	default:
		return "A limit of the verifier was reached before anything was decided. It is not "
		       "loaded.";
	}
}

static void put_count(FILE *out, uint64_t count, const char *what, const char *behind)
{
	fprintf(out, "%" PRIu64 " %s%s%s", count, what, count == 1 ? "" : "s", behind);
}

static void put_looked_at(FILE *out, const struct fay_verdict *v)
{
	if (!v->instructions) {
		fputs("none of its code: it was refused before", out);
		return;
	}
	put_count(out, v->instructions, "instruction", v->blocks ? ", " : "");
	if (!v->blocks) { /* by the checker, or before its code was read to the end */
		fputs(v->outcome == FAY_ACCEPTED ? ", by the checker" : ", then it was refused",
		      out);
		return;
	}
	put_count(out, v->blocks, "block", ", ");
	put_count(out, v->loops, "loop", "; ");
	put_count(out, v->obligations, "fact", " to be proved");
	if (v->outcome == FAY_ACCEPTED)
		fputs(", and all are", out);
}

static void put_verdict(FILE *out, const struct fay_review *r)
{
	const struct fay_verdict *v = r->verdict;
	bool accepted = v->outcome == FAY_ACCEPTED;

	fprintf(out, "<div class=\"verdict %s\"><b>%s</b> ", accepted ? "accepted" : "refused",
		accepted ? "Accepted" : "Refused");
	if (!accepted)
		fprintf(out, "(%s): %s: %s", fay_outcome_name(v->outcome),
			fay_rule_id(v->rejection.rule), fay_rule_title(v->rejection.rule));
	if (!accepted && v->other_count)
		fprintf(out, ", and %" PRIu32 " more", v->other_count);
	fprintf(out, "<br/>%s</div>\n<dl>\n", meaning(r));
	put_pair(out, "image", r->image);
	put_pair(out, "policy", r->policy ? r->policy : "the standard one");
	if (fay_review_hashed(v))
		put_hash(out, "sha256 of the file", v->image_sha256);
	if (accepted)
		put_hash(out, "sha256 of what runs", v->layout.sha256);
	if (r->certificate_size)
		put_hash(out, "sha256 of its certificate", r->certificate_sha256);
	put_pair(out, "certificate",
		 !r->certificate_size ? v->certified ? "it brings none; the checker accepted one "
						       "that was made of it"
						     : "it brings none"
		 : v->certified       ? "the checker accepted it; nothing was proved anew"
				      : "it brings one; everything was proved anew");
	fputs("<dt>looked at</dt><dd>", out);
	put_looked_at(out, v);
	fputs("</dd>\n</dl>\n", out);
}

/* ---- refusals ---- */

static void put_place(FILE *out, const struct fay_rejection *rejection)
{
	if (!rejection->function)
		return;
	fputs("<dt>place</dt><dd>", out);
	fay_page_text(out, rejection->function);
	fprintf(out, "+0x%" PRIx64 " (.text+0x%" PRIx64 ")", rejection->function_offset,
		rejection->text_offset);
	if (rejection->source_file) {
		fputs(", ", out);
		fay_page_text(out, rejection->source_file);
		fprintf(out, ":%" PRIu32, rejection->source_line);
		if (rejection->source_column)
			fprintf(out, ":%" PRIu32, rejection->source_column);
	}
	fputs("</dd>\n", out);
}

/* What every refusal has: rule, reason, place, what to change. */
static void put_refusal(FILE *out, const struct fay_rejection *rejection)
{
	fprintf(out, "<h3>%s: %s</h3>\n<dl>\n", fay_rule_id(rejection->rule),
		fay_rule_title(rejection->rule));
	if (rejection->what)
		put_pair(out, "reason", rejection->what);
	put_place(out, rejection);
	if (rejection->source_text)
		put_pair(out, "source", rejection->source_text);
	if (rejection->missing)
		put_pair(out, "missing", rejection->missing);
	if (rejection->advice)
		put_pair(out, "change here", rejection->advice);
	if (rejection->hint)
		put_pair(out, "what to change", rejection->hint);
	fputs("</dl>\n", out);
}

/* Each line is an item: a block of the path, what repeats told once. */
static void put_steps(FILE *out, const char *text)
{
	fputs("<p>The way there, step by step:</p>\n<ol>\n", out);
	for (const char *line = text; *line;) {
		size_t length = strcspn(line, "\n");

		fputs("<li><code>", out);
		put_text(out, line, length, false);
		fputs("</code></li>\n", out);
		line += length + (line[length] == '\n');
	}
	fputs("</ol>\n", out);
}

/* What the first refusal has beside. */
static void put_detail(FILE *out, const struct fay_rejection *rejection)
{
	if (rejection->disassembly)
		put_pre(out, rejection->disassembly);
	if (rejection->fact_count)
		fputs("<p>Known at this place:</p>\n<dl>\n", out);
	for (size_t i = 0; i < rejection->fact_count; i++)
		put_pair(out, rejection->facts[i].where, rejection->facts[i].value);
	if (rejection->fact_count)
		fputs("</dl>\n", out);
	if (rejection->counterexample) {
		fprintf(out, "<p>Counterexample%s:</p>\n",
			rejection->replayed
				? ", executed by the interpreter: with these inputs it breaks the "
				  "rule"
				: ", from the solver, not executed");
		put_pre(out, rejection->counterexample);
	}
	if (rejection->native_detail) {
		fprintf(out, "<p>Executed on this machine as well, in a process of its own: %s: ",
			native_name(rejection->native));
		fay_page_text(out, rejection->native_detail);
		fputs("</p>\n", out);
	}
	if (rejection->steps)
		put_steps(out, rejection->steps);
}

static void put_refusals(FILE *out, const struct fay_review *r)
{
	const struct fay_verdict *v = r->verdict;

	if (v->outcome == FAY_ACCEPTED)
		return;
	fprintf(out, "<h2 id=\"refused\">Why it is refused</h2>\n<p>%" PRIu32 " reason%s.</p>\n",
		v->other_count + 1, v->other_count ? "s" : "");
	fputs("<section class=\"refusal\">", out);
	put_refusal(out, &v->rejection);
	put_detail(out, &v->rejection);
	fputs("</section>\n", out);
	for (uint32_t i = 0; i < v->other_count; i++) {
		fputs("<section class=\"refusal\">", out);
		put_refusal(out, &v->others[i]);
		fputs("</section>\n", out);
	}
}

void fay_review_page(FILE *out, const struct fay_review *r)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	      "<link rel=\"icon\" href=\"data:,\"/>\n<title>",
	      out);
	fay_page_text(out, r->image);
	fprintf(out, ": %s</title>\n<style>\n%s</style></head>\n<body>\n<h1>Probe image ",
		r->verdict->outcome == FAY_ACCEPTED ? "accepted" : "refused", style);
	fay_page_text(out, r->image);
	fputs("</h1>\n", out);
	put_verdict(out, r);
	put_refusals(out, r);
	fay_page_capabilities(out, r);
	fay_page_code(out, r);
	fputs("<p class=\"note\">Made by <code>fay verify --html</code> " FAY_VERSION
	      "; <code>fay verify</code> with the same file and policy says it again, <code>fay "
	      "policy explain</code> what a policy allows. Rules are explained in docs/rules.md of "
	      "Fay for Linux.</p>\n</body></html>\n",
	      out);
}
