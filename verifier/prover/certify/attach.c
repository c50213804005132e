/* SPDX-License-Identifier: MIT */
/*
 * An image with a certificate: a copy with one more section, .fay.certificate, behind everything
 * else, and behind that the names and headers of all sections; a certificate that it brought is
 * empty then. Nothing of what is installed moves.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "certify.h"

static const char name[] = ".fay.certificate";

static void align(struct fay_bytes *b)
{
	static const uint8_t zeros[16];

	fay_bytes_put(b, zeros, -b->size & 15);
}

bool fay_certificate_attach(const uint8_t *image, size_t size, const struct fay_bytes *certificate,
			    struct fay_bytes *out)
{
	Elf64_Ehdr eh;
	Elf64_Shdr *sections, *names, *own;
	size_t moved; /* the names */
	unsigned count;

	if (size < sizeof(eh))
		return false;
	memcpy(&eh, image, sizeof(eh));
	count = eh.e_shnum;
	if (!count || eh.e_shstrndx >= count || eh.e_shoff > size ||
	    count > (size - eh.e_shoff) / sizeof(*sections))
		return false;
	sections = calloc(count + 1, sizeof(*sections));
	if (!sections)
		return false;
	memcpy(sections, image + eh.e_shoff, count * sizeof(*sections));
	names = &sections[eh.e_shstrndx];
	own = &sections[count];
	if (names->sh_offset > size || names->sh_size > size - names->sh_offset) {
		free(sections);
		return false;
	}
	for (unsigned i = 0; i < count; i++) {
		uint64_t at = sections[i].sh_name;

		/* one that it brought */
		if (at <= names->sh_size && names->sh_size - at >= sizeof(name) &&
		    !memcmp(image + names->sh_offset + at, name, sizeof(name)))
			sections[i].sh_size = 0;
	}
	fay_bytes_put(out, image, size);
	align(out);
	*own = (Elf64_Shdr){ .sh_name = (Elf64_Word)names->sh_size,
			     .sh_type = SHT_PROGBITS,
			     .sh_offset = out->size,
			     .sh_size = certificate->size,
			     .sh_addralign = 1 };
	fay_bytes_put(out, certificate->at, certificate->size);
	align(out);
	moved = out->size;
	fay_bytes_put(out, image + names->sh_offset, names->sh_size);
	fay_bytes_put(out, name, sizeof(name));
	names->sh_offset = moved;
	names->sh_size += sizeof(name);
	align(out);
	eh.e_shoff = out->size;
	eh.e_shnum = (Elf64_Half)(count + 1);
	fay_bytes_put(out, sections, (count + 1) * sizeof(*sections));
	memcpy(out->at, &eh, sizeof(eh));
	free(sections);
	return true;
}
