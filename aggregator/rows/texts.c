/* SPDX-License-Identifier: MIT */
/*
 * The texts that cells of rows stand for, by their cells: open addressing, at most half full, the
 * bytes in blocks that stay where they are. Pieces may come in any order, several times, and from a
 * program that lies: a text counts once all of its pieces are there and have the cell's hash; one
 * that has not begins anew.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/error.h"
#include "fay/text.h"
#include "rows.h"

#define BLOCK (1u << 20)

struct entry {
	struct fay_text_cell cell; /* high 0: free */
	uint8_t *bytes;            /* rounded up to whole words, zero behind the last one */
	uint64_t pieces;           /* that are there, 1 << number */
	uint16_t length;
	bool whole;
};

struct fay_texts {
	struct fay_hash_key key;
	uint64_t limit, used; /* bytes */
	struct entry *entries;
	size_t count, size; /* size: a power of two */
	uint8_t *block;     /* the first words of one are the one before it */
	size_t block_used;
	uint64_t lost;
};

_Static_assert(FAY_TEXT_PIECES <= 64, "pieces are bits of a word");

int fay_texts_create(struct fay_hash_key key, uint64_t limit, struct fay_texts **texts,
		     struct fay_error *error)
{
	struct fay_texts *t = calloc(1, sizeof(*t));
	if (!t)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	t->key = key;
	t->limit = limit;
	*texts = t;
	return FAY_OK;
}

void fay_texts_destroy(struct fay_texts *t)
{
	if (!t)
		return;
	while (t->block) {
		uint8_t *before;
		memcpy(&before, t->block, sizeof(before));
		free(t->block);
		t->block = before;
	}
	free(t->entries);
	free(t);
}

/* Where the cell is, or would go. Cells are hashes, but those of a lying program's choice, which
 * can read the texts' key: places are by a key that is known here alone. */
static struct entry *find(struct entry *entries, size_t size, struct fay_text_cell cell)
{
	struct fay_hash hash = fay_hash_begin(fay_hash_key());
	fay_hash_word(&hash, cell.low);
	fay_hash_word(&hash, cell.high);
	size_t at = fay_hash_squeeze(&hash) & (size - 1);
	while (entries[at].cell.high &&
	       (entries[at].cell.low != cell.low || entries[at].cell.high != cell.high))
		at = (at + 1) & (size - 1);
	return &entries[at];
}

static bool charge(struct fay_texts *t, uint64_t bytes)
{
	if (bytes > t->limit - t->used)
		return false;
	t->used += bytes;
	return true;
}

static bool grow(struct fay_texts *t)
{
	size_t size = t->size ? 2 * t->size : 256;
	if (!charge(t, (size - t->size) * sizeof(struct entry)))
		return false;
	struct entry *larger = calloc(size, sizeof(*larger));
	if (!larger)
		return false;
	for (size_t i = 0; i < t->size; i++)
		if (t->entries[i].cell.high)
			*find(larger, size, t->entries[i].cell) = t->entries[i];
	free(t->entries);
	t->entries = larger;
	t->size = size;
	return true;
}

static uint8_t *room_for(struct fay_texts *t, size_t bytes)
{
	if (!t->block || BLOCK - t->block_used < bytes) {
		if (!charge(t, BLOCK))
			return NULL;
		uint8_t *block = calloc(1, BLOCK);
		if (!block)
			return NULL;
		memcpy(block, &t->block, sizeof(t->block));
		t->block = block;
		t->block_used = sizeof(t->block);
	}
	t->block_used += bytes;
	return t->block + t->block_used - bytes;
}

/* The text of that cell, made if need be; NULL: there is no room. */
static struct entry *entry_of(struct fay_texts *t, struct fay_text_cell cell, uint16_t length)
{
	struct entry *entry = t->size ? find(t->entries, t->size, cell) : NULL;
	if (entry && entry->cell.high)
		return entry;
	if (2 * (t->count + 1) > t->size && !grow(t))
		return NULL;
	uint8_t *bytes = room_for(t, (length + FAY_TEXT_CUT_MARK + 7u) & ~7u);
	if (!bytes)
		return NULL;
	entry = find(t->entries, t->size, cell);
	*entry = (struct entry){ .cell = cell, .bytes = bytes, .length = length };
	t->count++;
	return entry;
}

