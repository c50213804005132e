/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "examples.h"

static struct fay_buffer image;

void example_open(const char *name, struct loaded *l)
{
	struct fay_compile_options options = { .size = sizeof(options) };
	struct fay_buffer again;
	struct fay_error error = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.c", FAY_EXAMPLES, name);
	fay_buffer_init(&image);
	fay_buffer_init(&again);
	if (fay_compile_source(path, &options, &image, &error))
		fail_msg("%s: %s", name, error.message);
	assert_int_equal(fay_compile_source(path, &options, &again, &error), 0);
	assert_int_equal(image.size, again.size);
	assert_memory_equal(image.data, again.data, image.size);
	fay_buffer_deinit(&again);
	image_verify(name, &image);
	image_load(&image, l);
}

void example_close(struct loaded *l)
{
	image_unload(l);
	fay_buffer_deinit(&image);
}

uint64_t example_word(struct loaded *l, const char *state, unsigned index)
{
	return ((uint64_t *)image_state(l, state))[index];
}

uint64_t example_total(struct loaded *l, const char *table, uint64_t key)
{
	const struct fay_image_state *s = image_state_info(l, table);
	const uint8_t *rows = l->local + s->offset + sizeof(struct fay_table_header);
	uint64_t sum = 0, used = 0;

	for (uint32_t r = 0; r < s->rows; r++) {
		const uint64_t *row = (const void *)(rows + (size_t)r * s->row_size);

		used += !!row[0];
		if (row[0] && row[1] == key)
			sum += row[l->columns[s->first_column + s->keys].offset / 8];
	}
	assert_int_equal(used, ((const struct fay_table_header *)(l->local + s->offset))->used);
	for (unsigned i = 0; i < helper_log.flushed_rows; i++)
		if (helper_log.rows[i].key == key)
			sum += helper_log.rows[i].value;
	return sum;
}
