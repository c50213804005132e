/* SPDX-License-Identifier: MIT */
/* The images whose verification verify_speed.c measures. */
#ifndef FAY_BENCH_VERIFY_SHAPES_H
#define FAY_BENCH_VERIFY_SHAPES_H

#include <stddef.h>
#include <stdio.h>

/* Each shape writes one unit of code, of which `unit` is the number, and says how many instructions
 * that is. */
struct shape {
	const char *name;
	unsigned (*unit)(FILE *, unsigned unit);
	void (*after)(FILE *, unsigned units); /* behind the probe's ret, or NULL */
};
extern const struct shape shapes[];
extern const unsigned shape_count;

/* Assembles and links an image of some so many instructions in the directory. */
void make_image(const char *prologue, const char *directory, const struct shape *shape,
		unsigned instructions, char *image, size_t image_size);
void die(const char *what, const char *name) __attribute__((noreturn));

#endif
