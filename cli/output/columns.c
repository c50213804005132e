/* SPDX-License-Identifier: MIT */
/* How wide text is on a terminal, where a letter may take two columns, or none (a combining
 * accent). */
#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "fay/utf8.h"

#include "output_parts.h"

#define ESCAPE '\033'

/* The bytes of one character that is shown (or of our own command for a colour, no columns), and
 * its columns. */
static size_t one(const char *text, size_t size, unsigned *columns)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t length = fay_utf8_printable(s, size);
	wchar_t code;
	*columns = 1;
	if (*text == ESCAPE) {
		const char *end = memchr(text, 'm', size);
		*columns = 0;
		return end ? (size_t)(end - text) + 1 : 1;
	}
	if (length < 2)
		return 1;
	code = s[0] & (0x7f >> length);
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (s[i] & 0x3f);
	int width = wcwidth(code);
	*columns = width < 0 ? 1 : (unsigned)width;
	return length;
}

/* wcwidth() knows the characters of the locale: that of the C library, which needs no files, has
 * them all. */
static locale_t use_all_characters(void)
{
	static locale_t all;
	if (!all)
		all = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return all ? uselocale(all) : (locale_t)0;
}

size_t fay_output_fit(const char *text, size_t size, unsigned room, unsigned *columns)
{
	size_t at = 0, length;
	unsigned used = 0, width;
	locale_t before = use_all_characters();
	for (; at < size; at += length, used += width) {
		length = one(text + at, size - at, &width);
		if (width > room - used)
			break;
	}
	if (before)
		uselocale(before);
	*columns = used;
	return at;
}

unsigned fay_output_columns(const char *text)
{
	unsigned columns;
	fay_output_fit(text, strlen(text), UINT32_MAX, &columns);
	return columns;
}
