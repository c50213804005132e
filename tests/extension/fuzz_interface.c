/* SPDX-License-Identifier: MIT */
/* Any text as a host interface, and any bytes as the canonical form, by libFuzzer. */
#include <stdlib.h>
#include <string.h>

#include "verifier/host/host.h"
#include "verifier/reader/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fay_interface interface = { 0 };
	char message[64];

	if (size && *data == 1) { /* as canonical bytes, the rest zero */
		memcpy(&interface, data + 1,
		       size - 1 < sizeof(interface) ? size - 1 : sizeof(interface));
		fay_read_interface(&interface);
	} else if (fay_host_compile((const char *)data, size, &interface, NULL, message,
				    sizeof(message)) &&
		   !fay_read_interface(&interface)) {
		abort();
	}
	return 0;
}
