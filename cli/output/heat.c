/* SPDX-License-Identifier: MIT */
/*
 * Heat maps: a row's histogram as one line, a character for each bucket or for some neighbouring
 * ones, the darker the more of the row's values lie in it. Rows of windows of time below one
 * another are a map of time and value. Shares are of each row's own values, so that a line does not
 * depend on those that come later.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "output_parts.h"

#define PLAIN_WIDTH 80 /* of what is no terminal */
#define LEAST_WIDTH 8

/* From nothing to all. */
static const char shades[] = " .:-=+*#%@";
#define LEVELS (sizeof(shades) - 2)
/* The same in the terminal's 256 colours: dark blue, violet, red, orange, yellow. */
static const uint8_t colours[] = { 0, 17, 18, 54, 90, 125, 160, 202, 214, 226 };
_Static_assert(sizeof(colours) == LEVELS + 1, "a colour for each shade");

bool fay_output_is_histogram(const struct fay_view_column *column)
{
	return column->column->merge == FAY_MERGE_HIST_LOG2 ||
	       column->column->merge == FAY_MERGE_HIST_LOGLINEAR ||
	       column->column->merge == FAY_MERGE_HIST_LINEAR;
}

const struct fay_view_column *fay_output_heat_column(const struct fay_view *view)
{
	for (uint32_t c = 0; c < view->column_count; c++)
		if (fay_output_is_histogram(&view->columns[c]))
			return &view->columns[c];
	return NULL;
}

int fay_output_width(const struct fay_writer *writer)
{
	struct winsize window;
	return writer->live &&
			       !ioctl(fileno(writer->screen ? writer->screen : writer->out),
				      TIOCGWINSZ, &window) &&
			       window.ws_col
		       ? window.ws_col
		       : 0;
}

static bool coloured(const struct fay_writer *writer)
{
	const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM"); /* https://no-color.org */
	return writer->live && !(no && *no) && terminal && strcmp(terminal, "dumb");
}

bool fay_output_heat_widen(struct fay_heat *heat, const struct fay_view_column *column,
			   const uint8_t *row)
{
	struct fay_value value;
	size_t first = heat->first, end = heat->end;
	if (!fay_value_decode(column->column, row, &value))
		return false;
	for (size_t i = 0; i < value.histogram.count; i++) {
		if (!value.histogram.buckets[i])
			continue;
		first = end == 0 || i < first ? i : first;
		end = i >= end ? i + 1 : end;
	}
	bool wider = first != heat->first || end != heat->end;
	heat->first = first;
	heat->end = end;
	heat->buckets = value.histogram.count;
	return wider;
}

/* Neighbouring buckets that share a character where there is no room for all. */
static size_t buckets_together(const struct fay_writer *writer, const struct fay_heat *heat,
			       int used)
{
	int width = fay_output_width(writer), room = (width ? width : PLAIN_WIDTH) - used - 2;
	size_t count = heat->end - heat->first,
	       least = room < LEAST_WIDTH ? LEAST_WIDTH : (size_t)room;
	return count ? (count + least - 1) / least : 1;
}

static int characters(const struct fay_heat *heat, size_t together)
{
	return (int)((heat->end - heat->first + together - 1) / together);
}

/* The least value of the first bucket and the largest of the last one stand above the map's ends.
 * */
void fay_output_heat_axis(const struct fay_writer *writer, const struct fay_heat *heat,
			  const struct fay_view_column *column, int used)
{
	char low[64], high[64];
	if (!heat->end)
		return;
	int width = characters(heat, buckets_together(writer, heat, used));
	fay_output_bucket_label(writer, column, heat->first, heat->buckets, low);
	fay_output_bucket_label(writer, column, heat->end - 1, heat->buckets, high);
	char *dots = strstr(low, ".."), *last = strstr(high, ".."), *unit = strrchr(low, ' ');
	if (dots && dots != low && unit > dots)
		memmove(dots, unit, strlen(unit) + 1);
	else if (dots && dots != low)
		*dots = 0;
	const char *end = last && last[2] ? last + 2 : high;
	int gap = width - (int)strlen(low) - (int)strlen(end);
	fprintf(writer->out, "%*s %s%*s%s\n", used, "", low, gap < 4 ? 4 : gap,
		gap < 4 ? " .. " : "", end);
}

void fay_output_heat_line(const struct fay_writer *writer, const struct fay_heat *heat,
			  const struct fay_view_column *column, const uint8_t *row, int used)
{
	struct fay_value value;
	uint64_t total = 0;
	bool colour = coloured(writer);
	if (!heat->end || !fay_value_decode(column->column, row, &value))
		return;
	size_t together = buckets_together(writer, heat, used);
	for (size_t i = 0; i < value.histogram.count; i++)
		total += value.histogram.buckets[i];
	fputc('|', writer->out);
	for (size_t from = heat->first; from < heat->end; from += together) {
		uint64_t count = 0;
		for (size_t i = from; i < from + together && i < heat->end; i++)
			count += value.histogram.buckets[i];
		/* By the root of the share, or all but the fullest buckets would look empty. */
		size_t level =
			count ? 1 + (size_t)(sqrt((double)count / (double)total) * (LEVELS - 1))
			      : 0;
		if (colour && level)
			fprintf(writer->out, "\033[48;5;%um \033[0m", colours[level]);
		else
			fputc(shades[level], writer->out);
	}
	fputc('|', writer->out);
}
