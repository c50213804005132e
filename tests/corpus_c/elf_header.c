/* SPDX-License-Identifier: MIT */
// ELF files that are mapped: class, machine, type.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t not_elf, bits32, bits64, machine[256], type[5];
};

struct elf_start {
	uint8_t ident[16];
	uint16_t type, machine;
	uint32_t version;
};

PROBE("ld-linux-x86-64.so.2!_dl_map_object_from_fd")
{
	struct elf_start h;

	if (READ(h, event->arg[1]) || h.ident[0] != 0x7f || h.ident[1] != 'E' || h.ident[2] != 'L' || h.ident[3] != 'F') {
		state->not_elf++;
		return;
	}
	if (h.ident[4] == 2)
		state->bits64++;
	else
		state->bits32++;
	state->machine[h.machine & 255]++;
	if (h.type < 5)
		state->type[h.type]++;
}
