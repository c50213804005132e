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
 * Every structure is copied out of the file through fay_parser_span(), which checks its bounds;
 * offsets are not followed twice; loops are bounded by the limits in image_parse.h. Nothing
 * recurses. docs/probe-image.md is the specification.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_parse.h"

bool fay_parser_refuse(struct parser *parser, enum fay_rule rule, const char *format, ...)
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

void *fay_parser_alloc(struct parser *parser, size_t count, size_t size)
{
	size_t bytes;
	void *memory = NULL;

	if (!__builtin_mul_overflow(count, size, &bytes))
		memory = fay_arena_alloc(parser->arena, bytes);
	if (!memory)
		fay_parser_refuse(parser, FAY_RULE_LIM_RESOURCE,
				  "out of the verifier's memory while reading the image");
	return memory;
}

const uint8_t *fay_parser_span(const struct parser *parser, uint64_t offset, uint64_t size)
{
	if (offset > parser->file_size || size > parser->file_size - offset)
		return NULL;
	return parser->file + offset;
}

static bool read_header(struct parser *parser)
{
	Elf64_Ehdr *h = &parser->header;
	const uint8_t *bytes = fay_parser_span(parser, 0, sizeof(*h));

	if (!bytes)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "the file is %zu bytes long, shorter than an ELF header",
					 parser->file_size);
	memcpy(h, bytes, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "the file does not begin with the ELF magic number");
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "not a 64-bit little-endian ELF file of version 1");
	if (h->e_ident[EI_OSABI] != ELFOSABI_SYSV && h->e_ident[EI_OSABI] != ELFOSABI_GNU)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "OS ABI %u, expected System V or GNU",
					 h->e_ident[EI_OSABI]);
	if (h->e_machine != EM_X86_64)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "machine %u, expected x86-64 (%u)", h->e_machine,
					 EM_X86_64);
	if (h->e_type != ET_DYN)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_ELF,
			"ELF type %u, expected a shared object (%u): link with -shared", h->e_type,
			ET_DYN);
	if (h->e_ehsize != sizeof(*h) || h->e_phentsize != sizeof(Elf64_Phdr) ||
	    h->e_shentsize != sizeof(Elf64_Shdr))
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "ELF header entry sizes are not those of ELF64");
	if (h->e_phnum == 0 || h->e_shnum == 0 || h->e_shstrndx >= h->e_shnum)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "no program headers, section headers or section names");
	if (h->e_phnum > MAX_SEGMENTS || h->e_shnum > MAX_SECTIONS)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT,
					 "%u program headers (limit %u), %u sections (limit %u)",
					 h->e_phnum, MAX_SEGMENTS, h->e_shnum, MAX_SECTIONS);
	return true;
}

static bool read_header_tables(struct parser *parser)
{
	const Elf64_Ehdr *h = &parser->header;
	const uint8_t *segments =
		fay_parser_span(parser, h->e_phoff, (uint64_t)h->e_phnum * sizeof(Elf64_Phdr));
	const uint8_t *sections =
		fay_parser_span(parser, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr));

	if (!segments)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "the program headers lie outside the file");
	if (!sections)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "the section headers lie outside the file");
	memcpy(parser->segments, segments, h->e_phnum * sizeof(Elf64_Phdr));
	memcpy(parser->sections, sections, h->e_shnum * sizeof(Elf64_Shdr));
	return true;
}

