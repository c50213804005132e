/* SPDX-License-Identifier: MIT */
/*
 * Addresses of code in an ELF file's data, for the analysis of functions (flow.h):
 *
 *	addends of relocations (R_X86_64_RELATIVE, IRELATIVE, and others against symbols), and what
 *	  DT_RELR relocations apply to
 *	aligned words of the data of a program that is not position-independent
 *	landing pads of exceptions (elf_handlers.c)
 *
 * The file may be anything: every read is bounded.
 */
#include "taken_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "loader/bisect.h"

#define SECTIONS_MAX 4096u
#define ADDRESSES_MAX (1u << 26)

const struct fay_taken_section *fay_taken_section_of(struct fay_taken *taken, uint64_t address)
{
	for (size_t i = 0; i < taken->section_count; i++) {
		size_t at = (taken->last + i) % taken->section_count;

		taken->failed |= ++taken->work > FAY_TAKEN_WORK_MAX;
		if (address >= taken->sections[at].start && address < taken->sections[at].end)
			return &taken->sections[taken->last = at];
	}
	return NULL;
}

void fay_taken_add(struct fay_taken *taken, enum fay_taken_kind kind, uint64_t address)
{
	const struct fay_taken_section *section =
		address >= taken->code_low && address < taken->code_high
			? fay_taken_section_of(taken, address)
			: NULL;
	struct fay_taken_list *list = &taken->lists[kind];

	taken->failed |= ++taken->work > FAY_TAKEN_WORK_MAX;
	if (!section || !section->code || taken->failed)
		return;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 1024;
		uint64_t *grown =
			room > ADDRESSES_MAX ? NULL : realloc(list->items, room * sizeof(*grown));

		if (!grown) {
			taken->failed = true;
			return;
		}
		list->items = grown;
		list->room = room;
	}
	list->items[list->count++] = address;
}

static bool read_sections(struct fay_taken *taken, Elf *elf)
{
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		strings = 0;
	taken->sections = calloc(SECTIONS_MAX, sizeof(*taken->sections));
	taken->code_low = UINT64_MAX;
	while (taken->sections && (scn = elf_nextscn(elf, scn)) &&
	       taken->section_count < SECTIONS_MAX) {
		const Elf64_Shdr *header = elf64_getshdr(scn);
		const char *name = header ? elf_strptr(elf, strings, header->sh_name) : NULL;
		Elf_Data *data;
		struct fay_taken_section *section;

		if (!header || !(header->sh_flags & SHF_ALLOC) ||
		    header->sh_addr + header->sh_size < header->sh_addr ||
		    header->sh_flags & SHF_TLS)
			continue;
		section = &taken->sections[taken->section_count++];
		*section =
			(struct fay_taken_section){ .start = header->sh_addr,
						    .end = header->sh_addr + header->sh_size,
						    .code = header->sh_flags & SHF_EXECINSTR,
						    .writable = header->sh_flags & SHF_WRITE,
						    .unwind = name && !strcmp(name, ".eh_frame") };
		if (section->code) {
			taken->code_low =
				section->start < taken->code_low ? section->start : taken->code_low;
			taken->code_high =
				section->end > taken->code_high ? section->end : taken->code_high;
		}
		data = header->sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL);
		if (data && data->d_buf && data->d_size == header->sh_size)
			section->bytes = data->d_buf;
	}
	return taken->sections != NULL;
}

static bool word_at(struct fay_taken *taken, uint64_t address, uint64_t *word)
{
	const struct fay_taken_section *section = fay_taken_section_of(taken, address);

	if (!section || !section->bytes || section->end - address < 8)
		return false;
	memcpy(word, section->bytes + (address - section->start), 8);
	return true;
}

/* 0 for index 0, or if there is none. */
static uint64_t symbol_value(Elf *elf, uint32_t table, size_t index)
{
	Elf_Scn *scn = elf_getscn(elf, table);
	Elf_Data *data = scn && index ? elf_rawdata(scn, NULL) : NULL;
	Elf64_Sym symbol = { 0 };

	if (data && data->d_buf && index < data->d_size / sizeof(symbol))
		memcpy(&symbol, (const char *)data->d_buf + index * sizeof(symbol), sizeof(symbol));
	return symbol.st_value;
}

static void read_relocations(struct fay_taken *taken, Elf *elf, const Elf64_Shdr *header,
			     Elf_Data *data)
{
	uint64_t word;

	if (header->sh_type == SHT_RELA)
		for (size_t i = 0; i + 1 <= data->d_size / sizeof(Elf64_Rela) && !taken->failed;
		     i++) {
			Elf64_Rela rela;

			memcpy(&rela, (const char *)data->d_buf + i * sizeof(rela), sizeof(rela));
			fay_taken_add(taken, FAY_TAKEN_WORD,
				      symbol_value(elf, header->sh_link, ELF64_R_SYM(rela.r_info)) +
					      (uint64_t)rela.r_addend);
		}
	if (header->sh_type != 19) /* SHT_RELR */
		return;
	for (size_t i = 0, at = 0; i < data->d_size / 8 && !taken->failed; i++) {
		uint64_t entry;

		memcpy(&entry, (const char *)data->d_buf + 8 * i, 8);
		if (!(entry & 1)) {
			if (word_at(taken, entry, &word))
				fay_taken_add(taken, FAY_TAKEN_WORD, word);
			at = entry + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++)
			if (entry >> bit & 1 && word_at(taken, at + 8 * (bit - 1), &word))
				fay_taken_add(taken, FAY_TAKEN_WORD, word);
		at += 8 * 63;
	}
}

