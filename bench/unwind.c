/* SPDX-License-Identifier: MIT */
/*
 * How long reading a file's unwind table takes: fay_bench_unwind FILE... For each file the time of
 * process/unwind.c, which reads the table once, beside that of asking libdw for the rows, place by
 * place, as dwarf_cfi_addrframe() has to be asked. Why it matters: docs/internals/dependencies.md.
 */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <elfutils/libdw.h>

#include "fay/clock.h"
#include "process/unwind_private.h"

static int32_t offset_at(const Elf_Data *data, size_t index)
{
	int32_t value;
	memcpy(&value, (const uint8_t *)data->d_buf + 12 + 8 * index, sizeof(value));
	return value;
}

/* Of the functions that .eh_frame_hdr lists, as linkers write it: sorted, offsets of 4 bytes. */
static size_t rows_by_libdw(Elf *elf, Dwarf_CFI *cfi)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names, rows = 0;
	elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header))
		if (!strcmp(elf_strptr(elf, names, header.sh_name), ".eh_frame_hdr"))
			break;
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	for (size_t i = 0, count = data ? (data->d_size - 12) / 8 : 0; i < count; i++) {
		Dwarf_Addr at = header.sh_addr + (int64_t)offset_at(data, i), from, to = at,
			   next = i + 1 < count ? header.sh_addr + (int64_t)offset_at(data, i + 1)
						: UINT64_MAX;
		Dwarf_Frame *frame;
		for (; at < next && !dwarf_cfi_addrframe(cfi, at, &frame); at = to, rows++) {
			Dwarf_Op space[3], *operations;
			size_t length;
			bool signal;
			dwarf_frame_info(frame, &from, &to, &signal);
			dwarf_frame_cfa(frame, &operations, &length);
			dwarf_frame_register(frame, 6, space, &operations, &length);
			free(frame);
		}
	}
	return rows;
}

int main(int argc, char **argv)
{
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		struct fay_unwind_rows rows;
		uint64_t began = fay_clock(CLOCK_PROCESS_CPUTIME_ID);
		fay_unwind_read_file(fd, &rows);
		uint64_t own = fay_clock(CLOCK_PROCESS_CPUTIME_ID);
		Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
		Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
		size_t asked = cfi ? rows_by_libdw(elf, cfi) : 0;
		uint64_t libdw = fay_clock(CLOCK_PROCESS_CPUTIME_ID);
		printf("%s: %zu rows in %.1f ms; libdw: %zu in %.1f ms\n", argv[i], rows.count,
		       (double)(own - began) / 1e6, asked, (double)(libdw - own) / 1e6);
		fay_unwind_rows_deinit(&rows);
		dwarf_cfi_end(cfi);
		elf_end(elf);
		close(fd);
	}
	return 0;
}
