/* SPDX-License-Identifier: MIT */
// The longest earlier match at each place, in a window of 48 bytes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t literals, matches, matched_bytes, longest;
};

PROBE("libz!deflate")
{
	uint8_t b[48];
	unsigned at = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at < sizeof(b)) {
		unsigned best = 0;

		for (unsigned from = 0; from < at; from++) {
			unsigned n = 0;

			while (n < 15 && at + n < sizeof(b) && b[from + n] == b[at + n])
				n++;
			if (n > best)
				best = n;
		}
		if (best < 3) {
			state->literals++;
			at++;
			continue;
		}
		state->matches++;
		state->matched_bytes += best;
		if (best > state->longest)
			state->longest = best;
		at += best;
	}
}
