/* SPDX-License-Identifier: MIT */
/*
 * Functions of stripped objects, from the unwind table: .eh_frame has an entry (FDE) for every
 * function that an exception may pass, which gcc and clang make for all of C and C++, with its
 * start and size. Each that no symbol names gets a name of its own, `fn_` and its address in
 * hexadecimal.
 *
 * An entry may also be a cold part that the compiler moved out of its function: that is not called
 * but jumped to, flags and red zone in use. One whose frame is not that of a function just called
 * is no function, only a part (FAY_SYMBOL_PART): no pattern finds it, but a marker may lie in it.
 * Of one without a frame nothing tells the difference, so all are marked `unnamed` and are patched
 * with the care that an instruction in the midst of a function needs.
 *
 * Format: System V ABI, AMD64 supplement, 4.2.4 and the Linux Standard Base core specification 5.0,
 * chapter 10.6.
 */
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

#define CODE_SECTIONS_MAX 64u
#define NAME_ROOM 24u /* fn_, 16 digits, NUL */

struct code_section {
	uint64_t start, end;
};

/* The unwind table being read. */
struct table {
	const uint8_t *bytes;
	size_t size;
	uint64_t address;
	/* where functions lie: not the stubs of .plt, not .init */
	struct code_section code[CODE_SECTIONS_MAX];
	size_t code_count;
};

struct bounds {
	uint64_t start, size;
	bool part; /* not entered by a call */
};

static bool holds_functions(const char *name)
{
	return name && strncmp(name, ".plt", 4) && strcmp(name, ".init") && strcmp(name, ".fini");
}

/* The data of .eh_frame, with the sections that hold code. NULL: there is none. */
static Elf_Data *find_table(Elf *elf, struct table *table)
{
	Elf_Scn *section = NULL;
	Elf_Data *data = NULL;
	size_t strings;
	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(elf, strings, header->sh_name) : NULL;
		if (!name || header->sh_addr + header->sh_size < header->sh_addr)
			continue;
		if (header->sh_flags & SHF_EXECINSTR && holds_functions(name) &&
		    table->code_count < CODE_SECTIONS_MAX)
			table->code[table->code_count++] =
				(struct code_section){ header->sh_addr,
						       header->sh_addr + header->sh_size };
		if (strcmp(name, ".eh_frame") || header->sh_type == SHT_NOBITS)
			continue;
		data = elf_getdata(section, NULL);
		table->address = header->sh_addr;
	}
	if (!data || !data->d_buf)
		return NULL;
	table->bytes = data->d_buf;
	table->size = data->d_size;
	return data;
}

/* How a CIE's entries write their addresses (DW_EH_PE_*); DW_EH_PE_omit if that is not
 * understood. */
static uint8_t pointer_encoding(const Dwarf_CIE *cie)
{
	const uint8_t *data = cie->augmentation_data, *end = data + cie->augmentation_data_size;
	if (!cie->augmentation || cie->augmentation[0] != 'z')
		return cie->augmentation && !cie->augmentation[0] ? DW_EH_PE_absptr : DW_EH_PE_omit;
	for (const char *letter = cie->augmentation + 1; *letter; letter++) {
		if (*letter == 'S' || *letter == 'B')
			continue;
		if (data >= end)
			return DW_EH_PE_omit;
		uint8_t encoding = *data++;
		if (*letter == 'R')
			return encoding;
		if (*letter == 'P') /* the personality routine's address follows */
			data += (encoding & 7) == DW_EH_PE_udata4   ? 4
				: (encoding & 7) == DW_EH_PE_udata2 ? 2
								    : 8;
		else if (*letter != 'L')
			return DW_EH_PE_omit;
	}
	return DW_EH_PE_omit;
}

static uint64_t read_field(const uint8_t *from, unsigned width, bool is_signed)
{
	uint32_t narrow;
	uint64_t wide;
	if (width == 8) {
		memcpy(&wide, from, 8);
		return wide;
	}
	memcpy(&narrow, from, 4);
	return is_signed ? (uint64_t)(int64_t)(int32_t)narrow : narrow;
}

/*
 * Whether the frame at the first instruction is the CIE's, the return address on top of the stack.
 * `rest` is what follows the bounds: the length of the augmentation data (ULEB128), the data, then
 * instructions, of which the first tells: with anything but a step forward (or padding) the frame
 * was changed at once.
 */
static bool begins_as_called(const uint8_t *rest, const uint8_t *end, bool augmented)
{
	uint64_t skip = 0;
	unsigned shift = 0;
	while (augmented && rest < end && shift < 63) {
		uint8_t byte = *rest++;
		skip |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (!(byte & 0x80))
			break;
	}
	if (skip > (size_t)(end - rest))
		return false;
	rest += skip;
	return rest == end || *rest == DW_CFA_nop || (*rest & 0xc0) == DW_CFA_advance_loc ||
	       (*rest >= DW_CFA_advance_loc1 && *rest <= DW_CFA_advance_loc4);
}

