/* SPDX-License-Identifier: MIT */
/*
 * What a program loader would do beyond mapping the image: .dynamic may name the checked tables and
 * nothing else, and relocations may fill helper slots only.
 */
#include <string.h>

#include "image_parse.h"

/* A table that .dynamic names must be the section that was checked. */
static bool check_dynamic_place(struct parser *parser, enum section_id id, uint64_t value,
				bool size)
{
	const struct section *section = &parser->known[id];

	if (!section->size ? value != 0 : value != (size ? section->size : section->address))
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			".dynamic says %s of %s is %#llx, its section header says %#llx",
			size ? "size" : "address", fay_section_name(id), (unsigned long long)value,
			(unsigned long long)(size ? section->size : section->address));
	return true;
}

static bool check_dynamic_entry(struct parser *parser, int64_t tag, uint64_t value)
{
	switch (tag) {
	case DT_HASH:
	case DT_GNU_HASH:
	case DT_SYMENT:
	case DT_RELAENT:
	case DT_SONAME:
	case DT_SYMBOLIC:
	case DT_BIND_NOW:
	case DT_PLTGOT:
	case DT_VERSYM:
	case DT_VERDEF:
	case DT_VERDEFNUM:
	case DT_DEBUG:
	case DT_FLAGS_1: return true;
	case DT_FLAGS:
		if (value & ~(uint64_t)(DF_BIND_NOW | DF_SYMBOLIC))
			return fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
						 "DT_FLAGS %#llx: text relocations, TLS or $ORIGIN",
						 (unsigned long long)value);
		return true;
	case DT_STRTAB: return check_dynamic_place(parser, SECTION_DYNSTR, value, false);
	case DT_STRSZ: return check_dynamic_place(parser, SECTION_DYNSTR, value, true);
	case DT_SYMTAB: return check_dynamic_place(parser, SECTION_DYNSYM, value, false);
	case DT_RELA: return check_dynamic_place(parser, SECTION_RELA, value, false);
	case DT_RELASZ: return check_dynamic_place(parser, SECTION_RELA, value, true);
	case DT_RELACOUNT: /* so many R_X86_64_RELATIVE: none is allowed */
		return value == 0 ||
		       fay_parser_refuse(parser, FAY_RULE_IMG_RELOC, "%llu relative relocations",
					 (unsigned long long)value);
	case DT_NEEDED:
		return fay_parser_refuse(parser, FAY_RULE_IMG_IMPORT,
					 "the image depends on a library (DT_NEEDED)");
	case DT_TEXTREL:
	case DT_REL:
	case DT_RELSZ:
	case DT_RELENT:
	case DT_JMPREL:
	case DT_PLTREL:
	case DT_PLTRELSZ:
		return fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
					 "dynamic tag %lld: relocations other than helper slots",
					 (long long)tag);
	case DT_INIT:
	case DT_FINI:
	case DT_INIT_ARRAY:
	case DT_FINI_ARRAY:
	case DT_PREINIT_ARRAY:
	case DT_INIT_ARRAYSZ:
	case DT_FINI_ARRAYSZ:
	case DT_PREINIT_ARRAYSZ:
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_SECTION,
			"dynamic tag %lld: constructors and destructors are not allowed",
			(long long)tag);
	default:
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
					 "dynamic tag %#llx is not allowed",
					 (unsigned long long)tag);
	}
}

bool fay_parse_dynamic(struct parser *parser)
{
	const struct section *dynamic = &parser->known[SECTION_DYNAMIC];
	uint64_t count = dynamic->size / sizeof(Elf64_Dyn);

	for (unsigned i = 0; i < parser->header.e_phnum; i++) {
		const Elf64_Phdr *p = &parser->segments[i];
		if (p->p_type == PT_DYNAMIC &&
		    (p->p_vaddr != dynamic->address || p->p_offset != dynamic->offset ||
		     p->p_filesz != dynamic->size))
			return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
						 "PT_DYNAMIC is not section .dynamic");
	}
	if (count > MAX_DYNAMIC)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT,
					 "%llu dynamic entries (limit %u)",
					 (unsigned long long)count, MAX_DYNAMIC);
	for (uint64_t i = 0; i < count; i++) {
		Elf64_Dyn entry;

		memcpy(&entry, dynamic->bytes + i * sizeof(entry), sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		if (!check_dynamic_entry(parser, entry.d_tag, entry.d_un.d_val))
			return false;
	}
	return true;
}

