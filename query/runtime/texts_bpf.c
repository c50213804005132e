/* SPDX-License-Identifier: MIT */
/*
 * What texts.c does for native probes, for BPF programs: compiled to LLVM bitcode for that target
 * when Fay is built, and made part of each program that calls it. The kernel's helpers read a
 * string up to its NUL. What indexes memory, and what ends a loop, is hidden from the optimiser:
 * the kernel's verifier has to see its bound.
 */
#include "fay/shm.h"
#include "fay/text.h"

#define PART __attribute__((always_inline))
#define HIDE(value) __asm__ volatile("" : "+r"(value))

/* The kernel's bpf_probe_read_user_str() and bpf_probe_read_kernel_str() (linux/bpf.h): bytes that
 * were read, the NUL included, or an error number, negative. */
typedef long read_helper(void *to, uint32_t size, const void *from);
#define READ_USER ((read_helper *)114)
#define READ_KERNEL ((read_helper *)115)

/* Generated: the ring's bpf_ringbuf_output(). */
extern uint64_t fay_query_emit_text(const void *record, uint64_t size);

/* One byte more than is kept, and the NUL. */
static PART inline uint32_t size_of(uint64_t limit)
{
	return limit < FAY_TEXT_MAX ? (uint32_t)limit + 1 : FAY_TEXT_MAX + 2;
}

static PART inline void finish(struct fay_text_buffer *text, long got)
{
	uint64_t length = got > 0 ? (uint64_t)got - 1 : 0, cut = length > FAY_TEXT_MAX;
	length = cut ? FAY_TEXT_MAX : length;
	uint64_t last = length / 8, mask = ((uint64_t)1 << (8 * (length & 7))) - 1;
	HIDE(last);
	if (last < FAY_TEXT_WORDS)
		text->words[last] &= mask;
	if (!last)
		text->words[1] = 0;
	text->length = length;
	text->cut = cut;
}

PART void fay_query_text_read(struct fay_text_buffer *text, uint64_t address, uint64_t limit);
PART void fay_query_text_read(struct fay_text_buffer *text, uint64_t address, uint64_t limit)
{
	finish(text, READ_KERNEL(text->words, size_of(limit), (const void *)address));
}

PART void fay_query_text_read_user(struct fay_text_buffer *text, uint64_t address, uint64_t limit);
PART void fay_query_text_read_user(struct fay_text_buffer *text, uint64_t address, uint64_t limit)
{
	finish(text, READ_USER(text->words, size_of(limit), (const void *)address));
}

PART void fay_query_text_cell(struct fay_text_buffer *text, uint64_t k0, uint64_t k1);
PART void fay_query_text_cell(struct fay_text_buffer *text, uint64_t k0, uint64_t k1)
{
	uint64_t length = text->length, whole = length / 8, last = whole, at = 0;
	text->cell.low = text->words[0];
	text->cell.high = text->words[1];
	if (length <= FAY_TEXT_INLINE)
		return;
	struct fay_hash hash = fay_text_hash_begin((struct fay_hash_key){ { k0, k1 } });
	HIDE(whole);
	if (whole > FAY_TEXT_WORDS)
		whole = FAY_TEXT_WORDS;
	while (at < whole) {
		fay_hash_word(&hash, *(volatile const uint64_t *)&text->words[at]);
		at++;
		HIDE(at);
	}
	HIDE(last);
	uint64_t rest = last < FAY_TEXT_WORDS && length % 8 ? text->words[last] : 0;
	text->cell = fay_text_hash_end(&hash, rest, length, text->cut);
}

PART void fay_query_text_send(void *local, struct fay_text_scratch *scratch,
			      struct fay_text_buffer *text, uint64_t low, uint64_t high);
PART void fay_query_text_send(void *local, struct fay_text_scratch *scratch,
			      struct fay_text_buffer *text, uint64_t low, uint64_t high)
{
	uint64_t number = low;
	HIDE(number);
	uint64_t *seen = &scratch->seen[number & (FAY_TEXT_SEEN - 1)];
	if (!(high >> 56) || *seen == low)
		return;
	uint64_t size = offsetof(struct fay_text_buffer, words) + ((text->length + 7) & ~7ul) + 4;
	HIDE(size);
	if (size > sizeof(*text))
		return;
	if (!fay_query_emit_text(text, size)) {
		*seen = low;
		return;
	}
	scratch->lost++; /* as in native probes, it is among the events that are lost, too */
	((struct fay_slot_header *)((char *)local - FAY_SLOT_HEADER))->lost_full++;
}

PART uint64_t fay_query_text_word(const struct fay_text_buffer *text, uint64_t place);
PART uint64_t fay_query_text_word(const struct fay_text_buffer *text, uint64_t place)
{
	HIDE(place);
	place &= FAY_TEXT_MAX - 1;
	/* x86-64 reads a word at any place */
	return *(volatile const uint64_t *)((const char *)text->words + place);
}
