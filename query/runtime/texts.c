/* SPDX-License-Identifier: MIT */
/*
 * Strings of up to FAY_TEXT_MAX bytes as functions that generated probes call: compiled to LLVM
 * bitcode when Fay is built, linked into a query's module, guarded and verified with it. A string
 * is copied once; its length, its hash, what is compared and what is sent are all of that copy,
 * also if the program changes it meanwhile. The buffer is not cleared: what lies behind the
 * string's last byte is never looked at.
 */
#include "fay/event.h"
#include "fay/text.h"

#define PAGE 4096u
/* bytes that are read first, if the string before was shorter: most are */
#define FIRST 256u

extern int64_t fay_try_read(void *to, uint64_t size, uint64_t address);
/* Generated: fay_emit() to the image's state of texts. */
extern uint64_t fay_query_emit_text(void *local, const void *row);

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bytes of a word that has `count` of them, below 8. */
static uint64_t bytes_below(uint64_t count)
{
	return ((uint64_t)1 << (8 * (count & 7))) - 1;
}

/* Bytes before the first NUL, of `size` that were read; `size` if there is none. */
static uint64_t length_in(const struct fay_text_buffer *text, uint64_t size)
{
	for (uint64_t i = 0; i < FAY_TEXT_WORDS; i++) {
		uint64_t word = text->words[i];
		uint64_t marks = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
		if (8 * i >= size)
			break;
		if (marks)
			return least(8 * i + (uint64_t)__builtin_ctzll(marks) / 8, size);
	}
	return size;
}

/* No read crosses into a page that it need not: a string may end just before one that is not
 * there. */
static uint64_t read_first(struct fay_text_buffer *text, uint64_t address, uint64_t limit)
{
	uint64_t most = text->length < FIRST ? FIRST : FAY_TEXT_MAX,
		 size = least(least(most, limit), PAGE - address % PAGE);
	return fay_try_read(text->words, size, address) ? 0 : size;
}

/* All of it, or what lies on the first page. */
static uint64_t read_all(struct fay_text_buffer *text, uint64_t address, uint64_t limit)
{
	uint64_t size = least(limit, FAY_TEXT_MAX);
	if (!fay_try_read(text->words, size, address))
		return size;
	size = least(size, PAGE - address % PAGE);
	return fay_try_read(text->words, size, address) ? 0 : size;
}

/* Whether something follows. */
static uint64_t goes_on(uint64_t address)
{
	uint8_t byte;
	fay_try_read(&byte, sizeof(byte), address);
	return byte != 0;
}

/* The string at `address`, at most `limit` bytes of it. What cannot be read is "". */
void fay_query_text_read(struct fay_text_buffer *text, uint64_t address, uint64_t limit);
void fay_query_text_read(struct fay_text_buffer *text, uint64_t address, uint64_t limit)
{
	uint64_t size = read_first(text, address, limit), length = length_in(text, size), cut = 0;
	if (size && length == size && size < limit) {
		size = read_all(text, address, limit);
		length = length_in(text, size);
		cut = length == FAY_TEXT_MAX && limit > FAY_TEXT_MAX &&
		      goes_on(address + FAY_TEXT_MAX);
	}
	/* zeros up to a multiple of 8, and in the first two words */
	uint64_t last = length / 8;
	if (last < FAY_TEXT_WORDS)
		text->words[last] &= bytes_below(length);
	if (!last)
		text->words[1] = 0;
	text->length = length;
	text->cut = cut;
}

/* What stands for it in rows, into text->cell. */
void fay_query_text_cell(struct fay_text_buffer *text, uint64_t k0, uint64_t k1);
void fay_query_text_cell(struct fay_text_buffer *text, uint64_t k0, uint64_t k1)
{
	text->cell.low = text->words[0];
	text->cell.high = text->words[1];
	if (text->length > FAY_TEXT_INLINE)
		text->cell = fay_text_hash((struct fay_hash_key){ { k0, k1 } }, text->words,
					   text->length, text->cut);
}

/* Sends a long text, if it is none of those that were sent lately. */
void fay_query_text_send(void *local, struct fay_text_scratch *scratch,
			 const struct fay_text_buffer *text, uint64_t low, uint64_t high);
void fay_query_text_send(void *local, struct fay_text_scratch *scratch,
			 const struct fay_text_buffer *text, uint64_t low, uint64_t high)
{
	uint64_t *seen = &scratch->seen[low & (FAY_TEXT_SEEN - 1)];
	if (!(high >> 56) || *seen == low)
		return;
	for (uint64_t i = 0; i < FAY_TEXT_PIECES; i++) {
		struct fay_text_row row = { { low, high }, text->length | i << 32, { 0 } };
		if (i * FAY_TEXT_PIECE >= text->length)
			break;
		for (uint64_t k = 0; k < FAY_TEXT_PIECE_WORDS; k++)
			row.words[k] =
				text->words[(i * FAY_TEXT_PIECE_WORDS + k) & (FAY_TEXT_WORDS - 1)];
		if (fay_query_emit_text(local, &row)) {
			scratch->lost++;
			return;
		}
	}
	*seen = low;
}

/* 8 bytes from any place of the text on. */
uint64_t fay_query_text_word(const struct fay_text_buffer *text, uint64_t place);
uint64_t fay_query_text_word(const struct fay_text_buffer *text, uint64_t place)
{
	uint64_t word;
	__builtin_memcpy(&word, (const char *)text->words + (place & (FAY_TEXT_MAX - 1)),
			 sizeof(word));
	return word;
}
