/* SPDX-License-Identifier: MIT */
/*
 * A filter with a state: 1 for packets of an IPv4 source that has sent more than a hundred before.
 * A table of 4096 sources, looked up at four places; a source that finds no room there is left out.
 */
#include "packet.h"

FAY_EXTENSION(1, 32768);
FAY_ENTRY(talkers);

enum { SOURCES = 4096, PLACES = 4, MANY = 100 };

struct source {
	uint32_t address, packets;
};

uint64_t talkers(const uint8_t *packet, uint64_t size, uint64_t length, struct source *sources);
uint64_t talkers(const uint8_t *packet, uint64_t size, uint64_t length __attribute__((unused)),
		 struct source *sources)
{
	uint32_t type = 0, tag, address;
	uint64_t at = ethernet(packet, size, &type, &tag);

	if (!at || type != 0x0800 || at + 20 > size)
		return 0;
	address = be16(packet + at + 12) << 16 | be16(packet + at + 14);
	for (uint32_t i = 0; i < PLACES; i++) {
		struct source *s = &sources[((address * 0x9e3779b1u >> 20) + i) & (SOURCES - 1)];

		if (!s->packets)
			s->address = address;
		if (s->address != address)
			continue;
		s->packets += s->packets <= MANY;
		return s->packets > MANY;
	}
	return 0;
}
