/* SPDX-License-Identifier: MIT */
/* IMA ADPCM (IMA Digital Audio Focus and Technical Working Group, 1992): tables and state of both
 * directions. */
#include "kernel.h"

#define SAMPLES 1024

struct state {
	int32_t predicted, index;
	int16_t sample[SAMPLES];
	uint8_t code[SAMPLES / 2];
};

static const int8_t index_change[16] = { -1, -1, -1, -1, 2, 4, 6, 8, -1, -1, -1, -1, 2, 4, 6, 8 };
static const int16_t step_size[89] = {
	7,     8,     9,     10,    11,    12,    13,    14,    16,    17,    19,    21,    23,
	25,    28,    31,    34,    37,    41,    45,    50,    55,    60,    66,    73,    80,
	88,    97,    107,   118,   130,   143,   157,   173,   190,   209,   230,   253,   279,
	307,   337,   371,   408,   449,   494,   544,   598,   658,   724,   796,   876,   963,
	1060,  1166,  1282,  1411,  1552,  1707,  1878,  2066,  2272,  2499,  2749,  3024,  3327,
	3660,  4026,  4428,  4871,  5358,  5894,  6484,  7132,  7845,  8630,  9493,  10442, 11487,
	12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767,
};

/* A sum of sawtooth waves, near full scale in places. */
static inline __attribute__((unused)) int setup_wave(unsigned i, uint64_t *seed)
{
	return (int)(i * 257 % 16384) - 8192 + (int)(i * 1031 % 8192) - 4096 +
	       (int)(setup_random(seed) % 2048);
}
