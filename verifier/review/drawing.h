/* SPDX-License-Identifier: MIT */
/*
 * Boxes and arrows in layers from the top down (Sugiyama, Tagawa and Toda 1981): what an arrow
 * leads to lies below, except where arrows go round; those run at the right side, upwards.
 */
#ifndef FAY_VERIFIER_DRAWING_H
#define FAY_VERIFIER_DRAWING_H

#include <stdbool.h>
#include <stdint.h>

/* What is drawn at most: bends of arrows count as boxes. */
#define FAY_DRAWING_BOXES 400u
#define FAY_DRAWING_ITEMS 4000u
#define FAY_DRAWING_LAYER_GAP 34.0

struct fay_drawing_box {
	double width, height; /* given */
	double x, y;          /* of its upper left corner */
};

struct fay_drawing_point {
	double x, y;
};

struct fay_drawing_arrow {
	uint32_t from, to;     /* given: boxes; in order of `from` */
	bool back;             /* it goes up: along `lane`, its points are the ends alone */
	double lane;           /* x */
	uint32_t first, count; /* of points: from the lower edge of a box to the upper one of the
				  other; a bend has two, its upper and its lower end */
};

struct fay_drawing {
	uint32_t box_count, arrow_count;
	struct fay_drawing_box *boxes; /* box 0 is where it begins */
	struct fay_drawing_arrow *arrows;
	/* made; points to be freed */
	struct fay_drawing_point *points;
	double width, height;
};

/* False: too much to be drawn, or no memory. */
bool fay_drawing_lay_out(struct fay_drawing *drawing);

#endif
