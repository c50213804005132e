/* SPDX-License-Identifier: MIT */
/*
 * Results as a page that needs no other file and has no script: tables with bars, histograms, heat
 * maps, for desktop and phone, light and dark. A result of stacks is a flame graph (flame.c).
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"

#define ROWS_MAX 10000u
#define PAGE_CELL 512

static const char begin[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
	"'unsafe-inline'\"/>\n<title>Fay</title>\n<style>\n"
	":root { color-scheme: light dark; --ground: #fff; --text: #1a1c1f; --soft: #5b636e; "
	"--line: #d3d8de; --bar: #3b74c4; --hue: 215; --from: 92%; --step: -8%; }\n"
	"@media (prefers-color-scheme: dark) { :root { --ground: #15171a; --text: #e4e7eb; --soft: "
	"#9aa4b0; --line: #3a4048; --bar: #6ea0e6; --from: 20%; --step: 7%; } }\n"
	"* { box-sizing: border-box; }\n"
	"body { margin: 0 auto; padding: 1rem; max-width: 80rem; background: var(--ground); color: "
	"var(--text); font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }\n"
	"h1 { font-size: 1.1rem; }\n"
	"pre { font-size: .8125rem; white-space: pre-wrap; color: var(--soft); }\n"
	"table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }\n"
	"th, td { padding: .1rem .5rem; border-bottom: 1px solid var(--line); text-align: left; "
	"vertical-align: top; }\n"
	"th { font-weight: 600; } .n { text-align: right; white-space: nowrap; }\n"
	".p { width: 45%; min-width: 6rem; }\n"
	".p i { display: block; min-width: 1px; height: 1rem; margin: .25rem 0; background: "
	"var(--bar); }\n"
	".p svg { display: block; width: 100%; height: 1.5rem; }\n"
	".p b { display: flex; justify-content: space-between; font-weight: 400; color: "
	"var(--soft); }\n"
	"p { color: var(--soft); font-size: .8125rem; }\n"
	".map td { border-bottom: 0; padding-top: 0; padding-bottom: 0; }\n"
	"@media (max-width: 600px) { body { padding: .5rem; } th, td { padding: .1rem .25rem; } "
	".n { white-space: normal; } }\n";

/* --- what is collected --- */

static bool fill_labels(const struct fay_writer *writer, const struct fay_view *view,
			struct page_section *section, const struct fay_value *value)
{
	size_t count = value->histogram.count;
	if (section->labels)
		return true;
	section->labels = calloc(count + 1, sizeof(*section->labels));
	for (size_t i = 0; section->labels && i < count; i++)
		fay_output_bucket_label(writer, &view->columns[section->histogram], i, count,
					section->labels[i]);
	return section->labels != NULL;
}

