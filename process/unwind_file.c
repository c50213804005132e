/* SPDX-License-Identifier: MIT */
/* The unwind tables of ELF objects. */
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "unwind_private.h"

#define GO_TEXT_START 24u /* in its table: where its code begins */

/* What the dynamic linker puts at the address, before it adds where the object lies. 0: nothing. */
static uint64_t relocated(Elf *elf, uint64_t address)
{
	Elf_Scn *section = NULL;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		GElf_Rela entry;
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getrela(data, i, &entry); i++)
			if (entry.r_offset == address &&
			    GELF_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
				return (uint64_t)entry.r_addend;
	}
	return 0;
}

static bool read_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name,
			 struct fay_unwind_rows *rows)
{
	bool go = !strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab");
	if (header->sh_type == SHT_NOBITS || (!go && strcmp(name, ".eh_frame") != 0))
		return true;
	Elf_Data *data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf)
		return true;
	return go ? fay_unwind_read_go(data->d_buf, data->d_size,
				       relocated(elf, header->sh_addr + GO_TEXT_START), rows)
		  : fay_unwind_read(data->d_buf, data->d_size, header->sh_addr, rows);
}

static bool read_object(Elf *elf, struct fay_unwind_rows *rows)
{
	Elf_Scn *section = NULL;
	size_t names;
	bool fine = true;
	while (fine && elf && !elf_getshdrstrndx(elf, &names) &&
	       (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		if (name)
			fine = read_section(elf, section, &header, name, rows);
	}
	elf_end(elf);
	if (fine)
		fay_unwind_fold(rows);
	else
		fay_unwind_rows_deinit(rows);
	return fine;
}

/* Read, not mapped: who owns the file may make it shorter meanwhile. */
bool fay_unwind_read_file(int fd, struct fay_unwind_rows *rows)
{
	*rows = (struct fay_unwind_rows){ 0 };
	return read_object(
		elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ, NULL), rows);
}

bool fay_unwind_read_memory(void *object, size_t size, struct fay_unwind_rows *rows)
{
	*rows = (struct fay_unwind_rows){ 0 };
	return read_object(elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_memory(object, size),
			   rows);
}
