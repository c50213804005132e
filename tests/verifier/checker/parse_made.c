/* SPDX-License-Identifier: MIT */
/* Images that chance does not find, made of whole ones: test_parse.c. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "test_parse.h"

static Elf64_Shdr *section(uint8_t *file, const char *name)
{
	const Elf64_Ehdr *h = (void *)file;
	Elf64_Shdr *s = (void *)(file + h->e_shoff);

	for (unsigned i = 1; i < h->e_shnum; i++)
		if (!strcmp((char *)file + s[h->e_shstrndx].sh_offset + s[i].sh_name, name))
			return &s[i];
	return NULL;
}

/* Each field of the first entries of the tables, by values of interest. */
static void sweep(const char *name, const uint8_t *bytes, uint8_t *copy, size_t size)
{
	static const char *const tables[] = { ".fay.image",   ".fay.probes", ".fay.state",
					      ".fay.columns", ".fay.lines",  ".rela.dyn",
					      ".dynsym",      ".dynamic" };
	static const uint64_t values[] = { 0,  1,  2,    3,    4,     5,        6,          7,
					   8,  9,  10,   11,   14,    15,       16,         17,
					   24, 64, 4096, 4104, 65536, 1u << 31, 1ull << 46, ~0ull };
	static const unsigned widths[] = { 2, 4, 8 };

	for (unsigned t = 0; t < 8; t++) {
		const Elf64_Shdr *s;

		memcpy(copy, bytes, size);
		s = section(copy, tables[t]);
		for (uint64_t at = 0; s && at + 8 <= s->sh_size && at < 160; at += 2) {
			for (unsigned i = 0; i < 3 * 24; i++) {
				if (at % widths[i / 24])
					continue;
				memcpy(copy + s->sh_offset, bytes + s->sh_offset, s->sh_size);
				memcpy(copy + s->sh_offset + at, &values[i % 24], widths[i / 24]);
				compare(name, copy, size, NULL, false);
			}
		}
	}
}

/* A column that no state has is checked all the same: its place, type, operator and size. */
static void unused_column(const char *name, const uint8_t *bytes, uint8_t *copy, size_t size)
{
	static const uint32_t offsets[] = { 0, 4, 4088, 4096, 4104, 1u << 31 };
	static const uint32_t bytes_of[] = { 0,  4,  8,   12,   15,   16,   24,   32,   40,
					     48, 64, 520, 3840, 3904, 4096, 4104, 8192, 1u << 31 };
	Elf64_Shdr *states, *columns;
	struct fay_image_column *c;
	struct fay_image_state *s;

	memcpy(copy, bytes, size);
	states = section(copy, ".fay.state");
	columns = section(copy, ".fay.columns");
	if (!states || !columns)
		return;
	s = (void *)(copy + states->sh_offset);
	c = (void *)(copy + columns->sh_offset);
	if (s->values < 2)
		return;
	s->values--;
	c += s->first_column + s->keys + s->values;
	for (unsigned i = 0; i < 6; i++) {
		c->offset = offsets[i];
		compare(name, copy, size, NULL, false);
	}
	c->offset = 0;
	for (unsigned i = 0; i < 16 * 18 * 8 * 4; i++) {
		c->merge = (uint16_t)(i % 16);
		c->size = bytes_of[i / 16 % 18];
		c->type = (uint16_t)(i / 16 / 18 % 8);
		c->param[0] = i / 16 / 18 / 8 == 1 ? -1 : 0;
		c->param[1] = i / 16 / 18 / 8 - 1;
		compare(name, copy, size, NULL, false);
	}
}

