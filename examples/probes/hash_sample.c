/* SPDX-License-Identifier: MIT */
/* One call in sixteen, chosen by a hash of the arguments (FNV-1a over bytes), so that the same call
 * is always in or out. */
#include <fay/probe.h>

FAY_COUNT(all);
FAY_COUNT(sampled);

FAY_ENTRY("libc!send*")
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 64; k += 8)
			hash = (hash ^ (event->arg[i] >> k & 0xff)) * 0x100000001b3u;
	fay_count(&all);
	if (!(hash >> 60))
		fay_count(&sampled);
}
