/* SPDX-License-Identifier: MIT */
/* The parts of the reviewer's page. Whatever the image names goes through fay_page_text(). */
#ifndef FAY_VERIFIER_PAGE_H
#define FAY_VERIFIER_PAGE_H

#include "review.h"

/* Instructions of the whole image that are listed; graphs are limited in drawing.h. */
#define FAY_PAGE_INSTRUCTIONS 20000u

/* Untrusted text as HTML: what would be markup is escaped, and bytes that a page must not show are
 * \xNN, as in the other reports. */
void fay_page_text(FILE *out, const char *text);
/* The same, `most` characters at most. Returns how many columns it takes. */
unsigned fay_page_text_short(FILE *out, const char *text, unsigned most);

/* words.c: what the image can do, in sentences. */
void fay_page_capabilities(FILE *out, const struct fay_review *review);

/* code.c: functions with graph and code. */
void fay_page_code(FILE *out, const struct fay_review *review);

/* graph.c: the control flow of a function as SVG, facts at each block. Nothing, with a line that
 * says so, if it is too large. */
void fay_page_graph(FILE *out, const struct fay_review *review, uint32_t function);
/* Whether the path of the refusal leads through the block; whether it is refused there. */
bool fay_page_on_path(const struct fay_review *review, const struct fay_inspected_block *block);
bool fay_page_is_refused(const struct fay_review *review, const struct fay_inspected_block *block);

#endif