static uint64_t all_pieces(const struct entry *entry)
{
	return UINT64_MAX >> (64 - (entry->length + FAY_TEXT_PIECE - 1) / FAY_TEXT_PIECE);
}

static void check(const struct fay_texts *t, struct entry *entry)
{
	uint64_t mark = entry->cell.high >> 56;
	if (entry->pieces != all_pieces(entry))
		return;
	struct fay_text_cell is = fay_text_hash(t->key, (const uint64_t *)entry->bytes,
						entry->length, mark == FAY_TEXT_CUT);
	entry->pieces = 0;
	entry->whole = is.low == entry->cell.low && is.high == entry->cell.high;
	if (entry->whole && mark == FAY_TEXT_CUT)
		memcpy(entry->bytes + entry->length, "...", FAY_TEXT_CUT_MARK);
}

void fay_texts_take(struct fay_texts *t, const uint8_t *bytes)
{
	struct fay_text_row row;
	memcpy(&row, bytes, sizeof(row));
	uint64_t length = row.place & UINT32_MAX, number = row.place >> 32,
		 start = number * FAY_TEXT_PIECE, mark = row.cell.high >> 56;
	if (length <= FAY_TEXT_INLINE || length > FAY_TEXT_MAX || number >= FAY_TEXT_PIECES ||
	    start >= length || (mark != FAY_TEXT_WHOLE && mark != FAY_TEXT_CUT))
		return;
	struct entry *entry = entry_of(t, row.cell, (uint16_t)length);
	if (!entry) {
		t->lost += number == 0;
		return;
	}
	if (entry->whole || entry->length != length)
		return;
	uint64_t left = length - start;
	memcpy(entry->bytes + start, row.words, left < FAY_TEXT_PIECE ? left : FAY_TEXT_PIECE);
	entry->pieces |= UINT64_C(1) << number;
	check(t, entry);
}

void fay_texts_take_record(struct fay_texts *t, const uint8_t *record, size_t size)
{
	struct fay_text_buffer text;
	size_t header = offsetof(struct fay_text_buffer, words);
	if (size < header || size > sizeof(text))
		return;
	memcpy(&text, record, size);
	uint64_t mark = text.cell.high >> 56;
	if (text.length <= FAY_TEXT_INLINE || text.length > FAY_TEXT_MAX ||
	    text.length > size - header || (mark != FAY_TEXT_WHOLE && mark != FAY_TEXT_CUT))
		return;
	struct entry *entry = entry_of(t, text.cell, (uint16_t)text.length);
	t->lost += !entry;
	if (!entry || entry->whole || entry->length != text.length)
		return;
	memcpy(entry->bytes, text.words, text.length);
	entry->pieces = all_pieces(entry);
	check(t, entry);
}

uint64_t fay_texts_lost(const struct fay_texts *t)
{
	return t->lost;
}

static struct fay_text_bytes bytes_of(const struct entry *entry)
{
	return (struct fay_text_bytes){ .bytes = (const char *)entry->bytes,
					.length = entry->length,
					.cut = entry->cell.high >> 56 == FAY_TEXT_CUT };
}

void fay_texts_each(const struct fay_texts *t, fay_texts_function *function, void *context)
{
	for (size_t i = 0; i < t->size; i++)
		if (t->entries[i].whole)
			function(context, t->entries[i].cell, bytes_of(&t->entries[i]));
}

struct fay_text_bytes fay_text_of(const struct fay_texts *t, const uint8_t *bytes)
{
	static const char lost[] = "<text lost>";
	struct fay_text_cell cell;
	memcpy(&cell, bytes, sizeof(cell));
	if (!(cell.high >> 56))
		return (struct fay_text_bytes){ .bytes = (const char *)bytes,
						.length = strnlen((const char *)bytes,
								  FAY_TEXT_INLINE) };
	const struct entry *entry = t && t->size ? find(t->entries, t->size, cell) : NULL;
	if (!entry || !entry->whole)
		return (struct fay_text_bytes){ .bytes = lost,
						.length = sizeof(lost) - 1,
						.lost = true };
	return bytes_of(entry);
}
