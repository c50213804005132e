/* SPDX-License-Identifier: MIT */
/* An aggregate for rows.host: a checksum of values, whatever their order (sums of FNV-1a). */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 8);
FAY_ENTRY(checksum);

int64_t checksum(const uint8_t *value, uint64_t size, uint64_t *sum);
int64_t checksum(const uint8_t *value, uint64_t size, uint64_t *sum)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (uint64_t i = 0; i < size; i++)
		hash = (hash ^ value[i]) * 0x100000001b3;
	return (int64_t)(*sum += hash);
}
