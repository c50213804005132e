/* SPDX-License-Identifier: MIT */
/*
 * The oracle of the verifier's fuzzers: an image that was accepted is executed on hostile inputs,
 * and every promise of the report is checked.
 */
#ifndef FAY_TESTS_SOUNDNESS_H
#define FAY_TESTS_SOUNDNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/verify.h"

#define SOUNDNESS_LOCAL 256u /* state sizes of template.S */
#define SOUNDNESS_GLOBAL 64u

struct soundness_random {
	uint64_t state;
};
uint64_t soundness_next(struct soundness_random *random);
static inline uint64_t soundness_below(struct soundness_random *random, uint64_t limit)
{
	return soundness_next(random) % limit;
}

struct fay_image;
/* Numbers at which comparisons and extensions change their mind, and those that the code mentions.
 * */
uint64_t soundness_number(struct soundness_random *random, const struct fay_image *image);

/* The field of the event that byte `byte` belongs to: one bit of fay_probe_facts.event_fields. */
uint32_t soundness_field_of(unsigned byte);

/*
 * A template image read once; code is put into its .text.
 */
#define SOUNDNESS_TABLES 16u
struct soundness_template {
	uint8_t *file;
	size_t size;
	size_t code_at; /* file offset of the bytes to replace */
	size_t code_size;
	uint64_t text; /* their virtual address */
	/* of 32 bytes of constants, then SOUNDNESS_TABLES words for jump tables */
	uint64_t rodata;
	uint64_t slots[FAY_HELPER_COUNT];
};
bool soundness_template_read(const char *path, struct soundness_template *template);

/*
 * Executes probe 0 of an accepted image `runs` times, each run twice with other secrets. Returns
 * NULL, or a description of the broken promise, static.
 */
const char *soundness_check(const void *file, size_t size, const struct fay_verdict *verdict,
			    uint64_t seed, unsigned runs);

#endif
