/* SPDX-License-Identifier: MIT */
/* An extension for any of the three hosts that reads a byte which a short value does not have. NAME
 * is that of the function that the host calls. */
#include <fay/host/entry.h>

#define ENTRY(name) FAY_ENTRY(name)

FAY_EXTENSION(1, 0);
ENTRY(NAME);

uint64_t NAME(const uint8_t *bytes, uint64_t size);
uint64_t NAME(const uint8_t *bytes, uint64_t size __attribute__((unused)))
{
	return bytes[8] & 1;
}
