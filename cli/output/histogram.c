/* SPDX-License-Identifier: MIT */
/* Bars, and histograms as a line with a bar for each bucket. */
#include <inttypes.h>
#include <string.h>

#include "output_parts.h"

#define HISTOGRAM_LABELS (2 + 24 + 1 + 12 + 1)
#define LEAST_GAP 4 /* empty buckets that one line stands for */

/* How long bars may be behind `used` columns. A line that the terminal wraps would be two, and
 * could not be drawn over. */
int fay_output_bar_width(const struct fay_writer *writer, int used)
{
	int width = fay_output_width(writer), room = width - used - 2;
	return !width                  ? FAY_OUTPUT_BAR
	       : room < 0              ? 0
	       : room < FAY_OUTPUT_BAR ? room
				       : FAY_OUTPUT_BAR;
}

void fay_output_bar(char text[FAY_OUTPUT_BAR + 1], uint64_t value, uint64_t largest, int width)
{
	unsigned length = largest ? (unsigned)((double)value * width / (double)largest + 0.5) : 0;
	if (value && !length && width)
		length = 1;
	memset(text, '#', length);
	text[length] = 0;
}

/* The buckets from the first to the last that is not empty: how many. */
static size_t find_buckets(const uint64_t *buckets, size_t count, size_t *first)
{
	*first = 0;
	while (*first < count && !buckets[*first])
		++*first;
	while (count > *first && !buckets[count - 1])
		count--;
	return count - *first;
}

/* How many empty buckets follow each other that one line stands for; 0: each has its own. */
static size_t gap_at(const uint64_t *buckets, size_t from, size_t end)
{
	size_t at = from;
	while (at < end && !buckets[at])
		at++;
	return at - from >= LEAST_GAP ? at - from : 0;
}

unsigned fay_output_histogram_height(const uint64_t *buckets, size_t count)
{
	size_t first, end = find_buckets(buckets, count, &first);
	unsigned lines = 0;
	end += first;
	for (size_t i = first, gap; i < end; i += gap ? gap : 1, lines++)
		gap = gap_at(buckets, i, end);
	return lines ? lines : 1;
}

void fay_output_histogram(const struct fay_writer *writer, const struct fay_view_column *view,
			  const uint64_t *buckets, size_t count)
{
	size_t first, last = find_buckets(buckets, count, &first);
	uint64_t largest = 0;
	last += first;
	for (size_t i = first; i < last; i++)
		largest = buckets[i] > largest ? buckets[i] : largest;
	FILE *out = writer->out;
	int width = fay_output_bar_width(writer, HISTOGRAM_LABELS);
	for (size_t i = first, gap; i < last; i += gap ? gap : 1) {
		char label[64], text[FAY_OUTPUT_BAR + 1];
		gap = gap_at(buckets, i, last);
		if (gap) {
			fputs("  ...\n", out);
			continue;
		}
		fay_output_bucket_label(writer, view, i, count, label);
		fay_output_bar(text, buckets[i], largest, width);
		fprintf(out, "  %-24s %12" PRIu64 " |%-*s|\n", label, buckets[i], width, text);
	}
	if (first == last)
		fprintf(out, "  (no value yet)\n");
}