/* `result`: NULL: its rows come one by one. */
static struct page_section *add_section(struct fay_page *page, const struct fay_view *view,
					const struct fay_result *result)
{
	struct page_section *grown = realloc(page->sections, (page->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	page->sections = grown;
	struct page_section *section = &grown[page->count++];
	const struct fay_view_column *histogram = fay_output_heat_column(view);
	*section = (struct page_section){
		.title = view->title ? strdup(view->title) : NULL,
		.names = calloc(view->column_count + 1, sizeof(char *)),
		.numeric = calloc(view->column_count + 1, sizeof(bool)),
		.bars = fay_output_bar_column(view),
		.histogram = histogram ? (int)(histogram - view->columns) : -1,
	};
	if (!section->names || !section->numeric)
		return NULL;
	for (; section->columns < view->column_count; section->columns++) {
		const struct fay_view_column *column = &view->columns[section->columns];
		section->numeric[section->columns] = fay_output_is_numeric(column);
		section->names[section->columns] = strdup(column->name);
		if (!section->names[section->columns])
			return NULL;
	}
	return section;
}

static bool take_buckets(const struct fay_writer *writer, const struct fay_view *view,
			 struct page_section *section, struct page_row *row, const uint8_t *bytes)
{
	struct fay_value value;
	const struct fay_view_column *column = &view->columns[section->histogram];
	if (!fay_value_decode(column->column, bytes, &value))
		return true;
	row->buckets = calloc(value.histogram.count + 1, sizeof(*row->buckets));
	if (!row->buckets || !fill_labels(writer, view, section, &value))
		return false;
	memcpy(row->buckets, value.histogram.buckets,
	       value.histogram.count * sizeof(*row->buckets));
	fay_output_heat_widen(&section->heat, column, bytes);
	return true;
}

static bool add_row(const struct fay_writer *page, const struct fay_view *view,
		    struct page_section *section, const uint8_t *bytes)
{
	struct fay_writer writer = *page;
	struct page_row row = { .cells = calloc(section->columns + 1, sizeof(char *)) };
	writer.format = FAY_FORMAT_TABLE; /* names and units for people */
	if (section->count == section->room) {
		size_t room = section->room ? 2 * section->room : 64;
		struct page_row *grown = realloc(section->rows, room * sizeof(*grown));
		section->rows = grown ? grown : section->rows;
		section->room = grown ? room : section->room;
	}
	if (!row.cells || section->count == section->room) {
		free(row.cells);
		return false;
	}
	bool fine = true;
	for (uint32_t c = 0; c < section->columns; c++) {
		char text[PAGE_CELL];
		fay_output_format_value(&writer, &view->columns[c], bytes, text, sizeof(text));
		row.cells[c] = strdup(text);
		fine &= row.cells[c] != NULL;
	}
	if (section->bars >= 0)
		row.bar = fay_output_bar_value(view, section->bars, bytes);
	section->largest = row.bar > section->largest ? row.bar : section->largest;
	fine = (section->histogram < 0 || take_buckets(&writer, view, section, &row, bytes)) &&
	       fine;
	section->rows[section->count++] = row;
	return fine;
}

static struct fay_page *page_of(struct fay_writer *writer)
{
	if (!writer->page)
		writer->page = calloc(1, sizeof(*writer->page));
	return writer->page;
}

static void take(struct fay_writer *writer, const struct fay_view *view,
		 struct page_section *section, const uint8_t *row)
{
	if (section && section->count >= ROWS_MAX)
		section->left_out++;
	else if (!section || !add_row(writer, view, section, row))
		writer->page->failed = true;
}

void fay_output_page(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final)
{
	if (!final || !page_of(writer))
		return;
	struct page_section *section = add_section(writer->page, view, result);
	writer->page->failed |= !section;
	for (size_t r = 0; r < result->row_count; r++)
		take(writer, view, section, result->rows + r * result->row_size);
}

void fay_output_page_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	struct page_section *section = NULL;
	if (!page_of(writer))
		return;
	for (size_t i = 0; i < writer->page->count && !section; i++)
		if (writer->page->sections[i].of == view)
			section = &writer->page->sections[i];
	section = section ? section : add_section(writer->page, view, NULL);
	if (section) {
		section->of = view;
		section->map = section->histogram >= 0;
	}
	take(writer, view, section, row);
}

static void free_page(struct fay_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		struct page_section *section = &page->sections[i];
		for (size_t r = 0; r < section->count; r++) {
			for (uint32_t c = 0; c < section->columns; c++)
				free(section->rows[r].cells[c]);
			free(section->rows[r].cells);
			free(section->rows[r].buckets);
		}
		for (uint32_t c = 0; section->names && c < section->columns; c++)
			free(section->names[c]);
		free(section->names);
		free(section->numeric);
		free(section->title);
		free(section->labels);
		free(section->rows);
	}
	free(page->sections);
	free(page);
}

/* --- how it is drawn --- */

unsigned fay_page_level(const struct page_row *row, const struct fay_heat *heat, size_t bucket)
{
	uint64_t total = 0;
	if (!row->buckets || !row->buckets[bucket])
		return 0;
	for (size_t i = heat->first; i < heat->end; i++)
		total += row->buckets[i];
	return 1 +
	       (unsigned)(sqrt((double)row->buckets[bucket] / (double)total) * (PAGE_LEVELS - 1));
}

bool fay_page_is_map(const struct page_section *section)
{
	return section->histogram >= 0 && section->heat.end && (section->map || section->count > 1);
}

void fay_page_ends(const struct page_section *section, char low[64], char high[64])
{
	snprintf(low, 64, "%s", section->labels[section->heat.first]);
	snprintf(high, 64, "%s", section->labels[section->heat.end - 1]);
	char *dots = strstr(low, ".."), *unit = strchr(low, ' '), *last = strstr(high, "..");
	if (dots && dots != low)
		memmove(dots, unit ? unit : "", unit ? strlen(unit) + 1 : 1);
	if (last && last[2])
		memmove(high, last + 2, strlen(last + 2) + 1);
}

static void write_map(FILE *out, const struct page_section *section, const struct page_row *row)
{
	const struct fay_heat *heat = &section->heat;
	fprintf(out, "<td class=\"p\"><svg viewBox=\"%zu 0 %zu 1\" preserveAspectRatio=\"none\">",
		heat->first, heat->end - heat->first);
	for (size_t i = heat->first; i < heat->end; i++) {
		unsigned level = fay_page_level(row, heat, i);
		if (!level)
			continue;
		fprintf(out,
			"<rect x=\"%zu\" width=\"1\" height=\"1\" class=\"l%u\"><title>%s: %" PRIu64
			"</title></rect>",
			i, level, section->labels[i], row->buckets[i]);
	}
	fputs("</svg></td>", out);
}

static void write_bar(FILE *out, uint64_t value, uint64_t largest)
{
	fprintf(out, "<td class=\"p\"><i style=\"width: %.2f%%\"></i></td>",
		largest ? 100.0 * (double)value / (double)largest : 0);
}

