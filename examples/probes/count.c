/* SPDX-License-Identifier: MIT */
/* How often is read() called? The smallest probe there is. */
#include <fay/probe.h>

FAY_COUNT(reads);

FAY_ENTRY("libc!read")
{
	fay_count(&reads);
}
