/* SPDX-License-Identifier: MIT */
// A matrix of nested structures: devices, queues, directions.
// needs: nothing
#include "corpus.h"

struct direction { uint64_t bytes; uint32_t packets, drops; };
struct queue { struct direction in, out; uint16_t depth; };
struct device { struct queue queue[4]; uint8_t up; };

STATE {
	struct device device[6];
};

PROBE("libc!sendto")
{
	struct device *d = &state->device[event->arg[0] % 6];
	struct queue *q = &d->queue[event->arg[2] >> 4 & 3];
	struct direction *way = event->arg[3] & 1 ? &q->in : &q->out;

	way->bytes += event->arg[2] & 0xffff;
	way->packets++;
	if (++q->depth > 1000) {
		way->drops++;
		q->depth = 0;
	}
	d->up = 1;
}
