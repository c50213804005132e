/* SPDX-License-Identifier: MIT */
/* SipHash with one round a word and three at the end (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012), of whole 8-byte words. */
#ifndef FAY_HASH_H
#define FAY_HASH_H

#include <stdint.h>

struct fay_hash {
	uint64_t v0, v1, v2, v3, bytes;
};

struct fay_hash_key {
	uint64_t words[2];
};

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

/* Three rounds and what they give; of 128 bits it is called twice. */
static inline uint64_t fay_hash_squeeze(struct fay_hash *h)
{
	fay_hash_round(h);
	fay_hash_round(h);
	fay_hash_round(h);
	return h->v0 ^ h->v1 ^ h->v2 ^ h->v3;
}

#endif
