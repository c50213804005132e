/* SPDX-License-Identifier: MIT */
/* A function's control flow as SVG: a box a block, with what holds when it begins. */
#include <inttypes.h>
#include <stdlib.h>

#include "drawing.h"
#include "page.h"

#define CHARACTER 6.7 /* px, of 11 px monospace */
#define LINE 15.0
#define PADDING 7.0
#define COLUMNS 46u /* of a fact; longer ones are cut, the listing has all of them */
#define FACTS 6u

static uint64_t offset(const struct fay_review *r, const struct fay_inspected_block *block)
{
	return fay_inspect_offset(r->in, block->start);
}

bool fay_page_on_path(const struct fay_review *r, const struct fay_inspected_block *block)
{
	const struct fay_rejection *rejection = &r->verdict->rejection;

	for (size_t i = 0; r->verdict->outcome != FAY_ACCEPTED && i < rejection->path_length &&
			   i < FAY_MAX_PATH_STEPS;
	     i++)
		if (rejection->path[i] == offset(r, block))
			return true;
	return false;
}

static bool is_at(const struct fay_review *r, const struct fay_rejection *rejection,
		  const struct fay_inspected_block *block)
{
	return rejection->function && rejection->text_offset >= offset(r, block) &&
	       rejection->text_offset < offset(r, block) + (block->end - block->start);
}

bool fay_page_is_refused(const struct fay_review *r, const struct fay_inspected_block *block)
{
	bool found = r->verdict->outcome != FAY_ACCEPTED && is_at(r, &r->verdict->rejection, block);

	for (uint32_t i = 0; !found && i < r->verdict->other_count; i++)
		found = is_at(r, &r->verdict->others[i], block);
	return found;
}

/* What stands in the first two lines of a box. */
static void headings(const struct fay_review *r, uint32_t number, char place[64], char cost[96])
{
	const struct fay_inspected_block *block = &r->in->blocks[number];
	uint32_t count = r->in->run->cfg.blocks[number].count;
	int length;

	snprintf(place, 64, ".text+0x%" PRIx64, offset(r, block));
	length = snprintf(cost, 96, "%" PRIu32 " instruction%s", count, count == 1 ? "" : "s");
	if (block->head)
		snprintf(cost + length, 96 - (size_t)length, ", loop of at most %" PRIu64,
			 block->bound);
	else if (block->known && block->runs != UINT64_MAX && block->runs != 1)
		snprintf(cost + length, 96 - (size_t)length, ", at most %" PRIu64 " runs",
			 block->runs);
}

static unsigned characters(const char *text)
{
	FILE *nowhere = NULL;

	return fay_page_text_short(nowhere, text, COLUMNS);
}

static unsigned fact_columns(const struct fay_fact *fact)
{
	unsigned columns = characters(fact->where) + 2 + characters(fact->value);

	return columns < COLUMNS ? columns : COLUMNS;
}

static uint32_t facts_of(const struct fay_inspected_block *block)
{
	return !block->facts ? 0 : block->facts->count < FACTS ? block->facts->count : FACTS;
}

static void measure(const struct fay_review *r, uint32_t number, struct fay_drawing_box *box)
{
	const struct fay_inspected_block *block = &r->in->blocks[number];
	uint32_t facts = facts_of(block);
	char place[64], cost[96];
	unsigned columns;

	headings(r, number, place, cost);
	columns = characters(place) > characters(cost) ? characters(place) : characters(cost);
	for (uint32_t i = 0; i < facts; i++) {
		unsigned more = fact_columns(&block->facts->at[i]);

		columns = more > columns ? more : columns;
	}
	box->width = columns * CHARACTER + 2 * PADDING;
	box->height = (2 + facts) * LINE + 2 * PADDING;
}

static void put_line(FILE *out, const struct fay_drawing_box *box, unsigned line, const char *class)
{
	fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, box->x + PADDING,
		box->y + PADDING + LINE * line + 11);
}

