/* SPDX-License-Identifier: MIT */
/*
 * The ELF side of the image parser: from a hostile file to three byte ranges (.text, .rodata,
 * .got), the helper slots and names for messages.
 *
 * It believes neither view of an ELF file alone. Every allocated section must be known by name, lie
 * wholly inside exactly one PT_LOAD at the place that the segment gives it, and not overlap
 * another; so what the sections say and what a program loader would map are the same bytes. Then
 * everything that makes a loader do more than map (constructors, TLS, interpreters, dependencies,
 * relocations other than helper slots) is refused. The layout that is verified and installed is
 * made of the three ranges only, everything else in it is zero.
 *
 * Every structure is copied out of the file through parser_span(), which checks its bounds; offsets
 * are not followed twice; loops are bounded by the limits in image_parse.h. Nothing recurses.
 * docs/probe-image.md is the specification.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_parse.h"
#include "verifier/rules/rules.h"

bool parser_refuse(struct parser *parser, enum fay_rule rule, const char *format, ...)
{
	char text[512];
	va_list args;

	if (parser->refusal.rule != FAY_RULE_NONE)
		return false;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	parser->refusal = fay_refuse(parser->arena, rule, 0, "%s", text);
	return false;
}

void *parser_alloc(struct parser *parser, size_t count, size_t size)
{
	size_t bytes;
	void *memory = NULL;

	if (!__builtin_mul_overflow(count, size, &bytes))
		memory = fay_arena_alloc(parser->arena, bytes);
	if (!memory)
		parser_refuse(parser, FAY_RULE_LIM_RESOURCE,
			      "out of the verifier's memory while reading the image");
	return memory;
}

const uint8_t *parser_span(const struct parser *parser, uint64_t offset, uint64_t size)
{
	if (offset > parser->file_size || size > parser->file_size - offset)
		return NULL;
	return parser->file + offset;
}

static bool read_header(struct parser *parser)
{
	Elf64_Ehdr *h = &parser->header;
	const uint8_t *bytes = parser_span(parser, 0, sizeof(*h));

	if (!bytes)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "the file is %zu bytes long, shorter than an ELF header",
				     parser->file_size);
	memcpy(h, bytes, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "the file does not begin with the ELF magic number");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "not a 64-bit little-endian ELF file of version 1");
	if (h->e_ident[EI_OSABI] != ELFOSABI_SYSV && h->e_ident[EI_OSABI] != ELFOSABI_GNU)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "OS ABI %u, expected System V or GNU", h->e_ident[EI_OSABI]);
	if (h->e_machine != EM_X86_64)
		return parser_refuse(parser, FAY_RULE_IMG_ELF, "machine %u, expected x86-64 (%u)",
				     h->e_machine, EM_X86_64);
	if (h->e_type != ET_DYN)
		return parser_refuse(
			parser, FAY_RULE_IMG_ELF,
			"ELF type %u, expected a shared object (%u): link with -shared", h->e_type,
			ET_DYN);
	if (h->e_ehsize != sizeof(*h) || h->e_phentsize != sizeof(Elf64_Phdr) ||
	    h->e_shentsize != sizeof(Elf64_Shdr))
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "ELF header entry sizes are not those of ELF64");
	if (h->e_phnum == 0 || h->e_shnum == 0 || h->e_shstrndx >= h->e_shnum)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "no program headers, section headers or section names");
	if (h->e_phnum > MAX_SEGMENTS || h->e_shnum > MAX_SECTIONS)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT,
				     "%u program headers (limit %u), %u sections (limit %u)",
				     h->e_phnum, MAX_SEGMENTS, h->e_shnum, MAX_SECTIONS);
	return true;
}

static bool read_header_tables(struct parser *parser)
{
	const Elf64_Ehdr *h = &parser->header;
	const uint8_t *segments =
		parser_span(parser, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr));
	const uint8_t *sections =
		parser_span(parser, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));

	if (!segments)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "the program headers lie outside the file");
	if (!sections)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "the section headers lie outside the file");
	memcpy(parser->segments, segments, h->e_phnum * sizeof(Elf64_Phdr));
	memcpy(parser->sections, sections, h->e_shnum * sizeof(Elf64_Shdr));
	return true;
}

static bool check_load(struct parser *parser, unsigned i, uint64_t *end)
{
	const Elf64_Phdr *s = &parser->segments[i];

	if ((s->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return parser_refuse(parser, FAY_RULE_IMG_WX,
				     "segment %u is both writable and executable", i);
	if (!parser_span(parser, s->p_offset, s->p_filesz))
		return parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
				     "segment %u lies outside the file", i);
	if (s->p_vaddr >= MAX_ADDRESS || s->p_memsz >= MAX_ADDRESS)
		return parser_refuse(parser, FAY_RULE_IMG_LAYOUT, "segment %u lies above 2^46", i);
	if (s->p_memsz != s->p_filesz)
		return parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
				     "segment %u has %llu bytes in memory, %llu in the file (.bss "
				     "is not allowed)",
				     i, (unsigned long long)s->p_memsz,
				     (unsigned long long)s->p_filesz);
	if ((s->p_vaddr - s->p_offset) % PAGE_SIZE != 0)
		return parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
				     "address and file offset of segment %u differ within the page",
				     i);
	if (s->p_vaddr < *end)
		return parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
				     "segment %u overlaps the one before it, or is out of order",
				     i);
	/* Loaders map whole pages: where two segments share one, the later would put other bytes of
	 * the file over the earlier. */
	for (unsigned k = 0; k < i; k++) {
		const Elf64_Phdr *before = &parser->segments[k];

		if (before->p_type == PT_LOAD && before->p_memsz && s->p_memsz &&
		    (before->p_vaddr + before->p_memsz - 1) / PAGE_SIZE == s->p_vaddr / PAGE_SIZE &&
		    s->p_vaddr - s->p_offset != before->p_vaddr - before->p_offset)
			return parser_refuse(
				parser, FAY_RULE_IMG_LAYOUT,
				"segments %u and %u map different parts of the file to one page", k,
				i);
	}
	*end = s->p_vaddr + s->p_memsz;
	return true;
}

