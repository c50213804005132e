/* SPDX-License-Identifier: MIT */
/* An extension for packets.host that counts, over all packets, bytes by class in its own state. */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 32);
FAY_ENTRY(classes);

struct counts {
	uint64_t digits, letters, blanks, others;
};

/* How many letters there were so far, in 32 bits. */
uint64_t classes(const uint8_t *data, uint64_t size, struct counts *counts);
uint64_t classes(const uint8_t *data, uint64_t size, struct counts *counts)
{
	for (uint64_t i = 0; i < size; i++) {
		uint8_t c = data[i];

		if (c >= '0' && c <= '9')
			counts->digits++;
		else if ((uint8_t)((c | 32) - 'a') < 26)
			counts->letters++;
		else if (c == ' ' || c == '\t' || c == '\n')
			counts->blanks++;
		else
			counts->others++;
	}
	return (uint32_t)counts->letters;
}
