/* SPDX-License-Identifier: MIT */
/* Functions on the page: what each calls, its control flow, its code with the source's lines. */
#include <inttypes.h>
#include <stdlib.h>

#include "page.h"
#include "verifier/explain/report_names.h"

#define OPEN 2000u /* instructions: of larger images the listings are folded */

static void put_separator(FILE *out, bool *first)
{
	fputs(*first ? "" : ", ", out);
	*first = false;
}

static void put_calls(FILE *out, const struct fay_review *r, uint32_t number)
{
	struct fay_inspected_calls calls;
	bool first = true;

	if (fay_inspect_calls(r->in, number, &calls)) {
		fputs("; calls ", out);
		for (uint32_t i = 0; i < calls.count; i++) {
			put_separator(out, &first);
			fputs("<code>", out);
			fay_page_text(out, r->in->functions[calls.functions[i]].name);
			fputs("</code>", out);
		}
		for (unsigned i = 0; i < FAY_HELPER_COUNT; i++) {
			if (!(calls.helpers >> i & 1))
				continue;
			put_separator(out, &first);
			fputs(helper_name(i), out);
		}
		if (calls.by_register) {
			put_separator(out, &first);
			fputs("a helper by a register", out);
		}
		if (first)
			fputs("nothing", out);
	}
	free(calls.functions);
}

static bool is_refused_at(const struct fay_review *r, uint64_t offset)
{
	const struct fay_verdict *v = r->verdict;
	bool found = v->outcome != FAY_ACCEPTED && v->rejection.function &&
		     v->rejection.text_offset == offset;

	for (uint32_t i = 0; !found && i < v->other_count; i++)
		found = v->others[i].function && v->others[i].text_offset == offset;
	return found;
}

/* The instructions from `start` to `end`, *left at most in all. */
static void put_lines(FILE *out, const struct fay_review *r, uint64_t start, uint64_t end,
		      uint32_t *left)
{
	const struct fay_image_line *last = NULL;
	struct fay_inspected_line line;
	unsigned length;

	for (uint64_t at = start; at < end && *left; at += length, --*left) {
		uint64_t offset = fay_inspect_offset(r->in, at);

		length = fay_inspect_line(r->in, at, false, &line);
		if (line.source && line.source != last) {
			fputs("<tr class=\"source\"><td></td><td>", out);
			fay_page_text(out, r->in->run->image.line_files[line.source->file]);
			fprintf(out, ":%" PRIu32 "</td></tr>\n", line.source->line);
		}
		last = line.source;
		fprintf(out, "<tr%s><td>%" PRIx64 "</td><td>",
			is_refused_at(r, offset) ? " class=\"refused\"" : "", offset);
		fay_page_text(out, line.text);
		if (*line.note) {
			fputs("<span class=\"note\"> # ", out);
			fay_page_text(out, line.note);
			fputs("</span>", out);
		}
		fputs("</td></tr>\n", out);
	}
}

static void put_block(FILE *out, const struct fay_review *r, uint32_t number, uint32_t *left)
{
	const struct fay_inspected_block *block = &r->in->blocks[number];
	uint64_t offset = fay_inspect_offset(r->in, block->start);

	fprintf(out,
		"<tbody id=\"b%" PRIx64 "\"><tr class=\"block\"><td></td><td>"
		".text+0x%" PRIx64,
		offset, offset);
	if (block->known && block->runs == UINT64_MAX)
		fputs(", more runs a call than can be counted", out);
	else if (block->known)
		fprintf(out, ", at most %" PRIu64 " run%s a call", block->runs,
			block->runs == 1 ? "" : "s");
	if (block->head)
		fprintf(out, ", a loop of at most %" PRIu64 " rounds", block->bound);
	fputs("</td></tr>\n", out);
	for (uint32_t i = 0; block->facts && i < block->facts->count; i++) {
		fputs("<tr class=\"fact\"><td></td><td>", out);
		fay_page_text(out, block->facts->at[i].where);
		fputs(": ", out);
		fay_page_text(out, block->facts->at[i].value);
		fputs("</td></tr>\n", out);
	}
	put_lines(out, r, block->start, block->end, left);
	fputs("</tbody>\n", out);
}

static void put_function(FILE *out, const struct fay_review *r, uint32_t number, uint32_t *left)
{
	const struct fay_inspected_function *f = &r->in->functions[number];
	bool reached = f->first != f->last,
	     folded = f->end - f->start > OPEN * 4 || r->in->run->cfg.insn_count > OPEN;

	fputs("<section class=\"function\"><h3>", out);
	fay_page_text(out, f->name);
	fprintf(out, "</h3><p class=\"note\">at .text+0x%" PRIx64 ", %" PRIu64 " byte%s",
		fay_inspect_offset(r->in, f->start), f->end - f->start,
		f->end - f->start == 1 ? "" : "s");
	if (reached)
		put_calls(out, r, number);
	else if (r->in->block_count)
		fputs("; no probe reaches it", out);
	fputs("</p>\n", out);
	if (reached)
		fay_page_graph(out, r, number);
	fprintf(out,
		"<details%s><summary>code</summary><div class=\"wide\"><table class=\"code\">\n",
		folded ? "" : " open=\"open\"");
	for (uint32_t block = f->first; block < f->last && *left; block++)
		put_block(out, r, block, left);
	if (!reached) {
		fputs("<tbody>", out);
		put_lines(out, r, f->start, f->end, left);
		fputs("</tbody>\n", out);
	}
	fputs("</table></div></details></section>\n", out);
}

void fay_page_code(FILE *out, const struct fay_review *r)
{
	uint32_t left = FAY_PAGE_INSTRUCTIONS, i;

	if (!r->in || !fay_inspect_has_code(r->in))
		return;
	fputs("<h2 id=\"code\">Code</h2>\n<p>A box is a piece of code without a branch, with what "
	      "is known whenever it begins; a dark border is where the function does. Dashed "
	      "arrows "
	      "go back: loops.",
	      out);
	if (r->verdict->outcome != FAY_ACCEPTED)
		fputs(" Red is where it is refused, yellow the way there.", out);
	fputs(" Unless something else is said, rdi points to the event (event), rsi to the "
	      "thread's "
	      "state (local), rdx to the shared state (global). Places and targets of jumps count "
	      "from the start of the code, in hexadecimal.</p>\n",
	      out);
	if (r->in->run->image.text.size > FAY_PAGE_INSTRUCTIONS)
		fprintf(out,
			"<p class=\"note\">No more than %u instructions are listed here; <code>fay "
			"inspect</code> lists all.</p>\n",
			FAY_PAGE_INSTRUCTIONS);
	for (i = 0; i < r->in->function_count && left; i++)
		put_function(out, r, i, &left);
}
