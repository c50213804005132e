/* SPDX-License-Identifier: MIT */
/* A filter for values.host: digits with a check digit behind them (ISO/IEC 7812-1, "Luhn"). */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 0);
FAY_ENTRY(luhn);

uint64_t luhn(const uint8_t *value, uint64_t size);
uint64_t luhn(const uint8_t *value, uint64_t size)
{
	uint32_t sum = 0, twice = 0;

	for (uint64_t i = size; i > 0; i--) {
		uint32_t digit = value[i - 1] - (uint32_t)'0';

		if (digit > 9)
			return 0;
		digit <<= twice;
		sum = (sum + digit - (digit > 9 ? 9 : 0)) % 10;
		twice ^= 1;
	}
	return size > 1 && sum == 0;
}