static int find_helper(const char *name)
{
	for (unsigned i = 0; i < FAY_HELPER_COUNT; i++) {
		if (strcmp(name, fay_helper_name(i)) == 0)
			return (int)i;
	}
	return -1;
}

/* The helper that symbol `index` of .dynsym names; -1 after a refusal. */
static int import_of(struct parser *parser, uint32_t index)
{
	const struct section *symbols = &parser->known[SECTION_DYNSYM],
			     *strings = &parser->known[SECTION_DYNSTR];
	Elf64_Sym symbol;
	const char *name;
	int helper;

	if (index == 0 || index >= symbols->size / sizeof(symbol)) {
		fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
				  "a relocation names symbol %u, which does not exist", index);
		return -1;
	}
	memcpy(&symbol, symbols->bytes + (size_t)index * sizeof(symbol), sizeof(symbol));
	name = strings->size ? fay_parser_string(strings->bytes, strings->size, symbol.st_name, 256)
			     : NULL;
	if (!name) {
		fay_parser_refuse(parser, FAY_RULE_IMG_ELF, "symbol %u has no proper name", index);
		return -1;
	}
	if (symbol.st_shndx != SHN_UNDEF) {
		fay_parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			"a relocation to %s, which the image defines itself: give it hidden "
			"visibility",
			fay_parser_printable(parser, name));
		return -1;
	}
	helper = find_helper(name);
	if (helper < 0)
		fay_parser_refuse(parser, FAY_RULE_IMG_IMPORT,
				  "import of %s, which is not a helper",
				  fay_parser_printable(parser, name));
	return helper;
}

static bool add_slot(struct parser *parser, const Elf64_Rela *rela)
{
	struct fay_layout *layout = &parser->image->layout;
	const struct fay_range *got = &parser->image->got;
	uint32_t offset;
	int helper;

	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_GLOB_DAT)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			"a relocation of type %u at %#llx: only R_X86_64_GLOB_DAT (%u) is allowed",
			(unsigned)ELF64_R_TYPE(rela->r_info), (unsigned long long)rela->r_offset,
			R_X86_64_GLOB_DAT);
	if (rela->r_addend != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
					 "a helper import with an addend");
	helper = import_of(parser, (uint32_t)ELF64_R_SYM(rela->r_info));
	if (helper < 0)
		return false;
	if (rela->r_offset % 8 != 0 || rela->r_offset < got->start || got->size < 8 ||
	    rela->r_offset - got->start > got->size - 8)
		return fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
					 "a relocation at %#llx, which is not a slot of .got",
					 (unsigned long long)rela->r_offset);
	if (layout->slot_count == FAY_IMAGE_MAX_HELPERS)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT, "more than %u helper slots",
					 FAY_IMAGE_MAX_HELPERS);
	offset = (uint32_t)(rela->r_offset - parser->image->layout_base);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		if (layout->slots[i].offset == offset)
			return fay_parser_refuse(parser, FAY_RULE_IMG_RELOC,
						 "two relocations at %#llx",
						 (unsigned long long)rela->r_offset);
	}
	layout->slots[layout->slot_count].offset = offset;
	layout->slots[layout->slot_count++].helper = (uint32_t)helper;
	return true;
}

bool fay_parse_relocations(struct parser *parser)
{
	const struct section *rela = &parser->known[SECTION_RELA],
			     *symbols = &parser->known[SECTION_DYNSYM];

	if (rela->size % sizeof(Elf64_Rela) != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 ".rela.dyn is not a whole number of relocations");
	if (symbols->size / sizeof(Elf64_Sym) > MAX_DYNSYM)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT, "more than %u dynamic symbols",
					 MAX_DYNSYM);
	/* Ends at the first that is not a new slot, so after FAY_IMAGE_MAX_HELPERS + 1 at most. */
	for (uint64_t at = 0; at < rela->size; at += sizeof(Elf64_Rela)) {
		Elf64_Rela entry;

		memcpy(&entry, rela->bytes + at, sizeof(entry));
		if (!add_slot(parser, &entry))
			return false;
	}
	return true;
}

/* The installed bytes: code and constants copied, slots and gaps zero. The base is a page's start,
 * so alignments survive any page-aligned placement. */
