/* SPDX-License-Identifier: MIT */
/* Which formats there are. */
#include <string.h>

#include "output_parts.h"

#define STACK_HINT                                                                                 \
	"group by the stack, `group x by x.Stack(16) into g select new { g.Key, n = g.Count() }`"

const struct fay_format_kind fay_formats[FAY_FORMATS] = {
	[FAY_FORMAT_TABLE] = { .name = "table",
			       .result = fay_output_table,
			       .row = fay_output_table_row },
	[FAY_FORMAT_JSON] = { .name = "json",
			      .schema = fay_output_json_schema,
			      .result = fay_output_json,
			      .row = fay_output_json_row },
	[FAY_FORMAT_CSV] = { .name = "csv", .result = fay_output_csv, .row = fay_output_csv_row },
	[FAY_FORMAT_FOLDED] = { .name = "folded",
				.stack = true,
				.result = fay_output_folded,
				.row = fay_output_folded_row },
	[FAY_FORMAT_FLAME] = { .name = "flame",
			       .shows = FAY_SHOWS_GROUPS,
			       .stack = true,
			       .hint = STACK_HINT,
			       .result = fay_output_flame },
	[FAY_FORMAT_OPENMETRICS] = { .name = "openmetrics",
				     .shows = FAY_SHOWS_GROUPS,
				     .hint = "count or group the events, and leave out "
					     "windows: what reads metrics makes them itself",
				     .result = fay_output_openmetrics,
				     .end = fay_output_openmetrics_end },
	[FAY_FORMAT_CHROME] = { .name = "chrome",
				.shows = FAY_SHOWS_EVENTS,
				.hint = "select events with their time, as "
					"`cluster.Return(...).Select(r => new { r.time, r.pid, "
					"r.tid, r.function, r.Duration })`",
				.result = fay_output_chrome,
				.row = fay_output_chrome_row,
				.close = fay_output_chrome_close },
	[FAY_FORMAT_PPROF] = { .name = "pprof",
			       .shows = FAY_SHOWS_GROUPS,
			       .hint = STACK_HINT,
			       .stack = true,
			       .binary = true,
			       .result = fay_output_pprof },
	[FAY_FORMAT_OTLP] = { .name = "otlp",
			      .shows = FAY_SHOWS_SPANS,
			      .hint = "group the events, or select them as `cluster.Return(...)"
				      ".Select(r => new { r.time, r.pid, r.tid, r.function, "
				      "r.Duration })`",
			      .schema = fay_output_otlp_schema,
			      .result = fay_output_otlp,
			      .row = fay_output_otlp_row },
	[FAY_FORMAT_HTML] = { .name = "html",
			      .result = fay_output_html,
			      .row = fay_output_page_row,
			      .close = fay_output_page_close },
	[FAY_FORMAT_SVG] = { .name = "svg",
			     .result = fay_output_page,
			     .row = fay_output_page_row,
			     .close = fay_output_page_close },
};

enum fay_format fay_format_find(const char *name)
{
	unsigned format = 0;
	while (format < FAY_FORMATS && strcmp(fay_formats[format].name, name))
		format++;
	return format;
}

void fay_write_schema(struct fay_writer *writer, const char *query, const struct fay_view *views,
		      size_t count)
{
	writer->query = query;
	if (fay_formats[writer->format].schema)
		fay_formats[writer->format].schema(writer, views, count);
}

void fay_write_result(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	if (fay_formats[writer->format].result)
		fay_formats[writer->format].result(writer, view, result, final);
}

void fay_write_row(struct fay_writer *writer, const struct fay_view *view, const uint8_t *row)
{
	if (fay_formats[writer->format].row)
		fay_formats[writer->format].row(writer, view, row);
}

void fay_write_end(struct fay_writer *writer, bool final)
{
	if (fay_formats[writer->format].end)
		fay_formats[writer->format].end(writer, final);
}

void fay_write_close(struct fay_writer *writer)
{
	if (fay_formats[writer->format].close)
		fay_formats[writer->format].close(writer);
}