static bool check_load(struct parser *parser, unsigned i, uint64_t *end)
{
	const Elf64_Phdr *s = &parser->segments[i];

	if ((s->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return fay_parser_refuse(parser, FAY_RULE_IMG_WX,
					 "segment %u is both writable and executable", i);
	if (!fay_parser_span(parser, s->p_offset, s->p_filesz))
		return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT,
					 "segment %u lies outside the file", i);
	if (s->p_vaddr >= MAX_ADDRESS || s->p_memsz >= MAX_ADDRESS)
		return fay_parser_refuse(parser, FAY_RULE_IMG_LAYOUT, "segment %u lies above 2^46",
					 i);
	if (s->p_memsz != s->p_filesz)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LAYOUT,
			"segment %u has %llu bytes in memory, %llu in the file (.bss "
			"is not allowed)",
			i, (unsigned long long)s->p_memsz, (unsigned long long)s->p_filesz);
	if ((s->p_vaddr - s->p_offset) % PAGE_SIZE != 0)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LAYOUT,
			"address and file offset of segment %u differ within the page", i);
	if (s->p_vaddr < *end)
		return fay_parser_refuse(
			parser, FAY_RULE_IMG_LAYOUT,
			"segment %u overlaps the one before it, or is out of order", i);
	/* Loaders map whole pages: where two segments share one, the later would put other bytes of
	 * the file over the earlier. */
	for (unsigned k = 0; k < i; k++) {
		const Elf64_Phdr *before = &parser->segments[k];

		if (before->p_type == PT_LOAD && before->p_memsz && s->p_memsz &&
		    (before->p_vaddr + before->p_memsz - 1) / PAGE_SIZE == s->p_vaddr / PAGE_SIZE &&
		    s->p_vaddr - s->p_offset != before->p_vaddr - before->p_offset)
			return fay_parser_refuse(
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
				return fay_parser_refuse(
					parser, FAY_RULE_IMG_WX,
					"an executable stack is requested (PT_GNU_STACK)");
			break;
		case PT_NULL:
		case PT_PHDR:
		case PT_NOTE:
		case PT_DYNAMIC:
		case PT_GNU_EH_FRAME:
		case PT_GNU_RELRO:
		case PT_GNU_PROPERTY: break;
		case PT_INTERP:
			return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
						 "an interpreter is requested (PT_INTERP)");
		case PT_TLS:
			return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
						 "thread-local storage (PT_TLS)");
		default:
			return fay_parser_refuse(parser, FAY_RULE_IMG_SECTION,
						 "program header %u of unknown type %#x", i,
						 s->p_type);
		}
	}
	return true;
}

const char *fay_parser_string(const uint8_t *table, uint64_t size, uint64_t offset, size_t max)
{
	uint64_t rest = offset < size ? size - offset : 0;

	if (rest > max)
		rest = max;
	return rest && memchr(table + offset, 0, rest) ? (const char *)table + offset : NULL;
}

const char *fay_parser_printable(struct parser *parser, const char *text)
{
	char *copy = fay_arena_printf(parser->arena, "%.64s", text);

	for (char *c = copy; c && *c; c++) {
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	}
	return copy ? copy : "?";
}

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
		return fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT,
					 "code, constants and slots span %llu bytes (limit %u)",
					 (unsigned long long)(high - low), FAY_IMAGE_MAX_SPAN);
	image->layout_base = low;
	image->layout.size = (size_t)(high - low);
	image->layout.bytes = fay_parser_alloc(parser, image->layout.size, 1);
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
	bytes = fay_parser_span(parser, table->sh_offset, table->sh_size);
	names = strings ? fay_parser_span(parser, strings->sh_offset, strings->sh_size) : NULL;
	if (!bytes || !names || strings->sh_type != SHT_STRTAB)
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
					 "the symbol table or its names lie outside the file");
	count = table->sh_size / sizeof(Elf64_Sym);
	count = count < MAX_SYMBOLS ? count : MAX_SYMBOLS;
	symbols = fay_parser_alloc(parser, count, sizeof(*symbols));
	if (!symbols)
		return false;
	for (uint64_t i = 1; i < count; i++) {
		Elf64_Sym symbol;
		const char *name;
		unsigned type;

		memcpy(&symbol, bytes + i * sizeof(symbol), sizeof(symbol));
		type = ELF64_ST_TYPE(symbol.st_info);
		name = fay_parser_string(names, strings->sh_size, symbol.st_name, MAX_SYMBOL_NAME);
		if ((type != STT_FUNC && type != STT_NOTYPE) || symbol.st_shndx == SHN_UNDEF ||
		    !name || !*name ||
		    symbol.st_value - parser->image->text.start >= parser->image->text.size)
			continue;
		symbols[kept].address = symbol.st_value;
		symbols[kept++].name = fay_parser_printable(parser, name);
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
		return fay_parser_refuse(parser, FAY_RULE_IMG_ELF,
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
		fay_parser_refuse(parser, FAY_RULE_IMG_LIMIT, "the file has %zu bytes (limit %u)",
				  size, FAY_IMAGE_MAX_FILE);
	else if (read_header(parser) && read_header_tables(parser) && check_segments(parser) &&
		 fay_parse_sections(parser) && fay_parse_dynamic(parser) && make_layout(parser) &&
		 check_entry(parser) && fay_parse_relocations(parser) && read_symbols(parser) &&
		 fay_parse_tables(parser))
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
