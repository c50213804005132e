/* SPDX-License-Identifier: MIT */
/*
 * The sections of an image: each allocated one must be known by name, be what that name demands,
 * lie wholly inside one PT_LOAD at the place that the segment gives it, and not overlap another.
 */
#include <stdlib.h>
#include <string.h>

#include "image_parse.h"

/* Which sections have a meaning, and what they must be. */
static const struct known_section {
	const char *name;
	uint32_t type;
	uint64_t required, allowed; /* flags: must be set; may be set besides */
} known_sections[SECTION_COUNT] = {
	[SECTION_TEXT] = { ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0 },
	[SECTION_RODATA] = { ".rodata", SHT_PROGBITS, SHF_ALLOC, SHF_MERGE | SHF_STRINGS },
	[SECTION_GOT] = { ".got", SHT_PROGBITS, SHF_ALLOC, SHF_WRITE },
	[SECTION_RELA] = { ".rela.dyn", SHT_RELA, SHF_ALLOC, SHF_INFO_LINK },
	[SECTION_DYNSYM] = { ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0 },
	[SECTION_DYNSTR] = { ".dynstr", SHT_STRTAB, SHF_ALLOC, SHF_STRINGS },
	[SECTION_DYNAMIC] = { ".dynamic", SHT_DYNAMIC, SHF_ALLOC, SHF_WRITE },
	[SECTION_IMAGE] = { ".fay.image", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SECTION_PROBES] = { ".fay.probes", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SECTION_STATE] = { ".fay.state", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SECTION_COLUMNS] = { ".fay.columns", SHT_PROGBITS, SHF_ALLOC, 0 },
	[SECTION_STRINGS] = { ".fay.strings", SHT_PROGBITS, SHF_ALLOC, SHF_MERGE | SHF_STRINGS },
	[SECTION_LINES] = { ".fay.lines", SHT_PROGBITS, SHF_ALLOC, 0 },
};

/* Allocated sections that linkers add and that say nothing about code. A name that ends in "*" is a
 * prefix. Not installed. */
static const struct {
	const char *name;
	bool may_write;
} ignored_sections[] = {
	{ ".hash", false },   { ".gnu.hash", false }, { ".gnu.version*", false },
	{ ".note.*", false }, { ".eh_frame", false }, { ".eh_frame_hdr", false },
	{ ".got.plt", true },
};

static int find_known(const char *name)
{
	for (int i = 0; i < SECTION_COUNT; i++) {
		if (strcmp(name, known_sections[i].name) == 0)
			return i;
	}
	return -1;
}

static int find_ignored(const char *name)
{
	for (size_t i = 0; i < sizeof(ignored_sections) / sizeof(*ignored_sections); i++) {
		const char *pattern = ignored_sections[i].name;
		size_t length = strlen(pattern);
		bool prefix = pattern[length - 1] == '*';

		if (prefix ? strncmp(name, pattern, length - 1) == 0 : strcmp(name, pattern) == 0)
			return (int)i;
	}
	return -1;
}

const char *fay_section_name(enum section_id id)
{
	return known_sections[id].name;
}

/* An allocated section with content whose name means nothing to us. */
static bool refuse_unknown(struct parser *parser, const Elf64_Shdr *s, const char *name)
{
	name = fay_parser_printable(parser, name);
	if ((s->sh_flags & (SHF_WRITE | SHF_EXECINSTR)) == (SHF_WRITE | SHF_EXECINSTR))
		return fay_parser_refuse(parser, FAY_RULE_IMG_WX,
					 "section %s is both writable and executable", name);
	if (s->sh_type == SHT_RELA || s->sh_type == SHT_REL || s->sh_type == SHT_RELR)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			"section %s holds relocations: only helper slots in .rela.dyn are allowed",
			name);
	if (s->sh_flags & SHF_TLS)
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
					 "section %s: thread-local storage is not allowed", name);
	if (s->sh_type == SHT_INIT_ARRAY || s->sh_type == SHT_FINI_ARRAY ||
	    s->sh_type == SHT_PREINIT_ARRAY)
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
					 "section %s: constructors and destructors are not allowed",
					 name);
	if (s->sh_flags & SHF_WRITE)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_WX,
			"section %s is writable data: keep state in LOCAL or GLOBAL", name);
	return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
				 "section %s is not one that an image may have", name);
}

/* Wholly inside one PT_LOAD, at the same distance from its start in memory and in the file. */
static bool check_mapping(struct parser *parser, const Elf64_Shdr *s, const char *name,
			  bool may_write)
{
	for (unsigned i = 0; i < parser->header.e_phnum; i++) {
		const Elf64_Phdr *p = &parser->segments[i];

		if (p->p_type != PT_LOAD || s->sh_addr < p->p_vaddr ||
		    s->sh_addr - p->p_vaddr >= p->p_memsz)
			continue;
		if (s->sh_size > p->p_memsz - (s->sh_addr - p->p_vaddr))
			return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
						 "section %s runs past the end of its segment",
						 fay_parser_printable(parser, name));
		if (s->sh_offset - p->p_offset != s->sh_addr - p->p_vaddr)
			return fay_parser_refuse(
				parser, FAY_RULE_IMG_LAYOUT,
				"section %s is elsewhere in the file than its segment maps",
				fay_parser_printable(parser, name));
		if ((p->p_flags & PF_W) && !may_write)
			return fay_parser_refuse(parser, FAY_RULE_IMG_WX,
						 "section %s lies in a writable segment",
						 fay_parser_printable(parser, name));
		if ((s->sh_flags & SHF_EXECINSTR) && !(p->p_flags & PF_X))
			return fay_parser_refuse(
				parser, FAY_RULE_IMG_LAYOUT,
				"section %s is code in a segment that is not executable",
				fay_parser_printable(parser, name));
		return true;
	}
	return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT, "section %s lies in no segment",
				 fay_parser_printable(parser, name));
}

