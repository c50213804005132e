/* SPDX-License-Identifier: MIT */
/*
 * Line information: the object's DWARF line table, read by libdw, becomes the image's flat
 * .fay.lines. libdw does not relocate, so the debug sections of a copy are relocated first, with
 * every section at address 0: the addresses are then offsets in .text.
 */
#include <elf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

static bool relocate_debug(uint8_t *bytes, size_t size)
{
	const Elf64_Ehdr *h = (const void *)bytes;
	const Elf64_Shdr *s = (const void *)(bytes + h->e_shoff);

	for (size_t i = 0; i < h->e_shnum; i++) {
		const Elf64_Rela *r = (const void *)(bytes + s[i].sh_offset);
		const Elf64_Shdr *to, *table;

		if (s[i].sh_type != SHT_RELA || s[i].sh_info >= h->e_shnum ||
		    s[i].sh_link >= h->e_shnum)
			continue;
		to = &s[s[i].sh_info];
		table = &s[s[i].sh_link];
		if (to->sh_flags & SHF_ALLOC)
			continue;
		for (size_t k = 0; k < s[i].sh_size / sizeof(*r); k++) {
			const Elf64_Sym *symbol;
			uint64_t value;
			size_t width;

			if (ELF64_R_SYM(r[k].r_info) >= table->sh_size / sizeof(*symbol))
				return false;
			symbol = (const Elf64_Sym *)(bytes + table->sh_offset) +
				 ELF64_R_SYM(r[k].r_info);
			value = symbol->st_value + (uint64_t)r[k].r_addend;
			width = ELF64_R_TYPE(r[k].r_info) == R_X86_64_64   ? 8
				: ELF64_R_TYPE(r[k].r_info) == R_X86_64_32 ? 4
									   : 0;
			if (!width)
				continue;
			if (to->sh_size < width || r[k].r_offset > to->sh_size - width)
				return false;
			memcpy(bytes + to->sh_offset + r[k].r_offset, &value, width);
		}
	}
	return true;
}

static int add_line(struct fay_linked *l, uint64_t offset, int line, int column, const char *file)
{
	struct fay_linked_line *grown, *last = l->line_count ? &l->lines[l->line_count - 1] : NULL;

	if (last && last->offset == offset) { /* the later row of one address says more */
		last->line = (uint32_t)line;
		last->column = (uint32_t)column;
		free(last->file);
		last->file = strdup(file);
		return last->file ? 0 : -1;
	}
	if (last && last->line == (uint32_t)line && last->column == (uint32_t)column &&
	    !strcmp(last->file, file))
		return 0;
	grown = realloc(l->lines, (l->line_count + 1) * sizeof(*grown));
	if (!grown)
		return -1;
	l->lines = grown;
	grown[l->line_count] = (struct fay_linked_line){ (uint32_t)offset, (uint32_t)line,
							 (uint32_t)column, strdup(file) };
	return grown[l->line_count++].file ? 0 : -1;
}

static int read_unit(struct fay_linked *l, Dwarf_Die *die)
{
	Dwarf_Lines *lines;
	size_t count;

	if (dwarf_getsrclines(die, &lines, &count))
		return 0;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr address;
		int number, column;
		bool end;
		const char *file = dwarf_linesrc(line, NULL, NULL);

		if (dwarf_lineaddr(line, &address) || dwarf_lineno(line, &number) ||
		    dwarf_lineendsequence(line, &end) || end || !file || number < 1 ||
		    address >= l->text_size)
			continue;
		if (!strncmp(file, "./", 2))
			/* as the author named it: the folder of the compilation is "." */
			file += 2;
		if (dwarf_linecol(line, &column))
			column = 0;
		if (strlen(file) >= FAY_IMAGE_MAX_STRING)
			file = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
		if (strlen(file) >= FAY_IMAGE_MAX_STRING)
			continue;
		if (l->line_count && address < l->lines[l->line_count - 1].offset)
			continue; /* .fay.lines is sorted */
		if (add_line(l, address, number, column, file))
			return -1;
	}
	return 0;
}

int fay_link_lines(const void *object, size_t size, struct fay_linked *linked,
		   struct fay_error *error)
{
	char *copy = malloc(size);
	Dwarf_Off offset = 0, next;
	size_t header;
	Dwarf *dwarf;
	Elf *elf;
	int result = 0;

	if (!copy)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	memcpy(copy, object, size);
	elf_version(EV_CURRENT);
	if (!relocate_debug((uint8_t *)copy, size) || !(elf = elf_memory(copy, size))) {
		free(copy);
		return fay_error_set(error, FAY_E_INTERNAL,
				     "the object's debug information is malformed");
	}
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	while (dwarf && !result && !dwarf_nextcu(dwarf, offset, &next, &header, NULL, NULL, NULL)) {
		Dwarf_Die die;

		if (dwarf_offdie(dwarf, offset + header, &die) && read_unit(linked, &die))
			result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
		offset = next;
	}
	if (dwarf)
		dwarf_end(dwarf);
	elf_end(elf);
	free(copy);
	return result;
}