/* Segments that share a page, with an empty one between them. */
static void shared_pages(const char *name, const uint8_t *bytes, uint8_t *copy, size_t size)
{
	const Elf64_Ehdr *h = (void *)copy;
	Elf64_Phdr *loads[4] = { 0 }, *p;

	for (unsigned shift = 0; shift < 4; shift++) {
		unsigned count = 0;

		memcpy(copy, bytes, size);
		p = (void *)(copy + h->e_phoff);
		for (unsigned i = 0; i < h->e_phnum && count < 4; i++)
			if (p[i].p_type == PT_LOAD || p[i].p_type == PT_GNU_STACK)
				loads[count++] = &p[i];
		for (unsigned i = 1; i < count; i++) {
			*loads[i] = *loads[0];
			loads[i]->p_vaddr = loads[0]->p_vaddr + loads[0]->p_memsz + 8 * i;
			loads[i]->p_filesz = loads[i]->p_memsz = i == 1   ? shift & 1
								 : i == 2 ? 0
									  : 8;
			loads[i]->p_offset = loads[i]->p_vaddr - loads[0]->p_vaddr;
			loads[i]->p_offset += shift & 2 && i == 3 ? 4096 : 0;
		}
		compare(name, copy, size, NULL, false);
	}
}

void compare_made(const char *name, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size);

	sweep(name, bytes, copy, size);
	unused_column(name, bytes, copy, size);
	shared_pages(name, bytes, copy, size);
	free(copy);
}

/* The image with `count` more sections named .fay.certificate, over its first bytes. */
static void try_certificate(const char *name, const uint8_t *bytes, size_t size, unsigned count,
			    Elf64_Shdr certificate, enum fay_rule expected)
{
	uint8_t *file = calloc(1, size + 65536);
	Elf64_Ehdr *h = (void *)file;
	size_t names = size + 16, headers = size + 32768;
	struct check_subject subject;
	enum fay_rule rule;
	Elf64_Shdr *s;

	memcpy(file, bytes, size);
	s = (void *)(file + h->e_shoff);
	memcpy(file + names, file + s[h->e_shstrndx].sh_offset, s[h->e_shstrndx].sh_size);
	certificate.sh_name = (uint32_t)s[h->e_shstrndx].sh_size;
	strcpy((char *)file + names + certificate.sh_name, ".fay.certificate");
	memcpy(file + headers, s, h->e_shnum * sizeof(*s));
	h->e_shoff = headers;
	s = (void *)(file + headers);
	s[h->e_shstrndx].sh_offset = names;
	s[h->e_shstrndx].sh_size += sizeof(".fay.certificate");
	while (count--)
		s[h->e_shnum++] = certificate;
	rule = fay_read_image(file, size + 65536, &subject).rule;
	if (rule != expected)
		differ(name, "certificate", expected, rule);
	else if (rule == FAY_RULE_NONE &&
		 (subject.certificate.start != certificate.sh_offset ||
		  subject.certificate.size != certificate.sh_size ||
		  (certificate.sh_size &&
		   subject.certificate.bytes != file + certificate.sh_offset)))
		differ(name, "certificate's place", 0, 0);
	free(file);
}

void compare_certificates(const char *name, const uint8_t *bytes, size_t size)
{
	Elf64_Shdr good = { .sh_type = SHT_PROGBITS, .sh_offset = 3, .sh_size = 50 }, c;

	try_certificate(name, bytes, size, 0, (Elf64_Shdr){ 0 }, FAY_RULE_NONE);
	try_certificate(name, bytes, size, 1, good, FAY_RULE_NONE);
	try_certificate(name, bytes, size, 2, good, FAY_RULE_IMG_SECTION);
	c = good, c.sh_type = SHT_NOTE;
	try_certificate(name, bytes, size, 1, c, FAY_RULE_IMG_SECTION);
	c = good, c.sh_flags = SHF_ALLOC;
	try_certificate(name, bytes, size, 1, c, FAY_RULE_IMG_SECTION);
	c = good, c.sh_flags = SHF_COMPRESSED;
	try_certificate(name, bytes, size, 1, c, FAY_RULE_IMG_SECTION);
	c = good, c.sh_size = size + 65536;
	try_certificate(name, bytes, size, 1, c, FAY_RULE_IMG_LAYOUT);
	c = good, c.sh_offset = UINT64_MAX;
	try_certificate(name, bytes, size, 1, c, FAY_RULE_IMG_LAYOUT);
	c = good, c.sh_offset = c.sh_size = 0;
	try_certificate(name, bytes, size, 2, c, FAY_RULE_NONE);
}
