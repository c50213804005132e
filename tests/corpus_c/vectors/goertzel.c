/* SPDX-License-Identifier: MIT */
// How strong one frequency is in 64 samples (Goertzel 1958).
// needs: guard (vectors, which accept_rate compiles without)
#include "../corpus.h"

STATE {
	double power[8];
	uint64_t calls;
};

PROBE("libasound!snd_pcm_writei")
{
	static const double coefficient[8] = {1.9903694533443939, 1.9615705608064609, 1.9138806714644179, 1.8477590650225735,
					      1.7638425286967101, 1.6629392246050905, 1.5460209067254742, 1.4142135623730951};
	int16_t samples[64];

	if (READ(samples, event->arg[1]))
		return;
	state->calls++;
	for (int f = 0; f < 8; f++) {
		double s = 0, before = 0, earlier = 0;

		for (int i = 0; i < 64; i++) {
			s = samples[i] / 32768.0 + coefficient[f] * before - earlier;
			earlier = before;
			before = s;
		}
		state->power[f] = before * before + earlier * earlier - coefficient[f] * before * earlier;
	}
}
