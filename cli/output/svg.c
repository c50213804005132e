/* SPDX-License-Identifier: MIT */
/* The same as one picture, for documents: text in columns, behind it bars or a heat map, below it
 * the histogram of a single row. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define LETTER 7.3 /* of a monospaced font of 12 px; some are a little wider or narrower */
#define LINE 18
#define MARGIN 12
#define PICTURE 400 /* width of bars and maps */

struct drawing {
	FILE *out; /* what is drawn so far */
	unsigned line, widest;
};

static void put_text(struct drawing *d, unsigned column, const char *text, bool right)
{
	fprintf(d->out, "<text x=\"%.1f\" y=\"%u\"%s>", MARGIN + column * LETTER,
		MARGIN + d->line * LINE + 13, right ? " text-anchor=\"end\"" : "");
	fay_write_html(d->out, text);
	fputs("</text>\n", d->out);
}

static void put_rect(struct drawing *d, double x, double width, const char *kind)
{
	fprintf(d->out, "<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" class=\"%s\"/>\n",
		x, MARGIN + d->line * LINE + 2, width, LINE - 3, kind);
}

static void widen(struct drawing *d, double width)
{
	d->widest = width > d->widest ? (unsigned)width + 1 : d->widest;
}

static void measure(const struct page_section *section, unsigned *widths)
{
	for (uint32_t c = 0; c < section->columns; c++)
		widths[c] = fay_output_columns(section->names[c]);
	for (size_t r = 0; r < section->count; r++)
		for (uint32_t c = 0; c < section->columns; c++) {
			const char *cell = section->rows[r].cells[c];
			unsigned width = cell ? fay_output_columns(cell) : 0;
			widths[c] = width > widths[c] ? width : widths[c];
		}
}

/* Returns the column behind the last cell. */
static unsigned put_cells(struct drawing *d, const struct page_section *section, char *const *cells,
			  const unsigned *widths)
{
	unsigned at = 0;
	for (uint32_t c = 0; c < section->columns; c++) {
		bool right = section->numeric[c];
		put_text(d, at + (right ? widths[c] : 0), cells[c] ? cells[c] : "", right);
		at += widths[c] + 2;
	}
	return at;
}

static void put_map(struct drawing *d, const struct page_section *section,
		    const struct page_row *row, double x)
{
	const struct fay_heat *heat = &section->heat;
	double width = (double)PICTURE / (double)(heat->end - heat->first);
	for (size_t i = heat->first; i < heat->end; i++) {
		unsigned level = fay_page_level(row, heat, i);
		char kind[16];
		snprintf(kind, sizeof(kind), "l%u", level);
		if (level)
			put_rect(d, x + (double)(i - heat->first) * width, width, kind);
	}
}

static void put_bar(struct drawing *d, double x, uint64_t value, uint64_t largest)
{
	if (largest)
		put_rect(d, x, PICTURE * (double)value / (double)largest, "bar");
}

static void put_histogram(struct drawing *d, const struct page_section *section)
{
	const uint64_t *buckets = section->rows[0].buckets;
	uint64_t largest = 0;
	unsigned label = 0;
	for (size_t i = section->heat.first; buckets && i < section->heat.end; i++) {
		unsigned width = fay_output_columns(section->labels[i]);
		largest = buckets[i] > largest ? buckets[i] : largest;
		label = width > label ? width : label;
	}
	for (size_t i = section->heat.first; buckets && i < section->heat.end; i++, d->line++) {
		char count[24];
		snprintf(count, sizeof(count), "%" PRIu64, buckets[i]);
		put_text(d, label, section->labels[i], true);
		put_text(d, label + 14, count, true);
		put_bar(d, MARGIN + (label + 16) * LETTER, buckets[i], largest);
	}
	widen(d, MARGIN + (label + 16) * LETTER + PICTURE);
}

static void put_section(struct drawing *d, const struct page_section *section, unsigned *widths)
{
	bool map = fay_page_is_map(section);
	measure(section, widths);
	if (section->title) {
		put_text(d, 0, section->title, false);
		d->line++;
	}
	unsigned end = put_cells(d, section, section->names, widths);
	double x = MARGIN + end * LETTER;
	if (map) {
		char low[64], high[64];
		fay_page_ends(section, low, high);
		put_text(d, end, low, false);
		put_text(d, end + (unsigned)(PICTURE / LETTER), high, true);
	} else if (section->bars >= 0) {
		put_text(d, end, section->names[section->bars], false);
	}
	d->line++;
	for (size_t r = 0; r < section->count; r++, d->line++) {
		put_cells(d, section, section->rows[r].cells, widths);
		if (map)
			put_map(d, section, &section->rows[r], x);
		else if (section->bars >= 0)
			put_bar(d, x, section->rows[r].bar, section->largest);
	}
	widen(d, x + (map || section->bars >= 0 ? PICTURE : 0));
	if (section->histogram >= 0 && !map && section->count)
		put_histogram(d, section);
	if (!section->count || section->left_out) {
		char text[64] = "no event matched";
		if (section->left_out)
			snprintf(text, sizeof(text), "%zu more rows are not shown",
				 section->left_out);
		put_text(d, 0, text, false);
		d->line++;
	}
	d->line++;
}

static void put_query(struct drawing *d, const char *query)
{
	while (*query) {
		size_t length = strcspn(query, "\n");
		char *line = strndup(query, length);
		if (line)
			put_text(d, 0, line, false);
		widen(d, MARGIN + (line ? fay_output_columns(line) : 0) * LETTER);
		free(line);
		d->line++;
		query += length + (query[length] == '\n');
	}
	d->line++;
}

static void write_svg(FILE *out, const struct drawing *d, const char *body)
{
	unsigned width = d->widest + MARGIN, height = 2 * MARGIN + d->line * LINE;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\">\n<style>\n"
		"svg { background: #fff; } text { font: 12px monospace; fill: #1a1c1f; } .bar { "
		"fill: #3b74c4; }\n",
		width, height, width, height);
	for (unsigned level = 1; level <= PAGE_LEVELS; level++)
		fprintf(out, ".l%u { fill: hsl(215 70%% %u%%); }\n", level, 92 - 8 * level);
	fputs("@media (prefers-color-scheme: dark) { svg { background: #15171a; } text { fill: "
	      "#e4e7eb; } .bar { fill: #6ea0e6; }\n",
	      out);
	for (unsigned level = 1; level <= PAGE_LEVELS; level++)
		fprintf(out, ".l%u { fill: hsl(215 70%% %u%%); }\n", level, 20 + 7 * level);
	fputs("}\n</style>\n", out);
	fputs(body, out);
	fputs("</svg>\n", out);
}

void fay_page_svg(FILE *out, const struct fay_page *page, const char *query)
{
	char *body = NULL;
	size_t size;
	uint32_t columns = 0;
	for (size_t i = 0; i < page->count; i++)
		columns = page->sections[i].columns > columns ? page->sections[i].columns : columns;
	unsigned *widths = calloc(columns + 1, sizeof(*widths));
	struct drawing d = { .out = open_memstream(&body, &size) };
	if (!d.out || !widths) {
		fputs("fay: out of memory for the picture\n", stderr);
		if (d.out)
			fclose(d.out);
		free(body);
		free(widths);
		return;
	}
	put_query(&d, query);
	for (size_t i = 0; i < page->count; i++)
		put_section(&d, &page->sections[i], widths);
	if (!page->count)
		put_text(&d, 0, "no event matched", false);
	if (!fclose(d.out))
		write_svg(out, &d, body);
	free(body);
	free(widths);
}
