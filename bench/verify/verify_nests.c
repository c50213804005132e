/* SPDX-License-Identifier: MIT */
// The densest nest of the corpus (tests/corpus_c/lz_matches.c: the longest earlier match at each
// place of a window), eight different ones in one probe:
// some 2,000 instructions, nearly all in three loops one within the other. Measured by
// bench/verify/verify_speed.sh.
#include "corpus.h"

#define NEST(n, window, longest, least) struct nest n;
struct nest {
	uint64_t literals, matches, matched_bytes, longest;
};

#define NESTS                                                                                      \
	NEST(a, 24, 15, 3)                                                                         \
	NEST(b, 28, 14, 4)                                                                         \
	NEST(c, 26, 15, 2)                                                                         \
	NEST(d, 29, 13, 5)                                                                         \
	NEST(e, 25, 14, 3)                                                                         \
	NEST(f, 27, 15, 6)                                                                         \
	NEST(g, 23, 13, 4)                                                                         \
	NEST(h, 30, 14, 2)

STATE{ NESTS };

static inline __attribute__((always_inline)) void
match(struct nest *to, const uint8_t *b, unsigned window, unsigned longest, unsigned least)
{
	unsigned at = 0;

	while (at < window) {
		unsigned best = 0;

		for (unsigned from = 0; from < at; from++) {
			unsigned n = 0;

			while (n < longest && at + n < window && b[from + n] == b[at + n])
				n++;
			if (n > best)
				best = n;
		}
		if (best < least) {
			to->literals++;
			at++;
			continue;
		}
		to->matches++;
		to->matched_bytes += best;
		if (best > to->longest)
			to->longest = best;
		at += best;
	}
}

PROBE("libz!deflate")
{
#undef NEST
#define NEST(n, window, longest, least)                                                            \
	{                                                                                          \
		uint8_t bytes[window];                                                             \
		if (!READ(bytes, event->arg[1] + sizeof(struct nest)))                             \
			match(&state->n, bytes, window, longest, least);                           \
	}
	NESTS
}
