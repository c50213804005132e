/* SPDX-License-Identifier: MIT */
/* The unwind tables of ELF objects. */
#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include "unwind_private.h"

static bool read_object(Elf *elf, struct fay_unwind_rows *rows)
{
	Elf_Scn *section = NULL;
	size_t names;
	bool fine = true;
	while (elf && !elf_getshdrstrndx(elf, &names) && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		if (!name || strcmp(name, ".eh_frame") || header.sh_type == SHT_NOBITS)
			continue;
		Elf_Data *data = elf_rawdata(section, NULL);
		fine = !data || !data->d_buf ||
		       fay_unwind_read(data->d_buf, data->d_size, header.sh_addr, rows);
		break;
	}
	elf_end(elf);
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
