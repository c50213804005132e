/* SPDX-License-Identifier: MIT */
/*
 * A filter: the ClientHello of TLS over TCP (RFC 8446, 4.1.2), by the server's name (RFC 6066, 3):
 * 2 in example.org, 1 elsewhere, or where none is found in what was captured.
 */
#include "packet.h"

FAY_EXTENSION(1, 0);
FAY_ENTRY(tls);

enum { OTHER = 1, HERE = 2, HELLO = 43, TYPES = 64 };

uint64_t tls(const uint8_t *packet, uint64_t size);

/* Whether the eleven bytes before `end` are "example.org", and the name is no longer than that, or
 * goes on with a dot. */
PARSE uint64_t in_example(const uint8_t *packet, uint64_t size, uint64_t at, uint64_t end)
{
	static const char wanted[] = "example.org";
	uint32_t differ = 0;

	if (end > size || end < at + 11)
		return OTHER;
	for (unsigned i = 0; i < 11; i++)
		differ |= (uint32_t)packet[end - 11 + i] ^ (uint8_t)wanted[i];
	if (differ)
		return OTHER;
	return end == at + 11 || packet[end - 12] == '.' ? HERE : OTHER;
}

uint64_t tls(const uint8_t *packet, uint64_t size)
{
	uint32_t protocol = 0;
	uint64_t at = transport(packet, size, &protocol);

	if (!at || protocol != PROTOCOL_TCP || at + 20 > size)
		return 0;
	at += (packet[at + 12] >> 4) * 4u;
	/* a record of a handshake, its first message a ClientHello */
	if (at + HELLO > size || packet[at] != 22 || packet[at + 1] != 3 || packet[at + 5] != 1)
		return 0;
	at += HELLO; /* version and random number */
	if (at + 1 > size)
		return OTHER;
	at += 1 + (uint64_t)packet[at]; /* session */
	if (at + 2 > size)
		return OTHER;
	at += 2 + (uint64_t)be16(packet + at); /* ciphers */
	if (at + 1 > size)
		return OTHER;
	at += 1 + (uint64_t)packet[at] + 2; /* compression; how long the extensions are */
	for (unsigned i = 0; i < TYPES; i++) {
		if (at + 9 > size)
			break;
		if (be16(packet + at) == 0 && packet[at + 6] == 0)
			return in_example(packet, size, at + 9, at + 9 + be16(packet + at + 7));
		at += 4 + (uint64_t)be16(packet + at + 2);
	}
	return OTHER;
}
