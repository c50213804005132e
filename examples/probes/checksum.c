/* SPDX-License-Identifier: MIT */
/* A checksum over the arguments (Fletcher's, 32 bits): calls whose arguments repeat those of the
 * call before. */
#include <fay/probe.h>

FAY_COUNT(repeated);
FAY_CELL(last, FAY_VALUES(FAY_VALUE_MAX(checksum)));

FAY_ENTRY("libc!memcpy")
{
	uint32_t low = 0, high = 0;
	uint64_t sum;

	for (unsigned i = 0; i < 6; i++) {
		low = (low + (uint32_t)(event->arg[i] & 0xffff)) % 65535;
		high = (high + low) % 65535;
	}
	sum = (uint64_t)high << 16 | low;
	if (last.checksum.held == sum)
		fay_count(&repeated);
	last.checksum.held = sum;
}