/* Start and size of the code that an FDE describes. False: it is not a function, or not
 * understood. */
static bool read_bounds(const struct table *table, uint8_t encoding, bool augmented,
			const uint8_t *fde, const uint8_t *end, struct bounds *bounds)
{
	unsigned format = encoding & 0x0f, apply = encoding & 0x70;
	unsigned width = format == DW_EH_PE_sdata4 || format == DW_EH_PE_udata4 ? 4 : 8;
	if (format != DW_EH_PE_absptr && format != DW_EH_PE_sdata4 && format != DW_EH_PE_udata4 &&
	    format != DW_EH_PE_sdata8 && format != DW_EH_PE_udata8)
		return false;
	if ((apply != 0 && apply != DW_EH_PE_pcrel) || encoding & DW_EH_PE_indirect)
		return false;
	if (fde < table->bytes || end > table->bytes + table->size || end < fde ||
	    (size_t)(end - fde) < 2 * width)
		return false;
	bounds->start = read_field(fde, width, format == DW_EH_PE_sdata4);
	if (apply == DW_EH_PE_pcrel)
		bounds->start += table->address + (uint64_t)(fde - table->bytes);
	bounds->size = read_field(fde + width, width, false);
	bounds->part = !begins_as_called(fde + 2 * width, end, augmented);
	for (size_t i = 0; i < table->code_count; i++)
		if (bounds->start >= table->code[i].start && bounds->start < table->code[i].end)
			return bounds->size && bounds->size <= table->code[i].end - bounds->start;
	return false;
}

static bool add_unnamed(struct fay_object *object, const struct bounds *bounds, size_t *room)
{
	if (object->symbol_count == *room) {
		size_t more = *room + *room / 2 + 256;
		struct fay_symbol *grown = more <= FAY_OBJECT_MAX_SYMBOLS
						   ? realloc(object->symbols, more * sizeof(*grown))
						   : NULL;
		if (!grown)
			return false;
		object->symbols = grown;
		*room = more;
	}
	object->symbols[object->symbol_count++] = (struct fay_symbol){
		.kind = bounds->part ? FAY_SYMBOL_PART : FAY_SYMBOL_FUNCTION,
		.unnamed = true,
		.address = bounds->start,
		.size = bounds->size,
	};
	return true;
}

/* Reads the table until its end or the first malformed entry. False: no memory, or too many. */
static bool read_entries(struct fay_object *object, Elf *elf, Elf_Data *data,
			 const struct table *table)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(elf, NULL);
	Dwarf_Off at = 0, next, cie_at = 0;
	Dwarf_CFI_Entry entry, cie;
	uint8_t encoding = DW_EH_PE_omit;
	bool augmented = false;
	size_t room = object->symbol_count;
	struct bounds bounds;
	for (; !dwarf_next_cfi(ident, data, true, at, &next, &entry) && next > at; at = next) {
		if (dwarf_cfi_cie_p(&entry))
			continue;
		if (encoding == DW_EH_PE_omit || entry.fde.CIE_pointer != cie_at) {
			Dwarf_Off behind;
			cie_at = entry.fde.CIE_pointer;
			if (dwarf_next_cfi(ident, data, true, cie_at, &behind, &cie) ||
			    !dwarf_cfi_cie_p(&cie))
				break;
			encoding = pointer_encoding(&cie.cie);
			augmented = cie.cie.augmentation && cie.cie.augmentation[0] == 'z';
		}
		if (encoding == DW_EH_PE_omit ||
		    !read_bounds(table, encoding, augmented, entry.fde.start, entry.fde.end,
				 &bounds))
			continue;
		if (!fay_object_has_start(object, bounds.start) &&
		    !add_unnamed(object, &bounds, &room))
			return false;
	}
	return true;
}

int fay_object_read_unnamed(struct fay_object *object, Elf *elf, const char *name,
			    struct fay_error *error)
{
	struct table table = { 0 };
	Elf_Data *data = find_table(elf, &table);
	size_t named = object->symbol_count;
	if (!data)
		return FAY_OK;
	if (!read_entries(object, elf, data, &table))
		return fay_error_set(error, FAY_E_LIMIT, "%s: too many functions, or out of memory",
				     name);
	size_t count = object->symbol_count - named;
	if (!count)
		return FAY_OK;
	object->made_names = malloc(count * NAME_ROOM);
	if (!object->made_names)
		return fay_error_set(error, FAY_E_LIMIT, "%s: out of memory for %zu names", name,
				     count);
	for (size_t i = 0; i < count; i++) {
		struct fay_symbol *symbol = &object->symbols[named + i];
		char *text = object->made_names + i * NAME_ROOM;
		symbol->length =
			(uint32_t)snprintf(text, NAME_ROOM, "fn_%" PRIx64, symbol->address);
		symbol->name = text;
	}
	return FAY_OK;
}
