/* SPDX-License-Identifier: MIT */
/*
 * Rows of one state by their keys, merged column by column as the state's operators say. The rows
 * come from traced programs and from other machines: any bytes may be in them.
 */
#ifndef FAY_AGGREGATOR_ROWS_H
#define FAY_AGGREGATOR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fay/aggregator.h"
#include "fay/text.h"

/* --- hash.c --- */

/*
 * Hashes of keys for the aggregator's tables (SipHash, fay/text.h), with a key that is drawn once a
 * process. Keys of rows come from traced programs: one that knew the hash could choose rows that
 * all lie in one chain. Nothing that is printed or sent may depend on these hashes.
 */

/* The process's key. */
const struct fay_hash_key *fay_hash_key(void);

/* `size`: a multiple of 8. */
static inline void fay_hash_add(struct fay_hash *h, const void *bytes, size_t size)
{
	uint64_t word;

	for (size_t at = 0; at < size; at += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + at, sizeof(word));
		fay_hash_word(h, word);
	}
	h->bytes += size;
}

static inline uint64_t fay_hash_end(struct fay_hash *h)
{
	fay_hash_word(h, h->bytes << 56);
	h->v2 ^= 0xff;
	return fay_hash_squeeze(h);
}

struct fay_budget {
	uint64_t used, limit; /* bytes */
};

/* --- rows.c: rows of one state by key --- */

/*
 * Rows without duplicates of their key columns' bytes: rows in the order they came, and an
 * open-addressing index of row number + 1. A state without keys has at most one row.
 */
struct fay_rows {
	const struct fay_schema_state *state;
	const struct fay_schema_column *columns; /* of the state: keys, then values */
	struct fay_budget *budget;
	uint8_t *rows;
	uint32_t *index;
	size_t count, room, index_size;
	struct fay_hash_key hash_key;
	/* of fay_rows_again() */
	bool again;
	size_t sorted; /* the first ones, by key */
};

void fay_rows_init(struct fay_rows *rows, const struct fay_schema *schema, uint32_t state,
		   struct fay_budget *budget);
void fay_rows_deinit(struct fay_rows *rows);
/* The row with the same key, or NULL. Valid until the next merge. */
uint8_t *fay_rows_find(const struct fay_rows *rows, const uint8_t *row);
/* Merges one row in. Bytes that belong to no column are zeroed, the tag of a table's row included.
 * False: over the budget. */
bool fay_rows_merge(struct fay_rows *rows, const uint8_t *row);
/* The same for rows that lie one behind the other. */
#define FAY_ROWS_AT_ONCE 16u
bool fay_rows_merge_many(struct fay_rows *rows, const uint8_t *first, size_t count);
bool fay_rows_merge_all(struct fay_rows *to, const struct fay_rows *from);
/* Sorts by key, column by column, as values of their type. The index is void afterwards. */
void fay_rows_sort(struct fay_rows *rows);

/*
 * Of a table that is merged again and again from parts that have the same keys most of the time:
 * its rows keep their places, so that few are added and have to be sorted. This is called before
 * each time; all rows are then gone but for their keys. They have a tag, 8 bytes in front of the
 * keys, which says whether one has come since.
 */
void fay_rows_again(struct fay_rows *rows);
/* Copies of the rows that have come since, by key, tags zeroed: *sorted is the caller's. False: no
 * memory. */
bool fay_rows_take_sorted(struct fay_rows *rows, uint8_t **sorted, size_t *count);

#endif
