/* SPDX-License-Identifier: MIT */
// Protocol Buffers: field numbers and wire types of one message.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t wire_type[8], field[32], malformed;
};

static inline int varint(const uint8_t *b, unsigned size, unsigned *at, uint64_t *value)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (*at >= size)
			return -1;
		v |= (uint64_t)(b[*at] & 127) << shift;
		if (!(b[(*at)++] & 128)) {
			*value = v;
			return 0;
		}
	}
	return -1;
}

PROBE("libprotobuf!Parse")
{
	uint8_t b[128];
	unsigned at = 0;

	if (READ(b, event->arg[1]))
		return;
	for (int n = 0; n < 16 && at < sizeof(b); n++) {
		uint64_t key, value;

		if (varint(b, sizeof(b), &at, &key))
			break;
		state->wire_type[key & 7]++;
		state->field[(key >> 3) & 31]++;
		switch (key & 7) {
		case 0:
			if (varint(b, sizeof(b), &at, &value))
				goto bad;
			break;
		case 1:
			at += 8;
			break;
		case 2:
			if (varint(b, sizeof(b), &at, &value) || value > sizeof(b))
				goto bad;
			at += (unsigned)value;
			break;
		case 5:
			at += 4;
			break;
		default:
			goto bad;
		}
	}
	return;
bad:
	state->malformed++;
}
