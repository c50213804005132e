/* SPDX-License-Identifier: MIT */
/*
 * Layered drawing in four steps: arrows that close a circle are set apart; each box lies one layer
 * below the lowest that leads to it, and arrows over several layers bend in each (bends are items
 * without a size); items of a layer are sorted by the mean of their neighbours, back and forth; and
 * moved towards that mean as near as those beside them let them.
 */
#include <stdlib.h>
#include <string.h>

#include "drawing.h"

#define NONE UINT32_MAX
#define SWEEPS 12u
#define GAP 18.0  /* between items of a layer */
#define LANE 12.0 /* between arrows that go up */
#define PORT 12.0 /* between arrows that leave a box */

struct item {
	uint32_t layer, place; /* which of its layer */
	uint32_t box;          /* NONE: a bend */
	double width, middle, wish;
	double offset; /* from the middle of its layer's first one, at least */
};

/* A piece of an arrow from one layer to the next one. */
struct piece {
	uint32_t upper, lower; /* items */
};

struct work {
	struct fay_drawing *d;
	uint32_t *first;            /* by box: its first arrow */
	uint32_t *order, *position; /* boxes, each behind those that lead to it */
	uint8_t *seen;
	uint32_t *stack, *next;
	struct item *items; /* boxes, then bends */
	struct piece *pieces;
	uint32_t *bends; /* by arrow: its first bend */
	uint32_t item_count, piece_count, layer_count;
	uint32_t *layers, *layer_first; /* items in order, layer by layer */
	double *sum;
	uint32_t *count;
};