static bool check_segments(struct parser *parser)
{
	uint64_t end = 0;

	for (unsigned i = 0; i < parser->header.e_phnum; i++) {
		const Elf64_Phdr *s = &parser->segments[i];

		switch (s->p_type) {
		case PT_LOAD:
			if (!check_load(parser, i, &end))
				return false;
			break;
		case PT_GNU_STACK:
			if (s->p_flags & PF_X)
				return parser_refuse(
					parser, FAY_RULE_IMG_WX,
					"an executable stack is asked for (PT_GNU_STACK)");
			break;
		case PT_NULL:
		case PT_PHDR:
		case PT_NOTE:
		case PT_DYNAMIC:
		case PT_GNU_EH_FRAME:
		case PT_GNU_RELRO:
		case PT_GNU_PROPERTY: break;
		case PT_INTERP:
			return parser_refuse(parser, FAY_RULE_IMG_SECTION,
					     "an interpreter is asked for (PT_INTERP)");
		case PT_TLS:
			return parser_refuse(parser, FAY_RULE_IMG_SECTION,
					     "thread-local storage (PT_TLS)");
		default:
			return parser_refuse(parser, FAY_RULE_IMG_SECTION,
					     "program header %u of unknown type %#x", i, s->p_type);
		}
	}
	return true;
}

const char *parser_string(const uint8_t *table, uint64_t size, uint64_t offset, size_t max)
{
	uint64_t rest = offset < size ? size - offset : 0;

	if (rest > max)
		rest = max;
	return rest && memchr(table + offset, 0, rest) ? (const char *)table + offset : NULL;
}

const char *parser_printable(struct parser *parser, const char *text)
{
	char *copy = fay_arena_printf(parser->arena, "%.64s", text);

	for (char *c = copy; c && *c; c++) {
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	}
	return copy ? copy : "?";
}

/* A table that .dynamic names must be the section that was checked. */
static bool check_dynamic_place(struct parser *parser, enum section_id id, uint64_t value,
				bool size)
{
	const struct section *section = &parser->known[id];

	if (!section->size ? value != 0 : value != (size ? section->size : section->address))
		return parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			".dynamic says %s of %s is %#llx, its section header says %#llx",
			size ? "size" : "address", known_section_name(id),
			(unsigned long long)value,
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
			return parser_refuse(parser, FAY_RULE_IMG_RELOC,
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
		       parser_refuse(parser, FAY_RULE_IMG_RELOC, "%llu relative relocations",
				     (unsigned long long)value);
	case DT_NEEDED:
		return parser_refuse(parser, FAY_RULE_IMG_IMPORT,
				     "the image depends on a library (DT_NEEDED)");
	case DT_TEXTREL:
	case DT_REL:
	case DT_RELSZ:
	case DT_RELENT:
	case DT_JMPREL:
	case DT_PLTREL:
	case DT_PLTRELSZ:
		return parser_refuse(parser, FAY_RULE_IMG_RELOC,
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
		return parser_refuse(
			parser, FAY_RULE_IMG_SECTION,
			"dynamic tag %lld: constructors and destructors are not allowed",
			(long long)tag);
	default:
		return parser_refuse(parser, FAY_RULE_IMG_SECTION,
				     "dynamic tag %#llx is not allowed", (unsigned long long)tag);
	}
}

static bool check_dynamic(struct parser *parser)
{
	const struct section *dynamic = &parser->known[SECTION_DYNAMIC];
	uint64_t count = dynamic->size / sizeof(Elf64_Dyn);

	for (unsigned i = 0; i < parser->header.e_phnum; i++) {
		const Elf64_Phdr *p = &parser->segments[i];
		if (p->p_type == PT_DYNAMIC &&
		    (p->p_vaddr != dynamic->address || p->p_offset != dynamic->offset ||
		     p->p_filesz != dynamic->size))
			return parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
					     "PT_DYNAMIC is not section .dynamic");
	}
	if (count > MAX_DYNAMIC)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT, "%llu dynamic entries (limit %u)",
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
		parser_refuse(parser, FAY_RULE_IMG_RELOC,
			      "a relocation names symbol %u, which does not exist", index);
		return -1;
	}
	memcpy(&symbol, symbols->bytes + (size_t)index * sizeof(symbol), sizeof(symbol));
	name = strings->size ? parser_string(strings->bytes, strings->size, symbol.st_name, 256)
			     : NULL;
	if (!name) {
		parser_refuse(parser, FAY_RULE_IMG_ELF, "symbol %u has no proper name", index);
		return -1;
	}
	if (symbol.st_shndx != SHN_UNDEF) {
		parser_refuse(parser, FAY_RULE_IMG_RELOC,
			      "a relocation to %s, which the image defines itself: give it hidden "
			      "visibility",
			      parser_printable(parser, name));
		return -1;
	}
	helper = find_helper(name);
	if (helper < 0)
		parser_refuse(parser, FAY_RULE_IMG_IMPORT, "import of %s, which is not a helper",
			      parser_printable(parser, name));
	return helper;
}

