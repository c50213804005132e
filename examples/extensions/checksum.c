/* SPDX-License-Identifier: MIT */
/* Extensions for packets.host: two checksums of all bytes, Adler-32 (RFC 1950) and FNV-1a. */
#include <fay/host/entry.h>

FAY_EXTENSION(2, 0);
FAY_ENTRY(adler32);
FAY_ENTRY(fnv1a);

uint64_t adler32(const uint8_t *data, uint64_t size);
uint64_t adler32(const uint8_t *data, uint64_t size)
{
	uint32_t a = 1, b = 0;

	for (uint64_t i = 0; i < size; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return (uint32_t)(b << 16 | a);
}

uint64_t fnv1a(const uint8_t *data, uint64_t size);
uint64_t fnv1a(const uint8_t *data, uint64_t size)
{
	uint32_t hash = 0x811c9dc5;

	for (uint64_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 0x01000193;
	return hash;
}