static void *make(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

static bool work_init(struct work *w, struct fay_drawing *d)
{
	size_t boxes = d->box_count, items = FAY_DRAWING_ITEMS;

	*w = (struct work){ .d = d, .item_count = d->box_count };
	w->first = make(boxes + 1, sizeof(*w->first));
	w->order = make(boxes, sizeof(*w->order));
	w->position = make(boxes, sizeof(*w->position));
	w->seen = make(boxes, sizeof(*w->seen));
	w->stack = make(boxes, sizeof(*w->stack));
	w->next = make(boxes, sizeof(*w->next));
	w->items = make(items, sizeof(*w->items));
	w->pieces = make(2 * items + d->arrow_count, sizeof(*w->pieces));
	w->bends = make(d->arrow_count, sizeof(*w->bends));
	w->layers = make(items, sizeof(*w->layers));
	w->layer_first = make(boxes + 1, sizeof(*w->layer_first));
	w->sum = make(items, sizeof(*w->sum));
	w->count = make(items, sizeof(*w->count));
	d->points = make(2 * items + 3 * (size_t)d->arrow_count, sizeof(*d->points));
	return w->first && w->order && w->position && w->seen && w->stack && w->next && w->items &&
	       w->pieces && w->bends && w->layers && w->layer_first && w->sum && w->count &&
	       d->points;
}

static void work_deinit(struct work *w)
{
	free(w->first);
	free(w->order);
	free(w->position);
	free(w->seen);
	free(w->stack);
	free(w->next);
	free(w->items);
	free(w->pieces);
	free(w->bends);
	free(w->layers);
	free(w->layer_first);
	free(w->sum);
	free(w->count);
}

/* ---- circles, and an order ---- */

/* Depth first from `root`: an arrow to a box that is still on the way closes a circle. *left: where
 * in `order` the box that is done next goes. */
static void walk(struct work *w, uint32_t root, uint32_t *left)
{
	enum { NEW, ON_THE_WAY, DONE };
	struct fay_drawing *d = w->d;
	uint32_t depth = 0;

	if (w->seen[root] != NEW)
		return;
	w->stack[depth++] = root;
	w->seen[root] = ON_THE_WAY;
	w->next[root] = w->first[root];
	while (depth) {
		uint32_t box = w->stack[depth - 1];
		struct fay_drawing_arrow *arrow;

		if (w->next[box] == w->first[box + 1]) {
			w->seen[box] = DONE;
			w->order[--*left] = box;
			depth--;
			continue;
		}
		arrow = &d->arrows[w->next[box]++];
		arrow->back = w->seen[arrow->to] == ON_THE_WAY;
		if (w->seen[arrow->to] == NEW) {
			w->seen[arrow->to] = ON_THE_WAY;
			w->next[arrow->to] = w->first[arrow->to];
			w->stack[depth++] = arrow->to;
		}
	}
}

static void find_order(struct work *w)
{
	struct fay_drawing *d = w->d;
	uint32_t left = d->box_count;

	for (uint32_t box = 0, k = 0; box <= d->box_count; box++) {
		while (k < d->arrow_count && d->arrows[k].from < box)
			k++;
		w->first[box] = k;
	}
	for (uint32_t box = 0; box < d->box_count; box++)
		walk(w, box, &left);
}

/* ---- layers ---- */

static void find_layers(struct work *w)
{
	struct fay_drawing *d = w->d;

	for (uint32_t i = 0; i < d->box_count; i++) {
		uint32_t box = w->order[i], layer = w->items[box].layer;

		w->items[box].box = box;
		w->items[box].width = d->boxes[box].width;
		if (layer + 1 > w->layer_count)
			w->layer_count = layer + 1;
		for (uint32_t k = w->first[box]; k < w->first[box + 1]; k++) {
			struct item *to = &w->items[d->arrows[k].to];

			if (!d->arrows[k].back && to->layer < layer + 1)
				to->layer = layer + 1;
		}
	}
}

/* Arrows in pieces. False: too many bends. */
static bool bend(struct work *w)
{
	struct fay_drawing *d = w->d;

	for (uint32_t k = 0; k < d->arrow_count; k++) {
		const struct fay_drawing_arrow *arrow = &d->arrows[k];
		uint32_t upper = arrow->from;

		if (arrow->back)
			continue;
		w->bends[k] = w->item_count;
		for (uint32_t layer = w->items[arrow->from].layer + 1;
		     layer < w->items[arrow->to].layer; layer++) {
			if (w->item_count == FAY_DRAWING_ITEMS)
				return false;
			w->items[w->item_count] = (struct item){ .layer = layer, .box = NONE };
			w->pieces[w->piece_count++] = (struct piece){ upper, w->item_count };
			upper = w->item_count++;
		}
		w->pieces[w->piece_count++] = (struct piece){ upper, arrow->to };
	}
	return true;
}

/* Items by layer: boxes as they were met, then bends. */
static void fill_layers(struct work *w)
{
	uint32_t n = 0;

	for (uint32_t layer = 0; layer < w->layer_count; layer++) {
		w->layer_first[layer] = n;
		for (uint32_t i = 0; i < w->item_count; i++) {
			uint32_t item = i < w->d->box_count ? w->order[i] : i;

			if (w->items[item].layer != layer)
				continue;
			w->items[item].place = n - w->layer_first[layer];
			w->layers[n++] = item;
		}
	}
	w->layer_first[w->layer_count] = n;
}

/* ---- the order within layers ---- */

/* What an item wishes: the mean of its neighbours above, below, or both. */
static void wish(struct work *w, bool above, bool below, bool places)
{
	memset(w->sum, 0, w->item_count * sizeof(*w->sum));
	memset(w->count, 0, w->item_count * sizeof(*w->count));
	for (uint32_t i = 0; i < w->piece_count; i++) {
		const struct piece *p = &w->pieces[i];
		const struct item *upper = &w->items[p->upper], *lower = &w->items[p->lower];

		if (above) {
			w->sum[p->lower] += places ? upper->place : upper->middle;
			w->count[p->lower]++;
		}
		if (below) {
			w->sum[p->upper] += places ? lower->place : lower->middle;
			w->count[p->upper]++;
		}
	}
	for (uint32_t i = 0; i < w->item_count; i++) {
		struct item *item = &w->items[i];
		double now = places ? item->place : item->middle;

		item->wish = w->count[i] ? w->sum[i] / w->count[i] : now;
	}
}

/* Stable: equal wishes stay as they are. */
static void sort_layer(struct work *w, uint32_t layer)
{
	uint32_t *items = &w->layers[w->layer_first[layer]];
	uint32_t count = w->layer_first[layer + 1] - w->layer_first[layer];

	for (uint32_t i = 1; i < count; i++) {
		uint32_t moved = items[i], k = i;

		for (; k > 0 && w->items[items[k - 1]].wish > w->items[moved].wish; k--)
			items[k] = items[k - 1];
		items[k] = moved;
	}
	for (uint32_t i = 0; i < count; i++)
		w->items[items[i]].place = i;
}

static void sort_layers(struct work *w)
{
	for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
		bool down = sweep % 2 == 0;

		for (uint32_t i = 0; i < w->layer_count; i++) {
			wish(w, down, !down, true);
			sort_layer(w, down ? i : w->layer_count - 1 - i);
		}
	}
}

