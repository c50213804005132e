/* SPDX-License-Identifier: MIT */
// TLS records: content type, version, length; handshake type of the first.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t content[4], handshake[32], version[5], not_tls, bytes;
};

PROBE("libssl!ssl3_write_bytes")
{
	uint8_t h[6];

	if (READ(h, event->arg[1]))
		return;
	if (h[0] < 20 || h[0] > 23 || h[1] != 3 || h[2] > 4) {
		state->not_tls++;
		return;
	}
	state->content[h[0] - 20]++;
	state->version[h[2]]++;
	state->bytes += get_be16(h + 3);
	if (h[0] == 22)
		state->handshake[h[5] & 31]++;
}
