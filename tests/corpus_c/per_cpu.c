/* SPDX-License-Identifier: MIT */
// Events, bytes and migrations by processor.
// needs: nothing
#include "corpus.h"

STATE {
	struct { uint64_t events, bytes; } cpu[64];
	uint64_t migrations, beyond;
	uint32_t before;
};

PROBE("libc!write")
{
	uint32_t cpu = event->cpu;

	if (cpu >= 64) {
		state->beyond++;
		return;
	}
	if (cpu != state->before)
		state->migrations++;
	state->before = cpu;
	state->cpu[cpu].events++;
	state->cpu[cpu].bytes += event->arg[2];
}
