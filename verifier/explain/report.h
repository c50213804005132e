/* SPDX-License-Identifier: MIT */
/* Pieces of a report that other reports on an image have too. Text from the image is untrusted. */
#ifndef FAY_VERIFIER_REPORT_H
#define FAY_VERIFIER_REPORT_H

#include "fay/verify.h"

/* Untrusted text, bytes of what a terminal would not show as it is as \xNN; each line of it begins
 * with `indent`; a newline begins a line if `lines`. */
void fay_report_text(FILE *out, const char *indent, const char *text, bool lines);
/* The same as a JSON string, or null. UTF-8 goes through; any other byte becomes U+FFFD, so that
 * the line is valid JSON whatever the text holds. */
void fay_report_string_json(FILE *out, const char *text);

/* What is proved of a probe: lines; an object (docs/verify-json.md). */
void fay_report_probe(FILE *out, const struct fay_probe_facts *probe);
void fay_report_probe_json(FILE *out, const struct fay_probe_facts *probe);
/* Bytes of state of this scope (enum fay_scope) that are part of no result. */
uint32_t fay_report_scratch(const struct fay_schema *schema, unsigned scope);
/* What the image is and can do, as members of an object behind others (docs/verify-json.md, "The
 * manifest"). */
void fay_report_manifest_json(FILE *out, const struct fay_verdict *verdict);

#endif