static void put_box(FILE *out, const struct fay_review *r, uint32_t number, bool first,
		    const struct fay_drawing_box *box)
{
	const struct fay_inspected_block *block = &r->in->blocks[number];
	const char *class = fay_page_is_refused(r, block) ? "refused"
			    : fay_page_on_path(r, block)  ? "path"
			    : first                       ? "first"
							  : "plain";
	char place[64], cost[96];

	headings(r, number, place, cost);
	fprintf(out,
		"<a href=\"#b%" PRIx64 "\"><rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" "
		"width=\"%.1f\" height=\"%.1f\" rx=\"4\"/>",
		offset(r, block), class, box->x, box->y, box->width, box->height);
	put_line(out, box, 0, "place");
	fprintf(out, "%s</text>", place);
	put_line(out, box, 1, "cost");
	fprintf(out, "%s</text></a>\n", cost);
	for (uint32_t i = 0; i < facts_of(block); i++) {
		const struct fay_fact *fact = &block->facts->at[i];
		unsigned columns;

		put_line(out, box, 2 + i, "fact");
		columns = fay_page_text_short(out, fact->where, COLUMNS);
		fputs(": ", out);
		if (columns + 2 < COLUMNS)
			fay_page_text_short(out, fact->value, COLUMNS - columns - 2);
		fputs("</text>\n", out);
	}
}

/* Down: smooth through its points. Up: at right angles, along its lane. */
static void put_arrow(FILE *out, uint32_t number, const struct fay_drawing *d,
		      const struct fay_drawing_arrow *arrow)
{
	const struct fay_drawing_point *p = &d->points[arrow->first];
	const struct fay_drawing_point *end = &p[arrow->count - 1];

	fprintf(out, "<path class=\"%s\" marker-end=\"url(#tip%" PRIu32 ")\" d=\"M%.1f %.1f",
		arrow->back ? "back" : "arrow", number, p->x, p->y);
	if (arrow->back) {
		double low = end[-1].y + FAY_DRAWING_LAYER_GAP / 3,
		       high = end->y - FAY_DRAWING_LAYER_GAP / 3;

		fprintf(out, "V%.1fH%.1fV%.1fH%.1fV%.1f", low, arrow->lane, high, end->x,
			end->y - 2);
	}
	for (uint32_t i = 1; !arrow->back && i < arrow->count; i++) {
		double middle = (p[i - 1].y + p[i].y) / 2, tip = i + 1 == arrow->count ? 2 : 0;

		fprintf(out, "C%.1f %.1f %.1f %.1f %.1f %.1f", p[i - 1].x, middle, p[i].x, middle,
			p[i].x, p[i].y - tip);
	}
	fputs("\"/>\n", out);
}

/* Arrows that stay within the function. False: no memory. */
static bool collect(const struct fay_review *r, const struct fay_inspected_function *f,
		    struct fay_drawing *d)
{
	size_t room = 0;

	d->box_count = f->last - f->first;
	for (uint32_t block = f->first; block < f->last; block++)
		room += fay_inspect_successors(r->in, block);
	d->boxes = calloc(d->box_count + 1, sizeof(*d->boxes));
	d->arrows = calloc(room + 1, sizeof(*d->arrows));
	if (!d->boxes || !d->arrows)
		return false;
	for (uint32_t block = f->first; block < f->last; block++) {
		measure(r, block, &d->boxes[block - f->first]);
		for (uint32_t k = 0; k < fay_inspect_successors(r->in, block); k++) {
			uint32_t to = fay_inspect_successor(r->in, block, k);

			if (to >= f->first && to < f->last) /* FAY_NONE is neither */
				d->arrows[d->arrow_count++] =
					(struct fay_drawing_arrow){ .from = block - f->first,
								    .to = to - f->first };
		}
	}
	return true;
}

void fay_page_graph(FILE *out, const struct fay_review *r, uint32_t number)
{
	const struct fay_inspected_function *f = &r->in->functions[number];
	struct fay_drawing d = { 0 };

	if (f->last - f->first > FAY_DRAWING_BOXES || !collect(r, f, &d) ||
	    !fay_drawing_lay_out(&d)) {
		fputs("<p class=\"note\">The control flow is too large to be drawn; the code "
		      "below has it.</p>\n",
		      out);
	} else {
		fprintf(out,
			"<div class=\"wide\"><svg role=\"img\" aria-label=\"control flow\" "
			"width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
			d.width, d.height, d.width, d.height);
		fprintf(out,
			"<defs><marker id=\"tip%" PRIu32 "\" viewBox=\"0 0 8 8\" refX=\"7\" "
			"refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path "
			"class=\"tip\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n",
			number);
		for (uint32_t k = 0; k < d.arrow_count; k++)
			put_arrow(out, number, &d, &d.arrows[k]);
		for (uint32_t i = 0; i < d.box_count; i++)
			put_box(out, r, f->first + i, i == 0, &d.boxes[i]);
		fputs("</svg></div>\n", out);
	}
	free(d.boxes);
	free(d.arrows);
	free(d.points);
}
