/* SPDX-License-Identifier: MIT */
// PNG: chunk types by their property bits, and lengths.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t critical, ancillary, private_chunks, bytes, not_png;
};

PROBE("libpng!png_read_data")
{
	static const uint8_t signature[8] = {137, 'P', 'N', 'G', 13, 10, 26, 10};
	uint8_t b[128];
	uint32_t at = 8;

	if (READ(b, event->arg[1]))
		return;
	for (unsigned i = 0; i < 8; i++)
		if (b[i] != signature[i]) {
			state->not_png++;
			return;
		}
	for (int n = 0; n < 8 && at <= sizeof(b) - 8; n++) {
		uint32_t length = get_be32(b + at);

		if (b[at + 4] & 32)
			state->ancillary++;
		else
			state->critical++;
		if (b[at + 5] & 32)
			state->private_chunks++;
		state->bytes += length;
		if (length > 64)
			return;
		at += 12 + length;
	}
}
