/* SPDX-License-Identifier: MIT */
/* A flame graph: a page (flame.html) that needs no other file, with the query and the folded stacks
 * in it. */
#include <stdlib.h>
#include <string.h>

#include "output_parts.h"

#include "flame.inc"

void fay_write_html(FILE *out, const char *text)
{
	for (; *text; text++) {
		const char *escape = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : NULL;
		if (escape)
			fputs(escape, out);
		else
			fputc(*text, out);
	}
}

void fay_output_flame(struct fay_writer *writer, const struct fay_view *view,
		      const struct fay_result *result, bool final)
{
	if (!final)
		return;
	struct fay_writer folded = *writer;
	char *lines = NULL;
	size_t size;
	folded.format = FAY_FORMAT_FOLDED;
	folded.out = open_memstream(&lines, &size);
	if (folded.out) {
		fay_output_folded(&folded, view, result, true);
		fclose(folded.out);
	}
	if (!lines)
		fputs("fay: out of memory for the stacks\n", stderr);
	fputs(page_query, writer->out);
	fay_write_html(writer->out, writer->query ? writer->query : "");
	fputs(page_stacks, writer->out);
	fay_write_html(writer->out, lines ? lines : "");
	fputs(page_end, writer->out);
	free(lines);
}