static bool add_known(struct parser *parser, const Elf64_Shdr *s, unsigned id)
{
	const struct known_section *known = &known_sections[id];
	struct section *section = &parser->known[id];

	if (section->size)
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION, "two sections are named %s",
					 known->name);
	if ((s->sh_flags & SHF_WRITE) && !(known->allowed & SHF_WRITE))
		return fay_parser_refuse(parser, FAY_RULE_IMG_WX, "section %s is writable",
					 known->name);
	if (s->sh_type != known->type)
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
					 "section %s has type %u, expected %u", known->name,
					 s->sh_type, known->type);
	if ((s->sh_flags & known->required) != known->required ||
	    (s->sh_flags & ~(known->required | known->allowed)))
		return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION, "section %s has flags %#llx",
					 known->name, (unsigned long long)s->sh_flags);
	*section = (struct section){ .address = s->sh_addr,
				     .offset = s->sh_offset,
				     .size = s->sh_size,
				     .name = known->name };
	section->bytes = fay_parser_span(parser, s->sh_offset, s->sh_size);
	if (!section->bytes)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
					 "section %s lies outside the file", known->name);
	return true;
}

static bool check_section(struct parser *parser, const Elf64_Shdr *s, const char *name)
{
	int id = find_known(name), ignored = find_ignored(name);
	bool may_write;

	if (!(s->sh_flags & SHF_ALLOC)) {
		if (id >= 0 && s->sh_size)
			return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
						 "section %s is not allocated", name);
		if (s->sh_size && s->sh_type != SHT_NOBITS &&
		    !fay_parser_span(parser, s->sh_offset, s->sh_size))
			return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
						 "section %s lies outside the file",
						 fay_parser_printable(parser, name));
		return true;
	}
	if (s->sh_size == 0)
		return true;
	if (s->sh_addr >= MAX_ADDRESS || s->sh_size >= MAX_ADDRESS)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT, "section %s lies above 2^46",
					 fay_parser_printable(parser, name));
	if (id < 0 && ignored < 0)
		return refuse_unknown(parser, s, name);
	may_write = id >= 0 ? known_sections[id].allowed & SHF_WRITE
			    : ignored_sections[ignored].may_write;
	if ((s->sh_flags & SHF_WRITE) && !may_write)
		return fay_parser_refuse(parser, FAY_RULE_IMG_WX, "section %s is writable",
					 fay_parser_printable(parser, name));
	if (id < 0 && (s->sh_type == SHT_NOBITS || s->sh_type == SHT_RELA ||
		       s->sh_type == SHT_REL || (s->sh_flags & (SHF_EXECINSTR | SHF_TLS))))
		return refuse_unknown(parser, s, name);
	if (id >= 0 && !add_known(parser, s, (unsigned)id))
		return false;
	return check_mapping(parser, s, name, may_write);
}

static int compare_address(const void *a, const void *b)
{
	const Elf64_Shdr *const *x = a, *const *y = b;
	return (*x)->sh_addr<(*y)->sh_addr ? -1 : (*x)->sh_addr>(*y)->sh_addr;
}

static bool check_overlap(struct parser *parser)
{
	const Elf64_Shdr *order[MAX_SECTIONS];
	size_t count = 0;

	for (unsigned i = 1; i < parser->header.e_shnum; i++) {
		const Elf64_Shdr *s = &parser->sections[i];
		if ((s->sh_flags & SHF_ALLOC) && s->sh_size)
			order[count++] = s;
	}
	qsort(order, count, sizeof(*order), compare_address);
	for (size_t i = 1; i < count; i++) {
		if (order[i - 1]->sh_size > order[i]->sh_addr - order[i - 1]->sh_addr)
			return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
						 "sections %zu and %zu overlap at address %#llx",
						 (size_t)(order[i - 1] - parser->sections),
						 (size_t)(order[i] - parser->sections),
						 (unsigned long long)order[i]->sh_addr);
	}
	return true;
}

bool fay_parse_sections(struct parser *parser)
{
	const Elf64_Shdr *names = &parser->sections[parser->header.e_shstrndx];
	const uint8_t *table = names->sh_type == SHT_STRTAB
				       ? fay_parser_span(parser, names->sh_offset, names->sh_size)
				       : NULL;

	if (!table)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF, "no section names");
	for (unsigned i = 1; i < parser->header.e_shnum; i++) {
		const char *name =
			fay_parser_string(table, names->sh_size, parser->sections[i].sh_name, 256);

		if (!name)
			return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
						 "section %u has no proper name", i);
		if (!check_section(parser, &parser->sections[i], name))
			return false;
	}
	if (!check_overlap(parser))
		return false;
	for (unsigned i = 0; i < 3; i++) {
		static const enum section_id required[] = { SECTION_TEXT, SECTION_IMAGE,
							    SECTION_STRINGS };
		if (!parser->known[required[i]].size)
			return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
						 "section %s is missing",
						 known_sections[required[i]].name);
	}
	return true;
}
