/* SPDX-License-Identifier: MIT */
/*
 * What a file says of how exceptions pass in it: of its dynamic symbols and its sections' names alone, since every module of a process is asked. A module that has no unwinder of its own imports
 * those functions that throw or go on (_Unwind_*). One that is linked in finds unwind information by dl_iterate_phdr(), or by _dl_find_object(); both are in the C library. Go's, Java's and other
 * modules that import the first for something else have no tables of handlers, or import _Unwind_* as well.
 */
#include <string.h>

#include "target.h"

static void note_import(const char *name, struct fay_unwinding *unwinding)
{
	unwinding->iterates |= !strcmp(name, "dl_iterate_phdr");
	unwinding->finds |= !strcmp(name, "_dl_find_object");
	unwinding->imports |= !strncmp(name, "_Unwind_", 8);
}

static void note_imports(Elf *elf, Elf_Scn *section, const Elf64_Shdr *header, struct fay_unwinding *unwinding)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const Elf64_Sym *symbols = data && data->d_type == ELF_T_SYM ? data->d_buf : NULL;

	for (size_t i = 1; symbols && i < data->d_size / sizeof(*symbols); i++) {
		const char *name = symbols[i].st_shndx == SHN_UNDEF ? elf_strptr(elf, header->sh_link, symbols[i].st_name) : NULL;

		if (name)
			note_import(name, unwinding);
	}
}

void fay_file_unwinding(int fd, struct fay_unwinding *unwinding)
{
	Elf_Scn *section = NULL;
	size_t names;
	Elf *elf;

	*unwinding = (struct fay_unwinding){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getshdrstrndx(elf, &names)) {
		elf_end(elf);
		return;
	}
	while ((section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;

		unwinding->handles |= name && !strcmp(name, ".gcc_except_table");
		if (header && header->sh_type == SHT_DYNSYM)
			note_imports(elf, section, header, unwinding);
	}
	elf_end(elf);
}
