/* SPDX-License-Identifier: MIT */
/*
 * Lines of programs: "module!file.c:123". The probe's pattern is "module!@line file.c:123", behind
 * which stand the variables that the query asks for (function.c).
 */
#include "sources.h"

#include <stdlib.h>
#include <string.h>

/* "file.c:123" */
static bool is_line(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	return digits && digits < 10 && !colon[1 + digits] && colon[1] != '0' && colon != text &&
	       *text != '@' && !strpbrk(text, "!;");
}

const char *fay_check_line_pattern(struct fay_checked *checked, const struct fay_node *string)
{
	struct fay_query *query = checked->exprs.query;
	const char *text = string->name, *bang = strchr(text, '!');
	bool plain = strlen(text) == string->length;
	for (const char *c = text; *c; c++)
		plain &= (unsigned char)*c >= ' ' && *c != 0x7f;
	if (!bang || bang == text || !is_line(bang + 1) || !plain)
		return fay_query_fail(query, FAY_E_USAGE, string->span,
				      "a line is given as \"module!file:number\", for example "
				      "\"shop!cart.c:123\" or \"shop!src/cart.c:123\"");
	const char *pattern =
		fay_query_format(query, "%.*s!@line %s", (int)(bang - text), text, bang + 1);
	if (pattern && strlen(pattern) >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, string->span,
				      "a line's module and file may have at most %zu bytes",
				      FAY_IMAGE_MAX_STRING - 1 - strlen("@line "));
	return pattern;
}

int64_t fay_check_line_number(const char *pattern)
{
	const char *end = strchr(pattern, ';');
	size_t length = end ? (size_t)(end - pattern) : strlen(pattern);
	const char *colon = memrchr(pattern, ':', length);
	return colon ? atol(colon + 1) : 0;
}