/* ---- places ---- */

/*
 * The places nearest to the wishes (least squares) that keep the order and the distances: pool
 * adjacent violators. Runs of items that touch have one wish, the mean of theirs.
 */
static void place_layer(struct work *w, uint32_t layer)
{
	uint32_t *items = &w->layers[w->layer_first[layer]], *length = w->count, runs = 0;
	uint32_t count = w->layer_first[layer + 1] - w->layer_first[layer];
	double *mean = w->sum;

	for (uint32_t i = 0; i < count; i++) {
		struct item *item = &w->items[items[i]];
		const struct item *before = i ? &w->items[items[i - 1]] : NULL;

		item->offset =
			before ? before->offset + (before->width + item->width) / 2 + GAP : 0;
		mean[runs] = item->wish - item->offset;
		length[runs++] = 1;
		while (runs > 1 && mean[runs - 2] > mean[runs - 1]) {
			uint32_t both = length[runs - 2] + length[runs - 1];

			mean[runs - 2] = (mean[runs - 2] * length[runs - 2] +
					  mean[runs - 1] * length[runs - 1]) /
					 both;
			length[--runs - 1] = both;
		}
	}
	for (uint32_t run = 0, i = 0; run < runs; run++)
		for (uint32_t k = 0; k < length[run]; k++, i++)
			w->items[items[i]].middle = mean[run] + w->items[items[i]].offset;
}

static void place(struct work *w)
{
	for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
		bool down = sweep % 2 == 0;

		for (uint32_t i = 0; i < w->layer_count; i++) {
			wish(w, down || sweep + 2 >= SWEEPS, !down || sweep + 2 >= SWEEPS, false);
			place_layer(w, down ? i : w->layer_count - 1 - i);
		}
	}
}

/* Boxes' corners; everything is at x >= 0. */
static void set_boxes(struct work *w, double *tops)
{
	struct fay_drawing *d = w->d;
	double left = 0, y = FAY_DRAWING_LAYER_GAP / 2; /* arrows come from above */

	for (uint32_t i = 0; i < w->item_count; i++) {
		double x = w->items[i].middle - w->items[i].width / 2;

		left = i == 0 || x < left ? x : left;
	}
	for (uint32_t layer = 0; layer < w->layer_count; layer++) {
		double height = 0;

		tops[layer] = y;
		for (uint32_t i = w->layer_first[layer]; i < w->layer_first[layer + 1]; i++) {
			struct item *item = &w->items[w->layers[i]];
			struct fay_drawing_box *box;

			item->middle -= left - 2;
			if (d->width < item->middle + item->width / 2)
				d->width = item->middle + item->width / 2;
			if (item->box == NONE)
				continue;
			box = &d->boxes[item->box];
			box->x = item->middle - item->width / 2;
			box->y = y;
			height = box->height > height ? box->height : height;
		}
		y += height;
		tops[w->layer_count + layer] = y; /* its bottom */
		y += FAY_DRAWING_LAYER_GAP;
	}
	d->width += 2;
	d->height = y - FAY_DRAWING_LAYER_GAP + 2;
}

