/* SPDX-License-Identifier: MIT */
/*
 * Strings in rows. A column of a string has 16 bytes, whatever its length: up to 15 bytes the text
 * itself, padded with zeros. A longer one's are a hash of all of it, and its last byte says so. The
 * text comes once beside the rows, in pieces, which a table of the session's puts together. See
 * docs/decisions/0023-long-strings.md.
 */
#ifndef FAY_TEXT_H
#define FAY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAY_TEXT_MAX 4096u  /* bytes of a string; what is longer is cut there */
#define FAY_TEXT_INLINE 15u /* so many bytes are in the cell itself */
#define FAY_TEXT_WORDS (FAY_TEXT_MAX / 8)
#define FAY_TEXT_CELL 16u

/* A cell's last byte. */
enum { FAY_TEXT_SHORT, FAY_TEXT_WHOLE, FAY_TEXT_CUT };
struct fay_text_cell {
	uint64_t low, high; /* as they lie in a row, little-endian */
};

/* A piece of a text, one row of a stream. */
#define FAY_TEXT_PIECE_WORDS 13u
#define FAY_TEXT_PIECE (8 * FAY_TEXT_PIECE_WORDS) /* bytes */
#define FAY_TEXT_PIECES ((FAY_TEXT_MAX + FAY_TEXT_PIECE - 1) / FAY_TEXT_PIECE)
struct fay_text_row {
	struct fay_text_cell cell;
	uint64_t place; /* the whole text's bytes, and 2^32 times the piece's number */
	uint64_t words[FAY_TEXT_PIECE_WORDS];
};

/* A probe's own memory for texts, in LOCAL. */
#define FAY_TEXT_SEEN 1024u /* a power of two */
struct fay_text_scratch {
	uint64_t lost; /* texts that were not sent, for want of room; tried again each time */
	uint64_t seen[FAY_TEXT_SEEN]; /* low words of cells whose texts were sent */
};
/* A string as it was read. Words behind its last byte are left over from others. */
struct fay_text_buffer {
	uint64_t length; /* bytes */
	uint64_t cut;    /* 1: there were more */
	struct fay_text_cell cell;
	uint64_t words[FAY_TEXT_WORDS + 1];
};
/* BPF programs send a buffer up to its last used word, and 4 bytes more, as rows never are. */
static inline bool fay_text_is_record(size_t size)
{
	return size % 8 == 4;
}

/* --- SipHash with one round a word and three at the end (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012), of whole 8-byte words --- */

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

/* The cell of a string of more than FAY_TEXT_INLINE bytes, at most FAY_TEXT_MAX: SipHash of 128
 * bits, with a key that is the session's. In `words` the bytes behind the last one, up to a
 * multiple of 8, are zero. */
static inline struct fay_hash fay_text_hash_begin(struct fay_hash_key key)
{
	struct fay_hash h = fay_hash_begin(&key);
	h.v1 ^= 0xee;
	return h;
}
/* Once its whole words were absorbed; `rest`: what is left of it. */
static inline struct fay_text_cell fay_text_hash_end(struct fay_hash *h, uint64_t rest,
						     uint64_t length, uint64_t cut)
{
	struct fay_text_cell cell;
	fay_hash_word(h, rest | (length + cut) << 56);
	h->v2 ^= 0xee;
	cell.low = fay_hash_squeeze(h);
	h->v1 ^= 0xdd;
	cell.high = fay_hash_squeeze(h) >> 8 | (uint64_t)(cut ? FAY_TEXT_CUT : FAY_TEXT_WHOLE)
						       << 56;
	return cell;
}
static inline struct fay_text_cell fay_text_hash(struct fay_hash_key key, const uint64_t *words,
						 uint64_t length, uint64_t cut)
{
	struct fay_hash h = fay_text_hash_begin(key);
	for (uint64_t i = 0; i < FAY_TEXT_WORDS; i++) {
		if (8 * (i + 1) > length)
			break;
		fay_hash_word(&h, words[i]);
	}
	return fay_text_hash_end(&h, length % 8 ? words[length / 8 % FAY_TEXT_WORDS] : 0, length,
				 cut);
}

/* --- the session's table; aggregator/rows/texts.c --- */

struct fay_texts;
struct fay_text_bytes {
	const char *bytes; /* not NUL-terminated */
	size_t length;
	bool cut;  /* the string was longer, and FAY_TEXT_CUT_MARK bytes, "...", follow */
	bool lost; /* it is not known: `bytes` says so */
};

#define FAY_TEXTS_LIMIT (64u << 20) /* bytes */
struct fay_error;
/* `limit`: bytes of texts and of the table; beyond them texts are lost, which is counted. */
int fay_texts_create(struct fay_hash_key key, uint64_t limit, struct fay_texts **texts,
		     struct fay_error *error);
void fay_texts_destroy(struct fay_texts *texts);
/* A struct fay_text_row from a traced program, which is not trusted: a text is there once all of
 * its pieces are, and they have its hash. */
void fay_texts_take(struct fay_texts *texts, const uint8_t *row);
/* Every text that is there, with its cell. */
typedef void fay_texts_function(void *context, struct fay_text_cell cell,
				struct fay_text_bytes text);
void fay_texts_each(const struct fay_texts *texts, fay_texts_function *function, void *context);
/* A whole one from a BPF program: a struct fay_text_buffer up to its last used word. */
void fay_texts_take_record(struct fay_texts *texts, const uint8_t *record, size_t size);
/* Texts for which there was no room. */
uint64_t fay_texts_lost(const struct fay_texts *texts);

#define FAY_TEXT_CUT_MARK 3u
/* What a cell says; `texts` NULL: no long ones are known. Valid as long as the cell and the table.
 */
struct fay_text_bytes fay_text_of(const struct fay_texts *texts, const uint8_t *cell);

#endif
