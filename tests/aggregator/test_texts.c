/* SPDX-License-Identifier: MIT */
/* The table of texts: pieces in any order and more than once, pieces of a program that lies, and
 * more texts than there is memory for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fay/error.h"
#include "fay/text.h"
#include "tests/xorshift.h"

static const struct fay_hash_key key = { { 1, 2 } };
static uint64_t state = 88172645463325252u;
static struct fay_texts *texts;
static struct fay_text_row pieces[FAY_TEXT_PIECES];

static uint64_t below(uint64_t limit)
{
	return (xorshift(&state) >> 11) % limit;
}

static void begin(uint64_t limit)
{
	struct fay_error error;
	assert_int_equal(fay_texts_create(key, limit, &texts, &error), 0);
}

/* Pieces of a string as a probe makes them; how many. */
static unsigned cut_up(const char *string, bool cut)
{
	_Alignas(8) char bytes[FAY_TEXT_PIECES * FAY_TEXT_PIECE] = { 0 };
	size_t length = strlen(string);
	assert_true(length > FAY_TEXT_INLINE && length <= FAY_TEXT_MAX);
	memcpy(bytes, string, length);
	struct fay_text_cell cell = fay_text_hash(key, (const uint64_t *)bytes, length, cut);
	unsigned count = (unsigned)((length + FAY_TEXT_PIECE - 1) / FAY_TEXT_PIECE);
	for (unsigned i = 0; i < count; i++) {
		pieces[i] =
			(struct fay_text_row){ .cell = cell, .place = length | (uint64_t)i << 32 };
		memcpy(pieces[i].words, bytes + i * FAY_TEXT_PIECE, FAY_TEXT_PIECE);
	}
	return count;
}

static void take(const struct fay_text_row *piece)
{
	fay_texts_take(texts, (const uint8_t *)piece);
}

static struct fay_text_bytes text(void)
{
	return fay_text_of(texts, (const uint8_t *)&pieces[0].cell);
}

static void is(const char *string)
{
	assert_false(text().lost);
	assert_int_equal(text().length, strlen(string));
	assert_memory_equal(text().bytes, string, strlen(string));
}

static void random_string(char *string, size_t length)
{
	for (size_t i = 0; i < length; i++)
		string[i] = (char)(1 + below(255));
	string[length] = 0;
}

static void short_ones(void **unused)
{
	static const char *const strings[] = { "", "a", "fifteen bytes.." };
	for (size_t i = 0; i < 3; i++) {
		char cell[FAY_TEXT_CELL] = { 0 };
		strncpy(cell, strings[i], FAY_TEXT_INLINE);
		struct fay_text_bytes is = fay_text_of(NULL, (const uint8_t *)cell);
		assert_int_equal(is.length, strlen(strings[i]));
		assert_memory_equal(is.bytes, strings[i], is.length);
	}
}

static void any_order(void **unused)
{
	static char string[FAY_TEXT_MAX + 1];
	begin(FAY_TEXTS_LIMIT);
	for (unsigned round = 0; round < 2000; round++) {
		random_string(string, 16 + below(round % 8 ? 300 : FAY_TEXT_MAX - 15));
		unsigned count = cut_up(string, false), left = count;
		bool taken[FAY_TEXT_PIECES] = { false };
		assert_true(text().lost);
		while (left) {
			unsigned i = (unsigned)below(count);
			assert_true(text().lost);
			take(&pieces[i]);
			left -= !taken[i];
			taken[i] = true;
		}
		is(string);
		take(&pieces[0]);
		is(string);
	}
	assert_int_equal(fay_texts_lost(texts), 0);
	fay_texts_destroy(texts);
}

/* The same bytes, once whole and once cut, are two texts. */
static void cut(void **unused)
{
	static char string[FAY_TEXT_MAX + 1];
	begin(FAY_TEXTS_LIMIT);
	memset(string, 'x', FAY_TEXT_MAX);
	for (unsigned i = cut_up(string, true); i-- > 0;)
		take(&pieces[i]);
	is(string);
	assert_true(text().cut);
	assert_memory_equal(text().bytes + text().length, "...", FAY_TEXT_CUT_MARK);
	cut_up(string, false);
	assert_true(text().lost);
	fay_texts_destroy(texts);
}

/* Of pieces that were changed, no text comes; the right ones still do. */
static void lies(void **unused)
{
	char string[200];
	begin(FAY_TEXTS_LIMIT);
	for (unsigned round = 0; round < 20000; round++) {
		random_string(string, 16 + below(180));
		unsigned count = cut_up(string, false);
		struct fay_text_row changed = pieces[below(count)];
		((uint8_t *)&changed)[below(sizeof(changed))] ^= (uint8_t)(1u << below(8));
		take(&changed);
		for (unsigned i = 0; i < count; i++)
			take(&pieces[i]);
		/* one whose length or number is wrong can keep a text away, never change it */
		if (!text().lost)
			is(string);
	}
	for (unsigned round = 0; round < 20000; round++) {
		struct fay_text_row noise;
		for (size_t i = 0; i < sizeof(noise) / 8; i++)
			((uint64_t *)&noise)[i] = xorshift(&state) >> below(64);
		take(&noise);
		assert_true(fay_text_of(texts, (const uint8_t *)&noise.cell).lost ||
			    noise.cell.high >> 56 == 0);
	}
	fay_texts_destroy(texts);
}

/* What comes first stays, the others are counted. */
static void too_many(void **unused)
{
	char string[64];
	unsigned kept = 0;
	begin(8u << 20);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(string, sizeof(string), "a string that is there once, number %u", i);
		assert_int_equal(cut_up(string, false), 1);
		take(&pieces[0]);
		if (text().lost)
			continue;
		is(string);
		kept++;
	}
	assert_true(kept > 20000 && kept < 100000);
	assert_int_equal(fay_texts_lost(texts), 100000 - kept);
	fay_texts_destroy(texts);
}

/* A program that knows the texts' key makes cells that would all lie side by side by it. */
static void crowded(void **unused)
{
	struct fay_text_row row = { .place = FAY_TEXT_INLINE + 1 };
	clock_t began;
	begin(FAY_TEXTS_LIMIT);
	began = clock();
	for (unsigned i = 0; i < 100000; i++) {
		struct fay_hash hash;
		do {
			row.cell.low = xorshift(&state);
			row.cell.high = (uint64_t)FAY_TEXT_WHOLE << 56 | i;
			hash = fay_hash_begin(&key);
			fay_hash_word(&hash, row.cell.low);
			fay_hash_word(&hash, row.cell.high);
		} while (fay_hash_squeeze(&hash) & 0xfc000);
		take(&row);
	}
	assert_true(clock() - began < 5 * CLOCKS_PER_SEC);
	fay_texts_destroy(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_ones), cmocka_unit_test(any_order),
		cmocka_unit_test(cut),        cmocka_unit_test(lies),
		cmocka_unit_test(too_many),   cmocka_unit_test(crowded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
