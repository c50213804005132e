/* SPDX-License-Identifier: MIT */
/*
 * Landing pads of exceptions in an ELF file: .eh_frame leads to a table for each function that has
 * any (LSDA; Itanium C++ ABI, exception handling, 1.6). Every read is bounded.
 */
#include "taken_private.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

/* A bounded reader of what unwind tables are made of. */
struct cursor {
	const uint8_t *at, *end;
	uint64_t address; /* of `at` */
	bool failed;
};

static uint64_t take(struct cursor *c, size_t size, bool is_signed)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < size) {
		c->failed = true;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	c->address += size;
	if (is_signed && size < 8)
		value = (uint64_t)((int64_t)(value << (64 - 8 * size)) >> (64 - 8 * size));
	return value;
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;

	do {
		byte = take(c, 1, false);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !c->failed);
	return value;
}

static uint64_t take_encoded(struct cursor *c, uint8_t encoding)
{
	uint64_t from = c->address, value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: value = take(c, 8, false); break;
	case DW_EH_PE_uleb128: value = take_uleb(c); break;
	case DW_EH_PE_udata2: value = take(c, 2, false); break;
	case DW_EH_PE_sdata2: value = take(c, 2, true); break;
	case DW_EH_PE_udata4: value = take(c, 4, false); break;
	case DW_EH_PE_sdata4: value = take(c, 4, true); break;
	default: c->failed = true; return 0;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel && value)
		value += from;
	else if (encoding & 0x70)
		c->failed = true;
	return value;
}

/* Whether a call may be in [start, start + length): of rel32, or of r/m64, by its ModRM byte. */
static bool has_call(struct fay_taken *taken, uint64_t start, uint64_t length)
{
	const struct fay_taken_section *section = fay_taken_section_of(taken, start);
	const uint8_t *at;

	if (!section || !section->bytes || length > section->end - start)
		return true;
	at = section->bytes + (start - section->start);
	for (uint64_t i = 0; i + 1 < length && taken->work <= FAY_TAKEN_WORK_MAX;
	     i++, taken->work++)
		if (at[i] == 0xe8 || (at[i] == 0xff && (at[i + 1] & 0x38) == 0x10))
			return true;
	return false;
}

static void read_handlers(struct fay_taken *taken, uint64_t function, uint64_t table)
{
	const struct fay_taken_section *section = fay_taken_section_of(taken, table);
	struct cursor c;
	uint64_t base = function, end;
	uint8_t encoding;

	if (!section || !section->bytes)
		return;
	c = (struct cursor){ section->bytes + (table - section->start),
			     section->bytes + (section->end - section->start), table, false };
	encoding = (uint8_t)take(&c, 1, false);
	if (encoding != DW_EH_PE_omit)
		base = take_encoded(&c, encoding);
	encoding = (uint8_t)take(&c, 1, false);
	if (encoding != DW_EH_PE_omit)
		take_uleb(&c);
	encoding = (uint8_t)take(&c, 1, false);
	end = take_uleb(&c);
	end += c.address;
	while (c.address < end && !c.failed && !taken->failed) {
		uint64_t start, length, pad;

		taken->failed |= ++taken->work > FAY_TAKEN_WORK_MAX;
		start = take_encoded(&c, encoding);
		length = take_encoded(&c, encoding);
		pad = take_encoded(&c, encoding);
		take_uleb(&c);
		if (!pad || c.failed)
			continue;
		fay_taken_add(taken, FAY_TAKEN_HANDLER, base + pad);
		/* What is thrown there is thrown by an instruction (-fnon-call-exceptions). */
		if (!taken->faults && length)
			taken->faults = !has_call(taken, function + start, length);
	}
	if (c.failed)
		fay_taken_add(taken, FAY_TAKEN_DOUBT, function);
}

struct encodings {
	uint8_t pointers, handlers;
	bool augmented;
};

static struct encodings encodings_of(const Dwarf_CIE *cie)
{
	const uint8_t *data = cie->augmentation_data, *end = data + cie->augmentation_data_size;
	struct encodings encodings = { DW_EH_PE_absptr, DW_EH_PE_omit, false };

	if (!cie->augmentation || cie->augmentation[0] != 'z')
		return encodings;
	encodings.augmented = true;
	for (const char *letter = cie->augmentation + 1; *letter && data < end; letter++) {
		if (*letter == 'S' || *letter == 'B')
			continue;
		if (*letter == 'R')
			encodings.pointers = *data;
		if (*letter == 'L')
			encodings.handlers = *data;
		if (*letter == 'P')
			data += (*data & 7) == DW_EH_PE_udata4   ? 4
				: (*data & 7) == DW_EH_PE_udata2 ? 2
								 : 8;
		data++;
	}
	return encodings;
}

void fay_taken_read_frames(struct fay_taken *taken, Elf *elf, const Elf64_Shdr *header,
			   Elf_Data *data)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	struct encodings encodings = { DW_EH_PE_omit, DW_EH_PE_omit, false };
	const uint8_t *begin = data->d_buf;
	Dwarf_Off at = 0, next, cie_at = (Dwarf_Off)-1, behind;
	Dwarf_CFI_Entry entry, cie;

	for (; !dwarf_next_cfi(ident, data, true, at, &next, &entry) && next > at && !taken->failed;
	     at = next) {
		struct cursor c;
		uint64_t function, table;

		if (dwarf_cfi_cie_p(&entry))
			continue;
		if (entry.fde.CIE_pointer != cie_at) {
			cie_at = entry.fde.CIE_pointer;
			if (dwarf_next_cfi(ident, data, true, cie_at, &behind, &cie) ||
			    !dwarf_cfi_cie_p(&cie))
				return;
			encodings = encodings_of(&cie.cie);
		}
		if (!encodings.augmented || encodings.handlers == DW_EH_PE_omit ||
		    entry.fde.start < begin || entry.fde.end > begin + data->d_size)
			continue;
		c = (struct cursor){ entry.fde.start, entry.fde.end,
				     header->sh_addr + (uint64_t)(entry.fde.start - begin), false };
		function = take_encoded(&c, encodings.pointers);
		take_encoded(&c, encodings.pointers & 0x0f);
		if (take_uleb(&c) == 0)
			continue;
		table = take_encoded(&c, encodings.handlers & ~DW_EH_PE_indirect);
		if (table && !c.failed)
			read_handlers(taken, function, table);
	}
}
