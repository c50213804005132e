/* SPDX-License-Identifier: MIT */
/* An extension for packets.host: a hash of eight bytes at a time, and of the rest one by one. */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 0);
FAY_ENTRY(words);

uint64_t words(const uint8_t *data, uint64_t size);
uint64_t words(const uint8_t *data, uint64_t size)
{
	uint64_t hash = 0, i = 0, word;

	for (; i + 8 <= size; i += 8) {
		__builtin_memcpy(&word, data + i, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	}
	for (; i < size; i++)
		hash = (hash ^ data[i]) * 0x100000001b3u;
	return hash;
}