/* Where an arrow goes first: up is to the right. */
static double heads_for(const struct work *w, uint32_t k)
{
	const struct fay_drawing_arrow *arrow = &w->d->arrows[k];
	const struct item *from = &w->items[arrow->from], *to = &w->items[arrow->to];

	if (arrow->back)
		return w->d->width;
	return to->layer == from->layer + 1 ? to->middle : w->items[w->bends[k]].middle;
}

/* How far from the middle of its box an arrow begins: those of a box side by side, in the order in
 * which they go on. */
static double port_of(const struct work *w, uint32_t k)
{
	const struct fay_drawing_arrow *arrow = &w->d->arrows[k];
	uint32_t first = w->first[arrow->from], last = w->first[arrow->from + 1], before = 0;
	double most = w->d->boxes[arrow->from].width / 2 - 4, own = heads_for(w, k), port;

	for (uint32_t i = first; i < last; i++)
		before += heads_for(w, i) < own || (i < k && heads_for(w, i) == own);
	port = PORT * (before - (last - first - 1) / 2.0);
	return port > most ? most : port < -most ? -most : port;
}

static void set_arrow(struct work *w, uint32_t k, const double *tops, uint32_t *count)
{
	struct fay_drawing *d = w->d;
	struct fay_drawing_arrow *arrow = &d->arrows[k];
	const struct fay_drawing_box *from = &d->boxes[arrow->from], *to = &d->boxes[arrow->to];
	uint32_t bottom = w->items[arrow->from].layer + w->layer_count;
	double port = port_of(w, k);

	arrow->first = *count;
	d->points[(*count)++] = (struct fay_drawing_point){ from->x + from->width / 2 + port,
							    from->y + from->height };
	if (from->y + from->height < tops[bottom]) /* past its neighbours, which are higher */
		d->points[(*count)++] =
			(struct fay_drawing_point){ from->x + from->width / 2 + port,
						    tops[bottom] };
	for (uint32_t layer = w->items[arrow->from].layer + 1, i = w->bends[k];
	     !arrow->back && layer < w->items[arrow->to].layer; layer++, i++) {
		d->points[(*count)++] =
			(struct fay_drawing_point){ w->items[i].middle, tops[layer] };
		d->points[(*count)++] = (struct fay_drawing_point){ w->items[i].middle,
								    tops[w->layer_count + layer] };
	}
	d->points[(*count)++] = (struct fay_drawing_point){ to->x + to->width / 2, to->y };
	arrow->count = *count - arrow->first;
}

static bool set(struct work *w)
{
	struct fay_drawing *d = w->d;
	double *tops = make(2 * (size_t)w->layer_count, sizeof(*tops));
	uint32_t count = 0, lanes = 0;

	if (!tops)
		return false;
	set_boxes(w, tops);
	for (uint32_t k = 0; k < d->arrow_count; k++) {
		set_arrow(w, k, tops, &count);
		if (d->arrows[k].back)
			d->arrows[k].lane = d->width + LANE * ++lanes;
	}
	d->width += LANE * (lanes ? lanes + 1 : 0);
	if (lanes) /* the way round below the last layer */
		d->height += FAY_DRAWING_LAYER_GAP / 2;
	free(tops);
	return true;
}

bool fay_drawing_lay_out(struct fay_drawing *drawing)
{
	struct work w;
	bool ok;

	drawing->width = drawing->height = 0;
	drawing->points = NULL;
	if (!drawing->box_count || drawing->box_count > FAY_DRAWING_BOXES ||
	    drawing->arrow_count > FAY_DRAWING_ITEMS)
		return false;
	ok = work_init(&w, drawing);
	if (ok) {
		find_order(&w);
		find_layers(&w);
		ok = bend(&w);
	}
	if (ok) {
		fill_layers(&w);
		sort_layers(&w);
		place(&w);
		ok = set(&w);
	}
	work_deinit(&w);
	return ok;
}