static bool add_slot(struct parser *parser, const Elf64_Rela *rela)
{
	struct fay_layout *layout = &parser->image->layout;
	const struct fay_range *got = &parser->image->got;
	uint32_t offset;
	int helper;

	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_GLOB_DAT)
		return parser_refuse(
			parser, FAY_RULE_IMG_RELOC,
			"a relocation of type %u at %#llx: only R_X86_64_GLOB_DAT (%u) is allowed",
			(unsigned)ELF64_R_TYPE(rela->r_info), (unsigned long long)rela->r_offset,
			R_X86_64_GLOB_DAT);
	if (rela->r_addend != 0)
		return parser_refuse(parser, FAY_RULE_IMG_RELOC, "a helper import with an addend");
	helper = import_of(parser, (uint32_t)ELF64_R_SYM(rela->r_info));
	if (helper < 0)
		return false;
	if (rela->r_offset % 8 != 0 || rela->r_offset < got->start || got->size < 8 ||
	    rela->r_offset - got->start > got->size - 8)
		return parser_refuse(parser, FAY_RULE_IMG_RELOC,
				     "a relocation at %#llx, which is not a slot of .got",
				     (unsigned long long)rela->r_offset);
	if (layout->slot_count == FAY_IMAGE_MAX_HELPERS)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT, "more than %u helper slots",
				     FAY_IMAGE_MAX_HELPERS);
	offset = (uint32_t)(rela->r_offset - parser->image->layout_base);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		if (layout->slots[i].offset == offset)
			return parser_refuse(parser, FAY_RULE_IMG_RELOC, "two relocations at %#llx",
					     (unsigned long long)rela->r_offset);
	}
	layout->slots[layout->slot_count].offset = offset;
	layout->slots[layout->slot_count++].helper = (uint32_t)helper;
	return true;
}

static bool read_relocations(struct parser *parser)
{
	const struct section *rela = &parser->known[SECTION_RELA],
			     *symbols = &parser->known[SECTION_DYNSYM];

	if (rela->size % sizeof(Elf64_Rela) != 0)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     ".rela.dyn is not a whole number of relocations");
	if (symbols->size / sizeof(Elf64_Sym) > MAX_DYNSYM)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT, "more than %u dynamic symbols",
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
static bool make_layout(struct parser *parser)
{
	static const enum section_id parts[] = { SECTION_TEXT, SECTION_RODATA, SECTION_GOT };
	struct fay_image *image = parser->image;
	struct fay_range *ranges[] = { &image->text, &image->rodata, &image->got };
	uint64_t low = UINT64_MAX, high = 0;

	for (unsigned i = 0; i < 3; i++) {
		const struct section *s = &parser->known[parts[i]];

		*ranges[i] = (struct fay_range){ s->address, s->size };
		if (!s->size)
			continue;
		low = s->address < low ? s->address : low;
		high = s->address + s->size > high ? s->address + s->size : high;
	}
	low -= low % PAGE_SIZE;
	if (high - low > FAY_IMAGE_MAX_SPAN)
		return parser_refuse(parser, FAY_RULE_IMG_LIMIT,
				     "code, constants and slots span %llu bytes (limit %u)",
				     (unsigned long long)(high - low), FAY_IMAGE_MAX_SPAN);
	image->layout_base = low;
	image->layout.size = (size_t)(high - low);
	image->layout.bytes = parser_alloc(parser, image->layout.size, 1);
	if (!image->layout.bytes)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const struct section *s = &parser->known[parts[i]];
		if (s->size)
			memcpy(image->layout.bytes + (s->address - low), s->bytes, s->size);
	}
	image->layout.code_offset = (uint32_t)(image->text.start - low);
	image->layout.code_size = (uint32_t)image->text.size;
	return true;
}

