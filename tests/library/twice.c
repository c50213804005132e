/* SPDX-License-Identifier: MIT */
/* An extension for twice.host: doubles words, tells a helper the size, and returns 2 * n. */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 0);
FAY_ENTRY(twice);

uint64_t note(uint64_t size);

int64_t twice(uint64_t *words, int64_t n, const uint8_t *again, uint64_t size);
int64_t twice(uint64_t *words, int64_t n, const uint8_t *again, uint64_t size)
{
	uint64_t noted;

	for (unsigned k = 0; k < 8; k++)
		words[k] *= 2;
	noted = note(size);
	return 2 * n + (noted && size ? again[0] & 1 : 0);
}
