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

/* --- hash.c --- */

/*
 * Hashes of keys for the aggregator's tables: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012) of whole 8-byte words, with a key that is drawn once a process. Keys of
 * rows come from traced programs: one that knew the hash could choose rows that all lie in one
 * chain. Nothing that is printed or sent may depend on these hashes.
 */
struct fay_hash {
	uint64_t v0, v1, v2, v3, bytes;
};

struct fay_hash_key {
	uint64_t words[2];
};

/* The process's key. */
const struct fay_hash_key *fay_hash_key(void);

static inline uint64_t fay_hash_rotate(uint64_t word, unsigned by)
{
	return word << by | word >> (64 - by);
}

static inline void fay_hash_round(struct fay_hash *h)
{
	h->v0 += h->v1;
	h->v2 += h->v3;
	h->v1 = fay_hash_rotate(h->v1, 13) ^ h->v0;
	h->v3 = fay_hash_rotate(h->v3, 16) ^ h->v2;
	h->v0 = fay_hash_rotate(h->v0, 32);
	h->v2 += h->v1;
	h->v0 += h->v3;
	h->v1 = fay_hash_rotate(h->v1, 17) ^ h->v2;
	h->v3 = fay_hash_rotate(h->v3, 21) ^ h->v0;
	h->v2 = fay_hash_rotate(h->v2, 32);
}

static inline struct fay_hash fay_hash_begin(const struct fay_hash_key *key)
{
	return (struct fay_hash){ .v0 = key->words[0] ^ 0x736f6d6570736575u,
				  .v1 = key->words[1] ^ 0x646f72616e646f6du,
				  .v2 = key->words[0] ^ 0x6c7967656e657261u,
				  .v3 = key->words[1] ^ 0x7465646279746573u };
}

static inline void fay_hash_word(struct fay_hash *h, uint64_t word)
{
	h->v3 ^= word;
	fay_hash_round(h);
	h->v0 ^= word;
}

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
	for (int i = 0; i < 3; i++)
		fay_hash_round(h);
	return h->v0 ^ h->v1 ^ h->v2 ^ h->v3;
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

#endif