static void write_histogram(FILE *out, const struct page_section *section,
			    const struct page_row *row)
{
	uint64_t largest = 0;
	for (size_t i = section->heat.first; row->buckets && i < section->heat.end; i++)
		largest = row->buckets[i] > largest ? row->buckets[i] : largest;
	fputs("<table><tr><th class=\"n\">", out);
	fay_write_html(out, section->names[section->histogram]);
	fprintf(out, "</th><th class=\"n\">%s</th><th class=\"p\"></th></tr>\n",
		row->cells[section->histogram] ? row->cells[section->histogram] : "");
	for (size_t i = section->heat.first; row->buckets && i < section->heat.end; i++) {
		fprintf(out, "<tr><td class=\"n\">%s</td><td class=\"n\">%" PRIu64 "</td>",
			section->labels[i], row->buckets[i]);
		write_bar(out, row->buckets[i], largest);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
}

static void write_table(FILE *out, const struct page_section *section)
{
	bool map = fay_page_is_map(section), bars = !map && section->bars >= 0;
	fprintf(out, "<table%s><tr>", map ? " class=\"map\"" : "");
	for (uint32_t c = 0; c < section->columns; c++) {
		fputs(section->numeric[c] ? "<th class=\"n\">" : "<th>", out);
		fay_write_html(out, section->names[c]);
		fputs("</th>", out);
	}
	if (map) {
		char low[64], high[64];
		fay_page_ends(section, low, high);
		fprintf(out, "<th class=\"p\"><b><span>%s</span><span>%s</span></b></th>", low,
			high);
	} else if (bars) {
		fputs("<th class=\"p\">", out);
		fay_write_html(out, section->names[section->bars]);
		fputs("</th>", out);
	}
	fputs("</tr>\n", out);
	for (size_t r = 0; r < section->count; r++) {
		const struct page_row *row = &section->rows[r];
		fputs("<tr>", out);
		for (uint32_t c = 0; c < section->columns; c++) {
			fputs(section->numeric[c] ? "<td class=\"n\">" : "<td>", out);
			fay_write_html(out, row->cells[c] ? row->cells[c] : "");
			fputs("</td>", out);
		}
		if (map)
			write_map(out, section, row);
		else if (bars)
			write_bar(out, row->bar, section->largest);
		fputs("</tr>\n", out);
	}
	fputs("</table>\n", out);
	if (map)
		fputs("<p>The stronger the colour, the more of the row's values are there.</p>\n",
		      out);
}

static void write_section(FILE *out, const struct page_section *section)
{
	if (section->title) {
		fputs("<h2>", out);
		fay_write_html(out, section->title);
		fputs("</h2>\n", out);
	}
	if (!section->count) {
		fputs("<p>No event matched.</p>\n", out);
		return;
	}
	if (section->columns > 1 || section->histogram < 0 || fay_page_is_map(section))
		write_table(out, section);
	if (section->histogram >= 0 && !fay_page_is_map(section))
		write_histogram(out, section, &section->rows[0]);
	if (section->left_out)
		fprintf(out, "<p>%zu more rows are not shown.</p>\n", section->left_out);
}

static void write_page(FILE *out, const struct fay_page *page, const char *query)
{
	fputs(begin, out);
	for (unsigned level = 1; level <= PAGE_LEVELS; level++)
		fprintf(out,
			".l%u { fill: hsl(var(--hue) 70%% calc(var(--from) + %u * "
			"var(--step))); }\n",
			level, level);
	fputs("</style></head><body>\n<h1>Fay</h1>\n<pre>", out);
	fay_write_html(out, query);
	fputs("</pre>\n", out);
	for (size_t i = 0; i < page->count; i++)
		write_section(out, &page->sections[i]);
	if (!page->count)
		fputs("<p>No event matched.</p>\n", out);
	fputs("</body></html>\n", out);
}

void fay_output_page_close(struct fay_writer *writer)
{
	static const struct fay_page none;
	const struct fay_page *page = writer->page ? writer->page : &none;
	const char *query = writer->query ? writer->query : "";
	if (page->failed)
		fputs("fay: out of memory for the page: rows are missing\n", stderr);
	if (writer->format == FAY_FORMAT_SVG)
		fay_page_svg(writer->out, page, query);
	else if (!writer->flame)
		write_page(writer->out, page, query);
	if (writer->page)
		free_page(writer->page);
	writer->page = NULL;
}

/* A result with stacks is a flame graph. */
void fay_output_html(struct fay_writer *writer, const struct fay_view *view,
		     const struct fay_result *result, bool final)
{
	for (uint32_t c = 0; c < view->column_count; c++)
		if (view->columns[c].stack_frames)
			writer->flame = true;
	(writer->flame ? fay_output_flame : fay_output_page)(writer, view, result, final);
}
