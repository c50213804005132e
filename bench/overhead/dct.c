/* SPDX-License-Identifier: MIT */
/*
 * The heart of a JPEG encoder: forward DCT of 8x8 blocks in integers (Loeffler, Ligtenberg,
 * Moschytz, ICASSP 1989), quantised by reciprocals and put in zigzag order. 8 blocks a call.
 */
#include "kernel.h"

#define BLOCKS 8
#define BITS 13

struct state {
	int16_t pixel[BLOCKS][64];
	int16_t out[BLOCKS][64];
	int32_t work[64];
	uint16_t reciprocal[64]; /* 65536 / divisor */
};

static const uint8_t zigzag[64] = {
	0,  1,  5,  6,  14, 15, 27, 28, 2,  4,  7,  13, 16, 26, 29, 42, 3,  8,  12, 17, 25, 30,
	41, 43, 9,  11, 18, 24, 31, 40, 44, 53, 10, 19, 23, 32, 39, 45, 52, 54, 20, 22, 33, 38,
	46, 51, 55, 60, 21, 34, 37, 47, 50, 56, 59, 61, 35, 36, 48, 49, 57, 58, 62, 63,
};

/* Constants are cosines times 2^13. */
#define DCT_1D(in, out, shift)                                                                     \
	do {                                                                                       \
		int32_t s07 = in(0) + in(7), d07 = in(0) - in(7), s16 = in(1) + in(6),             \
			d16 = in(1) - in(6);                                                       \
		int32_t s25 = in(2) + in(5), d25 = in(2) - in(5), s34 = in(3) + in(4),             \
			d34 = in(3) - in(4);                                                       \
		int32_t e0 = s07 + s34, e3 = s07 - s34, e1 = s16 + s25, e2 = s16 - s25;            \
		int32_t z1 = (e2 + e3) * 4433, half = 1 << ((shift) - 1);                          \
		int32_t z5 = (d34 + d16 + d25 + d07) * 9633;                                       \
		int32_t a1 = (d34 + d07) * -7373, a2 = (d25 + d16) * -20995;                       \
		int32_t a3 = (d34 + d16) * -16069 + z5, a4 = (d25 + d07) * -3196 + z5;             \
                                                                                                   \
		out(0, (int32_t)((uint32_t)(e0 + e1) << BITS));                                    \
		out(4, (int32_t)((uint32_t)(e0 - e1) << BITS));                                    \
		out(2, z1 + e3 * 6270);                                                            \
		out(6, z1 - e2 * 15137);                                                           \
		out(7, d34 * 2446 + a1 + a3);                                                      \
		out(5, d25 * 16819 + a2 + a4);                                                     \
		out(3, d16 * 25172 + a2 + a3);                                                     \
		out(1, d07 * 12299 + a1 + a4);                                                     \
		(void)half;                                                                        \
	} while (0)

#define ROW_IN(k) pixel[8 * i + (k)]
#define ROW_OUT(k, v) S.work[8 * i + (k)] = ((v) + half) >> (BITS - 2)
#define COLUMN_IN(k) S.work[i + 8 * (k)]
#define COLUMN_OUT(k, v) S.work[i + 8 * (k)] = ((v) + half) >> (BITS + 5)

KERNEL
{
	for (unsigned b = 0; b < BLOCKS; b++) {
		const int16_t *pixel = S.pixel[b];

		for (unsigned i = 0; i < 8; i++)
			DCT_1D(ROW_IN, ROW_OUT, BITS - 2);
		for (unsigned i = 0; i < 8; i++)
			DCT_1D(COLUMN_IN, COLUMN_OUT, BITS + 5);
		for (unsigned i = 0; i < 64; i++)
			S.out[b][zigzag[i]] = (int16_t)(S.work[i] * S.reciprocal[i] >> 16);
	}
}

SETUP
{
	event->arg[0] = BLOCKS;
	for (unsigned i = 0; i < BLOCKS * 64; i++)
		setup_state->pixel[0][i] = (int16_t)(setup_random(seed) % 256 - 128);
	for (unsigned i = 0; i < 64; i++)
		setup_state->reciprocal[i] = (uint16_t)(65536 / (16 + i));
}
