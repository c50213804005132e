/* SPDX-License-Identifier: MIT */
/*
 * Layered drawings of random graphs, some of them too large to be drawn: boxes do not overlap,
 * everything lies within the picture, arrows lead from the one box's lower edge to the other's
 * upper one, and down unless they are marked.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/xorshift.h"
#include "verifier/review/drawing.h"

#define GRAPHS 2000u

static unsigned faults;

static void expect(bool holds, unsigned graph, const char *what)
{
	if (holds)
		return;
	printf("graph %u: %s\n", graph, what);
	faults++;
}

static int by_begin(const void *a, const void *b)
{
	const struct fay_drawing_arrow *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static void check_boxes(const struct fay_drawing *d, unsigned graph)
{
	for (uint32_t i = 0; i < d->box_count; i++) {
		const struct fay_drawing_box *a = &d->boxes[i];

		expect(a->x >= 0 && a->x + a->width <= d->width && a->y >= 0 &&
			       a->y + a->height <= d->height,
		       graph, "a box outside");
		for (uint32_t k = 0; k < i; k++) {
			const struct fay_drawing_box *b = &d->boxes[k];

			expect(a->x + a->width <= b->x || b->x + b->width <= a->x ||
				       a->y + a->height <= b->y || b->y + b->height <= a->y,
			       graph, "boxes that overlap");
		}
	}
}

static void check_arrow(const struct fay_drawing *d, const struct fay_drawing_arrow *arrow,
			unsigned graph)
{
	const struct fay_drawing_box *from = &d->boxes[arrow->from], *to = &d->boxes[arrow->to];
	const struct fay_drawing_point *p = &d->points[arrow->first], *end = p + arrow->count - 1;

	expect(arrow->count >= 2 && p->y == from->y + from->height && p->x >= from->x &&
		       p->x <= from->x + from->width && end->y == to->y && end->x >= to->x &&
		       end->x <= to->x + to->width,
	       graph, "an arrow that does not lead from box to box");
	expect(arrow->back ? arrow->lane <= d->width : from->y < to->y, graph,
	       "an arrow that goes up, or a lane outside");
	for (uint32_t i = 0; i < arrow->count; i++)
		expect(p[i].x >= 0 && p[i].x <= d->width && p[i].y >= 0 && p[i].y <= d->height,
		       graph, "an arrow outside");
}

int main(void)
{
	uint64_t random = 1;
	unsigned drawn = 0;

	for (unsigned graph = 0; graph < GRAPHS; graph++) {
		bool large = graph % 50 == 0;
		struct fay_drawing d = { 0 };

		d.box_count = 1 + (uint32_t)(xorshift(&random) % (large ? 410 : 30));
		d.arrow_count = (uint32_t)(xorshift(&random) % (large ? 2000 : 2 * d.box_count));
		d.boxes = calloc(d.box_count, sizeof(*d.boxes));
		d.arrows = calloc(d.arrow_count + 1, sizeof(*d.arrows));
		for (uint32_t i = 0; i < d.box_count; i++)
			d.boxes[i] = (struct fay_drawing_box){
				.width = 40 + (double)(xorshift(&random) % 200),
				.height = 40 + (double)(xorshift(&random) % 80)
			};
		for (uint32_t i = 0; i < d.arrow_count; i++) {
			d.arrows[i].from = (uint32_t)(xorshift(&random) % d.box_count);
			d.arrows[i].to = (uint32_t)(xorshift(&random) % d.box_count);
		}
		qsort(d.arrows, d.arrow_count, sizeof(*d.arrows), by_begin);
		if (fay_drawing_lay_out(&d)) {
			drawn++;
			check_boxes(&d, graph);
			for (uint32_t i = 0; i < d.arrow_count; i++)
				check_arrow(&d, &d.arrows[i], graph);
		} else {
			expect(large, graph, "not drawn");
		}
		free(d.boxes);
		free(d.arrows);
		free(d.points);
	}
	expect(drawn < GRAPHS, drawn, "none was too large");
	printf("%u of %u graphs drawn, %u faults\n", drawn, GRAPHS, faults);
	return faults != 0;
}
