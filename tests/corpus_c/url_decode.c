/* SPDX-License-Identifier: MIT */
// Percent decoding in place, with bad escapes left as they are.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t escapes, bad, bytes;
	uint8_t first;
};

static inline unsigned digit(uint8_t c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10u : 16;
}

PROBE("libcurl!curl_easy_unescape")
{
	uint8_t t[80];
	unsigned to = 0;

	if (READ(t, event->arg[1]))
		return;
	for (unsigned from = 0; from < sizeof(t); from++, to++) {
		t[to] = t[from] == '+' ? ' ' : t[from];
		if (t[from] == '%' && from + 2 < sizeof(t)) {
			unsigned high = digit(t[from + 1]), low = digit(t[from + 2]);

			if (high > 15 || low > 15) {
				state->bad++;
				continue;
			}
			t[to] = (uint8_t)(high << 4 | low);
			from += 2;
			state->escapes++;
		}
	}
	state->bytes += to;
	state->first = t[0];
}
