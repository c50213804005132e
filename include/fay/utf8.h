/* SPDX-License-Identifier: MIT */
/* Text that others wrote and that people read on terminals: what of it may be shown as it is. */
#ifndef FAY_UTF8_H
#define FAY_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters that make a line look like another one, or like several: marks, embeddings and
 * isolates of writing direction, separators of lines and paragraphs. */
static inline bool fay_utf8_disguises(uint32_t code)
{
	return code == 0x61c || (code >= 0x200e && code <= 0x200f) ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Bytes of the character at s, of which there are `limit` at most, if it may be shown: 0 if it is
 * malformed, overlong, a surrogate, a control character or disguises others. */
static inline size_t fay_utf8_printable(const uint8_t *s, size_t limit)
{
	uint32_t code;
	size_t length;

	if (limit == 0)
		return 0;
	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	length = (s[0] & 0xe0) == 0xc0   ? 2
		 : (s[0] & 0xf0) == 0xe0 ? 3
		 : (s[0] & 0xf8) == 0xf0 ? 4
					 : 0;
	if (length == 0 || length > limit)
		return 0;
	code = s[0] & (0x7f >> length);
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < (length == 2   ? 0xa0u
		    : length == 3 ? 0x800u
				  : 0x10000u) ||
	    code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return fay_utf8_disguises(code) ? 0 : length;
}

#endif
