/* SPDX-License-Identifier: MIT */
/* What commands of ioctl are called, by the kernel's headers. */
#include <stdint.h>

#include "ioctl_headers.h"
#include "sources.h"

struct item {
	const char *name;
	int64_t value, mask;
};

#define FAY_IOCTL(name) { #name, (int64_t)(uint32_t)(name), -1 },
const struct fay_enumeration fay_ioctl_commands = {
	.name = "commands of ioctl",
	.rest = FAY_REST_HEX,
	.count = sizeof((struct item[]){
#include "ioctls.def"
		 }) / sizeof(struct item),
	.items = {
#include "ioctls.def"
	},
};
