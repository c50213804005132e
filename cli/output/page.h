/* SPDX-License-Identifier: MIT */
/* What a page or a picture has of the results, collected until nothing more comes. */
#ifndef FAY_CLI_OUTPUT_PAGE_H
#define FAY_CLI_OUTPUT_PAGE_H

#include "output_parts.h"

#define PAGE_LEVELS 9u /* of a heat map's colours, nothing apart */

struct page_row {
	char **cells;      /* a text for each column */
	uint64_t bar;      /* of the column that bars are drawn for */
	uint64_t *buckets; /* of the histogram that is shown */
};

/* What one view shows: a table, with bars or a heat map behind it, or a histogram below it. */
struct page_section {
	char *title; /* NULL: none */
	char **names;
	bool *numeric;
	uint32_t columns;
	int bars, histogram; /* columns; -1: none */
	char (*labels)[64];  /* of the histogram's buckets */
	struct fay_heat heat;
	uint64_t largest; /* bar */
	struct page_row *rows;
	size_t count, room, left_out;
	bool map;       /* rows are a heat map, even a single one */
	const void *of; /* the view whose rows come one by one; NULL: it is whole */
};

struct fay_page {
	struct page_section *sections;
	size_t count;
	bool failed; /* memory was short: something is missing */
};

/* How a bucket is coloured: 0 nothing, else 1 to PAGE_LEVELS, by the root of its share. */
unsigned fay_page_level(const struct page_row *row, const struct fay_heat *heat, size_t bucket);
/* A heat map is drawn; else the histogram of a single row has a line for each bucket. */
bool fay_page_is_map(const struct page_section *section);
/* `1024` of `1024..2047`, and the other end with its unit. */
void fay_page_ends(const struct page_section *section, char low[64], char high[64]);

/* svg.c */
void fay_page_svg(FILE *out, const struct fay_page *page, const char *query);

#endif