static int compare_symbol(const void *a, const void *b)
{
	const struct fay_image_symbol *x = a, *y = b;
	return x->address < y->address   ? -1
	       : x->address > y->address ? 1
					 : strcmp(x->name, y->name);
}

/* .symtab if there is one, else .dynsym. Names are for messages only: odd symbols are skipped, a
 * table outside the file is not. */
static bool read_symbols(struct parser *parser)
{
	const Elf64_Shdr *table = NULL, *strings;
	const uint8_t *bytes, *names;
	struct fay_image_symbol *symbols;
	uint64_t count;
	uint32_t kept = 0;

	for (unsigned i = 1; i < parser->header.e_shnum; i++) {
		const Elf64_Shdr *s = &parser->sections[i];
		if (s->sh_type == SHT_SYMTAB || (s->sh_type == SHT_DYNSYM && !table))
			table = s;
	}
	if (!table)
		return true;
	strings =
		table->sh_link < parser->header.e_shnum ? &parser->sections[table->sh_link] : NULL;
	bytes = parser_span(parser, table->sh_offset, table->sh_size);
	names = strings ? parser_span(parser, strings->sh_offset, strings->sh_size) : NULL;
	if (!bytes || !names || strings->sh_type != SHT_STRTAB)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "the symbol table or its names lie outside the file");
	count = table->sh_size / sizeof(Elf64_Sym);
	count = count < MAX_SYMBOLS ? count : MAX_SYMBOLS;
	symbols = parser_alloc(parser, count, sizeof(*symbols));
	if (!symbols)
		return false;
	for (uint64_t i = 1; i < count; i++) {
		Elf64_Sym symbol;
		const char *name;
		unsigned type;

		memcpy(&symbol, bytes + i * sizeof(symbol), sizeof(symbol));
		type = ELF64_ST_TYPE(symbol.st_info);
		name = parser_string(names, strings->sh_size, symbol.st_name, MAX_SYMBOL_NAME);
		if ((type != STT_FUNC && type != STT_NOTYPE) || symbol.st_shndx == SHN_UNDEF ||
		    !name || !*name ||
		    symbol.st_value - parser->image->text.start >= parser->image->text.size)
			continue;
		symbols[kept].address = symbol.st_value;
		symbols[kept++].name = parser_printable(parser, name);
	}
	qsort(symbols, kept, sizeof(*symbols), compare_symbol);
	parser->image->symbols = symbols;
	parser->image->symbol_count = kept;
	return true;
}

/* Nothing starts at the entry point, but a file whose header points into the middle of its code is
 * not what it says it is. */
static bool check_entry(struct parser *parser)
{
	uint64_t entry = parser->header.e_entry;

	if (entry != 0 && entry != parser->image->text.start)
		return parser_refuse(parser, FAY_RULE_IMG_ELF,
				     "entry point %#llx: must be 0 or the start of .text",
				     (unsigned long long)entry);
	return true;
}

struct fay_refusal fay_image_parse(struct fay_arena *arena, const void *bytes, size_t size,
				   struct fay_image *image)
{
	struct parser *parser = fay_arena_alloc(arena, sizeof(*parser));

	memset(image, 0, sizeof(*image));
	if (!parser)
		return fay_refuse(arena, FAY_RULE_LIM_RESOURCE, 0,
				  "out of the verifier's memory while reading the image");
	parser->arena = arena;
	parser->file = bytes;
	parser->file_size = size;
	parser->image = image;
	if (size > FAY_IMAGE_MAX_FILE)
		parser_refuse(parser, FAY_RULE_IMG_LIMIT, "the file has %zu bytes (limit %u)", size,
			      FAY_IMAGE_MAX_FILE);
	else if (read_header(parser) && read_header_tables(parser) && check_segments(parser) &&
		 parse_sections(parser) && check_dynamic(parser) && make_layout(parser) &&
		 check_entry(parser) && read_relocations(parser) && read_symbols(parser) &&
		 parse_tables(parser))
		fay_sha256(image->layout.bytes, image->layout.size, image->layout.sha256);
	return parser->refusal;
}

int fay_image_slot(const struct fay_image *image, uint64_t address)
{
	for (uint32_t i = 0; i < image->layout.slot_count; i++) {
		if (image->layout_base + image->layout.slots[i].offset == address)
			return (int)image->layout.slots[i].helper;
	}
	return -1;
}