static void read_data(struct fay_taken *taken)
{
	for (size_t i = 0; i < taken->section_count; i++) {
		const struct fay_taken_section *section = &taken->sections[i];

		if (section->code || !section->bytes || section->unwind)
			continue;
		for (uint64_t at = (section->start + 7) & ~(uint64_t)7;
		     at + 8 <= section->end && !taken->failed; at += 8) {
			uint64_t word;

			memcpy(&word, section->bytes + (at - section->start), 8);
			fay_taken_add(taken, FAY_TAKEN_WORD, word);
		}
	}
}

/* Run-time systems of languages in which a fault is an exception, which is thrown where it
 * happened: Ada, Go, D, Modula-2. */
static bool throws_faults(const char *name)
{
	static const char *const names[] = { "__gnat_personality_v0", "__gccgo_personality_v0",
					     "__gdc_personality_v0",  "_d_eh_personality",
					     "__gm2_personality_v0",  "runtime.sigpanic" };

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Whatever has a name may be entered there. */
static void read_symbols(struct fay_taken *taken, Elf *elf, const Elf64_Shdr *header,
			 Elf_Data *data)
{
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Sym) && !taken->failed; i++) {
		Elf64_Sym symbol;

		memcpy(&symbol, (const char *)data->d_buf + i * sizeof(symbol), sizeof(symbol));
		taken->faults |= throws_faults(elf_strptr(elf, header->sh_link, symbol.st_name));
		switch (ELF64_ST_TYPE(symbol.st_info)) {
		case STT_FUNC:
		case STT_GNU_IFUNC: fay_taken_add(taken, FAY_TAKEN_ENTRY, symbol.st_value); break;
		case STT_NOTYPE:
			fay_taken_add(taken,
				      ELF64_ST_BIND(symbol.st_info) == STB_LOCAL ? FAY_TAKEN_HANDLER
										 : FAY_TAKEN_ENTRY,
				      symbol.st_value);
			break;
		default: break;
		}
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void sort(struct fay_taken_list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_value);
	for (size_t i = 0; i < list->count; i++)
		if (!kept || list->items[kept - 1] != list->items[i])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

static void read_all(struct fay_taken *taken, Elf *elf)
{
	const Elf64_Ehdr *file = elf64_getehdr(elf);
	Elf_Scn *scn = NULL;
	size_t strings;

	if (!file || elf_getshdrstrndx(elf, &strings))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const Elf64_Shdr *header = elf64_getshdr(scn);
		const char *name = header ? elf_strptr(elf, strings, header->sh_name) : NULL;
		Elf_Data *data =
			name && header->sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;

		if (!data || !data->d_buf)
			continue;
		if (header->sh_type == SHT_SYMTAB || header->sh_type == SHT_DYNSYM)
			read_symbols(taken, elf, header, data);
		if (!(header->sh_flags & SHF_ALLOC))
			continue;
		read_relocations(taken, elf, header, data);
		if (!strcmp(name, ".eh_frame"))
			fay_taken_read_frames(taken, elf, header, data);
	}
	if (file->e_type == ET_EXEC)
		read_data(taken);
}

struct fay_taken *fay_taken_create(Elf *elf)
{
	struct fay_taken *taken = calloc(1, sizeof(*taken));

	if (!taken)
		return NULL;
	if (!read_sections(taken, elf)) {
		fay_taken_destroy(taken);
		return NULL;
	}
	read_all(taken, elf);
	if (taken->failed) {
		fay_taken_destroy(taken);
		return NULL;
	}
	for (unsigned k = 0; k < FAY_TAKEN_KINDS; k++)
		sort(&taken->lists[k]);
	return taken;
}

const struct fay_taken *fay_object_taken(struct fay_object *object)
{
	if (!object->taken)
		object->taken = fay_taken_create(object->elf);
	return object->taken;
}

void fay_object_forget_taken(struct fay_object *object)
{
	if (object->kept)
		return;
	fay_taken_destroy(object->taken);
	object->taken = NULL;
}

void fay_taken_destroy(struct fay_taken *taken)
{
	if (!taken)
		return;
	for (unsigned k = 0; k < FAY_TAKEN_KINDS; k++)
		free(taken->lists[k].items);
	free(taken->sections);
	free(taken);
}

bool fay_taken_faults(const struct fay_taken *taken)
{
	return taken->faults;
}

const uint64_t *fay_taken_in(const struct fay_taken *taken, enum fay_taken_kind kind,
			     uint64_t start, uint64_t end, size_t *count)
{
	static const uint64_t nothing;
	const struct fay_taken_list *list = &taken->lists[kind];
	size_t first = fay_count_below(list->items, 0, sizeof(*list->items), list->count, start);
	size_t last = fay_count_below(list->items, 0, sizeof(*list->items), list->count, end);

	*count = last > first ? last - first : 0;
	return *count ? list->items + first : &nothing;
}
