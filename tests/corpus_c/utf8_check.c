/* SPDX-License-Identifier: MIT */
// Valid UTF-8: code points by length, overlong forms, surrogates, cut ends.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t points[4], bad_start, bad_next, overlong, surrogate, too_high;
};

PROBE("libc!write")
{
	uint8_t b[64];
	unsigned at = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at < sizeof(b)) {
		uint8_t c = b[at];
		unsigned more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 9;
		uint32_t point;

		if (more == 9) {
			state->bad_start++;
			at++;
			continue;
		}
		if (at + more >= sizeof(b))
			return;
		point = more ? c & (0x3fu >> more) : c;
		for (unsigned i = 1; i <= more; i++) {
			if ((b[at + i] & 0xc0) != 0x80) {
				state->bad_next++;
				return;
			}
			point = point << 6 | (b[at + i] & 0x3f);
		}
		if ((more == 2 && point < 0x800) || (more == 3 && point < 0x10000))
			state->overlong++;
		else if (point >= 0xd800 && point < 0xe000)
			state->surrogate++;
		else if (point > 0x10ffff)
			state->too_high++;
		else
			state->points[more]++;
		at += 1 + more;
	}
}
