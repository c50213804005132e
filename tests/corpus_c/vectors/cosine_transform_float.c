/* SPDX-License-Identifier: MIT */
// The 8-point DCT of a row of pixels, in single precision.
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	float out[8];
	float energy;
};

PROBE("libjpeg!jpeg_write_scanlines")
{
	static const float c[8][8] = {
#define ROW(a, b, d, e, f, g, h, i) {a, b, d, e, f, g, h, i}
		ROW(.3535f, .3535f, .3535f, .3535f, .3535f, .3535f, .3535f, .3535f),
		ROW(.4904f, .4157f, .2778f, .0975f, -.0975f, -.2778f, -.4157f, -.4904f),
		ROW(.4619f, .1913f, -.1913f, -.4619f, -.4619f, -.1913f, .1913f, .4619f),
		ROW(.4157f, -.0975f, -.4904f, -.2778f, .2778f, .4904f, .0975f, -.4157f),
		ROW(.3535f, -.3535f, -.3535f, .3535f, .3535f, -.3535f, -.3535f, .3535f),
		ROW(.2778f, -.4904f, .0975f, .4157f, -.4157f, -.0975f, .4904f, -.2778f),
		ROW(.1913f, -.4619f, .4619f, -.1913f, -.1913f, .4619f, -.4619f, .1913f),
		ROW(.0975f, -.2778f, .4157f, -.4904f, .4904f, -.4157f, .2778f, -.0975f),
	};
	uint8_t pixels[8];

	if (READ(pixels, event->arg[1]))
		return;
	for (int u = 0; u < 8; u++) {
		float sum = 0;

		for (int x = 0; x < 8; x++)
			sum += c[u][x] * ((float)pixels[x] - 128);
		state->out[u] = sum;
		state->energy = state->energy * 0.5f + sum * sum;
	}
}
