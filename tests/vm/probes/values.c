/* SPDX-License-Identifier: MIT */
/* What a function returns, read by a helper as if it were an address: a probe that a policy has
 * something against. */
#include <fay/probe.h>

FAY_COUNT(readable);

FAY_RETURN("kernel!__x64_sys_getpgid")
{
	char byte;

	if (!fay_try_read(&byte, 1, event->retval))
		fay_count(&readable);
}
