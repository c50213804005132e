/* SPDX-License-Identifier: MIT */
/* Images around code, of any size: see image_builder.h. */
#include "image_builder.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "fay/verify.h"

void builder_emit(struct builder *b, const void *bytes, size_t size)
{
	if (b->size + size > b->room) {
		b->room = 2 * (b->size + size) + 4096;
		b->code = realloc(b->code, b->room);
		if (!b->code)
			abort();
	}
	memcpy(b->code + b->size, bytes, size);
	b->size += size;
}
void builder_emit32(struct builder *b, int64_t value)
{
	builder_emit(b, &(int32_t){ (int32_t)value }, 4);
}

enum { S_NULL, S_TEXT, S_IMAGE, S_PROBES, S_STRINGS, S_NAMES, S_RODATA, S_COUNT };
static const char section_names[] =
	"\0.text\0.fay.image\0.fay.probes\0.fay.strings\0.shstrtab\0.rodata";

uint8_t *builder_finish(struct builder *b, size_t *file_size)
{
	static const char strings[] = "\0libc!read";
	size_t text = PAGE, tables = text + (b->size + PAGE - 1) / PAGE * PAGE, image = tables,
	       probes = image + 64;
	size_t text_strings = probes + 32 * b->probes, names = text_strings + sizeof(strings);
	size_t rodata = (names + sizeof(section_names) + PAGE - 1) / PAGE * PAGE,
	       headers = (rodata + 4 * (size_t)b->words + 7) / 8 * 8;
	uint8_t *f = calloc(1, headers + S_COUNT * sizeof(Elf64_Shdr));
	Elf64_Ehdr *eh = (void *)f;
	Elf64_Phdr *ph = (void *)(f + sizeof(*eh));
	Elf64_Shdr *sh = (void *)(f + headers);

	if (!f)
		abort();
	*file_size = headers + S_COUNT * sizeof(*sh);
	*eh = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(*eh),
			    .e_shoff = headers,
			    .e_ehsize = sizeof(*eh),
			    .e_phentsize = sizeof(*ph),
			    .e_phnum = b->words ? 3 : 2,
			    .e_shentsize = sizeof(*sh),
			    .e_shnum = S_COUNT,
			    .e_shstrndx = S_NAMES };
	ph[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, text, text, text, b->size, b->size, PAGE };
	ph[1] = (Elf64_Phdr){ PT_LOAD, PF_R,           tables,         tables,
			      tables,  names - tables, names - tables, PAGE };
	ph[2] = (Elf64_Phdr){ PT_LOAD,
			      PF_R,
			      rodata,
			      text + RODATA_FROM_TEXT,
			      text + RODATA_FROM_TEXT,
			      4 * (size_t)b->words,
			      4 * (size_t)b->words,
			      PAGE };
	if (b->words) {
		sh[S_RODATA] = (Elf64_Shdr){ 53,        SHT_PROGBITS,
					     SHF_ALLOC, text + RODATA_FROM_TEXT,
					     rodata,    4 * (size_t)b->words,
					     0,         0,
					     4,         0 };
		memcpy(f + rodata, b->rodata, 4 * (size_t)b->words);
	}
	sh[S_TEXT] = (Elf64_Shdr){
		1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, text, b->size, 0, 0, 1, 0
	};
	sh[S_IMAGE] = (Elf64_Shdr){ 7, SHT_PROGBITS, SHF_ALLOC, image, image, 64, 0, 0, 1, 0 };
	sh[S_PROBES] =
		(Elf64_Shdr){ 18, SHT_PROGBITS, SHF_ALLOC, probes, probes, 32 * b->probes, 0, 0, 1,
			      0 };
	sh[S_STRINGS] = (Elf64_Shdr){
		30, SHT_PROGBITS, SHF_ALLOC, text_strings, text_strings, sizeof(strings), 0, 0, 1, 0
	};
	sh[S_NAMES] =
		(Elf64_Shdr){ 43, SHT_STRTAB, 0, 0, names, sizeof(section_names), 0, 0, 1, 0 };
	memcpy(f + text, b->code, b->size);
	memcpy(f + image, FAY_IMAGE_MAGIC, 8);
	memcpy(f + image + 8, &(uint32_t){ FAY_IMAGE_VERSION }, 4);
	memcpy(f + image + 16, &(uint32_t){ 64 }, 4);
	memcpy(f + image + 24, &b->probes, 4);
	for (uint32_t i = 0; i < b->probes; i++) {
		size_t at = probes + 32 * i;

		memcpy(f + at, &(int32_t){ (int32_t)(text_strings + 1 - at) }, 4);
		memcpy(f + at + 4, &(uint32_t){ FAY_PROBE_ENTRY }, 4);
		memcpy(f + at + 8, &(int32_t){ (int32_t)(text - (at + 8)) }, 4);
	}
	memcpy(f + text_strings, strings, sizeof(strings));
	memcpy(f + names, section_names, sizeof(section_names));
	return f;
}
