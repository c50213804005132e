/* SPDX-License-Identifier: MIT */
/*
 * Strings and a ring buffer for probes. Strings are bytes in an array whose size is known: the
 * probe's copy of the program's memory, event->comm, a column of a row. Each function looks at
 * `size` bytes at most, a constant, and at nothing behind a NUL.
 */
#ifndef FAY_STRING_H
#define FAY_STRING_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes before the NUL; `size` if there is none. */
static inline unsigned fay_string_length(const char *s, unsigned size)
{
	unsigned n = 0;

	while (n < size && s[n])
		n++;
	return n;
}

/* As strncmp(a, b, size). */
static inline int fay_string_compare(const char *a, const char *b, unsigned size)
{
	for (unsigned i = 0; i < size; i++) {
		unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];

		if (x != y)
			return x < y ? -1 : 1;
		if (!x)
			return 0;
	}
	return 0;
}

static inline bool fay_string_equal(const char *a, const char *b, unsigned size)
{
	return fay_string_compare(a, b, size) == 0;
}

/* Whether s, of `size` bytes, begins with prefix, a string literal. */
#define fay_string_begins(s, size, prefix) fay_string_begins_(s, size, prefix, sizeof(prefix) - 1)
static inline bool fay_string_begins_(const char *s, unsigned size, const char *prefix,
				      unsigned length)
{
	if (length > size)
		return false;
	for (unsigned i = 0; i < length; i++)
		if (s[i] != prefix[i])
			return false;
	return true;
}

/* Where word, a string literal, is in s: the first place, or -1. */
#define fay_string_find(s, size, word) fay_string_find_(s, size, word, sizeof(word) - 1)
static inline int fay_string_find_(const char *s, unsigned size, const char *word, unsigned length)
{
	for (unsigned at = 0; at + length <= size; at++) {
		unsigned n = 0;

		while (n < length && s[at + n] == word[n])
			n++;
		if (n == length)
			return (int)at;
		if (!s[at])
			return -1;
	}
	return -1;
}

/* FNV-1a of the bytes before the NUL: what fay_name_hash() gives for the same string. */
static inline uint64_t fay_string_hash(const char *s, unsigned size)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (unsigned i = 0; i < size && s[i]; i++)
		hash = (hash ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/*
 * The last `count` values of a type, a power of two of them:
 *
 *     FAY_SCRATCH(FAY_RING_STRUCT(struct call, 16), calls);
 *     *fay_ring_next(&calls) = (struct call){...};        a new one, in place of the oldest
 *     fay_ring_at(&calls, 0)                              pointer to the latest, 1: the one before;
 *							   all zero if there was none
 */
#define FAY_RING_STRUCT(type, count)                                                               \
	struct {                                                                                   \
		uint64_t head;                                                                     \
		type slot[count];                                                                  \
		_Static_assert((count) > 0 && !((count) & ((count) - 1)),                          \
			       "a ring has a power of two of slots");                              \
	}
#define FAY_RING_SLOTS_(ring) (sizeof((ring)->slot) / sizeof((ring)->slot[0]))
#define fay_ring_next(ring) (&(ring)->slot[(ring)->head++ % FAY_RING_SLOTS_(ring)])
#define fay_ring_at(ring, back) (&(ring)->slot[((ring)->head - 1 - (back)) % FAY_RING_SLOTS_(ring)])

#endif
