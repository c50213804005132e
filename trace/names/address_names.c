/* SPDX-License-Identifier: MIT */
/* How places in code are written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wire/wire.h"
#include "process/process.h"

#include "names.h"

static void write_bare(const struct fay_code_place *place, char *text, size_t size)
{
	char buffer[256];
	if (place->name)
		snprintf(text, size, "%s", fay_readable_name(place->name, buffer, sizeof(buffer)));
	else
		snprintf(text, size, "[%s]", place->module ? place->module : "unknown");
}

static void write_place(const struct fay_code_place *place, uint64_t address, unsigned form,
			char *text, size_t size)
{
	char buffer[64];
	if (form & FAY_ADDRESS_BARE) {
		write_bare(place, text, size);
		return;
	}
	if (!place->module)
		snprintf(text, size, "0x%" PRIx64, address);
	else if (!place->name)
		snprintf(text, size, "%s+0x%" PRIx64, place->module, place->offset);
	else if (form & FAY_ADDRESS_EXACT && !place->offset)
		snprintf(text, size, "%s!%s", place->module,
			 form & FAY_ADDRESS_READABLE
				 ? fay_readable_name(place->name, buffer, sizeof(buffer))
				 : place->name);
	else
		snprintf(text, size, "%s!%s+0x%" PRIx64, place->module,
			 form & FAY_ADDRESS_READABLE
				 ? fay_readable_name(place->name, buffer, sizeof(buffer))
				 : place->name,
			 place->offset);
}

void fay_address_text(struct fay_addresses *addresses, uint64_t address, unsigned form, char *text,
		      size_t size)
{
	write_place(fay_addresses_place(addresses, address, form), address, form, text, size);
}

void fay_code_text(const char *code, uint64_t hash, unsigned form, char *text, size_t size)
{
	char module[FAY_WIRE_NAME_MAX + 1], *name, *rest;
	if (!code) {
		snprintf(text, size, "code#%016" PRIx64, hash);
		return;
	}
	struct fay_code_place place = { .offset = strtoull(code, &rest, 16) };
	snprintf(module, sizeof(module), "%s", *rest ? rest + 1 : "");
	name = strchr(module, '!');
	if (name)
		*name++ = 0;
	place.module = *module ? module : NULL;
	place.name = name;
	write_place(&place, place.offset, form, text, size);
}
