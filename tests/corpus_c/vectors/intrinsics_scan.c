/* SPDX-License-Identifier: MIT */
// A newline in 64 bytes, with SSE2's own instructions.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

#include <emmintrin.h>

STATE {
	uint32_t at[65];
	uint64_t sum;
};

PROBE("libc!write")
{
	uint8_t text[64];
	uint64_t found = 0;

	if (READ(text, event->arg[1]))
		return;
	for (int i = 0; i < 4; i++) {
		__m128i x = _mm_loadu_si128((const __m128i *)(text + 16 * i)), sums = _mm_sad_epu8(x, _mm_setzero_si128());

		found |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('\n'))) << 16 * i;
		state->sum += (uint64_t)_mm_cvtsi128_si64(sums) + (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums));
	}
	state->at[found ? __builtin_ctzll(found) : 64]++;
}
