/* SPDX-License-Identifier: MIT */
// Points and boxes by value: compound literals, struct returns, address-taken locals.
// needs: nothing
#include "corpus.h"

struct point { int32_t x, y; };
struct box { struct point low, high; };

STATE {
	struct box bounds;
	uint64_t inside, outside;
};

static inline struct point point_of(uint64_t word)
{
	return (struct point){.x = (int16_t)word, .y = (int16_t)(word >> 16)};
}

static inline void grow(struct box *b, struct point p)
{
	if (p.x < b->low.x)
		b->low.x = p.x;
	if (p.y < b->low.y)
		b->low.y = p.y;
	if (p.x > b->high.x)
		b->high.x = p.x;
	if (p.y > b->high.y)
		b->high.y = p.y;
}

PROBE("libX11!XDrawPoint")
{
	struct box b = state->bounds;
	struct point p = point_of(event->arg[3]);
	struct box unit = {.low = {-100, -100}, .high = {100, 100}};

	grow(&b, p);
	grow(&unit, (struct point){p.x / 200, p.y / 200});
	state->bounds = b;
	if (unit.high.x == 100 && unit.low.x == -100)
		state->inside++;
	else
		state->outside++;
}
