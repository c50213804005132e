/* SPDX-License-Identifier: MIT */
// DER: tag and length, short and long form, along one level.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t tag[32], bytes, indefinite, cut;
};

PROBE("libcrypto!d2i_X509")
{
	uint8_t b[128];
	uint32_t at = 0;

	if (READ(b, event->arg[1]))
		return;
	while (at + 2 <= sizeof(b)) {
		uint8_t tag = b[at] & 31;
		uint32_t length = b[at + 1];

		at += 2;
		state->tag[tag]++;
		if (length == 128) {
			state->indefinite++;
			return;
		}
		if (length > 128) {
			unsigned n = length & 127;

			length = 0;
			if (n > 2)
				return;
			for (unsigned i = 0; i < n; i++) {
				if (at >= sizeof(b)) {
					state->cut++;
					return;
				}
				length = length << 8 | b[at++];
			}
		}
		state->bytes += length;
		at += length;
	}
}
