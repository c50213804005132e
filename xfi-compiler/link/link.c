/* SPDX-License-Identifier: MIT */
/*
 * A linker for one object: the code generator's relocatable file becomes text, read-only data and
 * helper slots. It knows four relocations and refuses everything else by name:
 *
 *   R_X86_64_PC32, R_X86_64_PLT32          text to text or to read-only data
 *   R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX  call *helper@GOTPCREL(%rip): stays a call through the
 *					    slot
 *
 * Sections of the same sort are laid one after the other, aligned as they ask for.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

struct object {
	const uint8_t *bytes;
	size_t size;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	size_t section_count;
	const char *names;
	size_t names_size;
	const Elf64_Sym *symbols;
	size_t symbol_count;
	const char *strings;
	size_t strings_size;
	struct place { /* where a section went */
		enum { PLACE_NONE, PLACE_TEXT, PLACE_RODATA } kind;
		size_t offset;
	} *places;
	struct fay_error *error;
};

void fay_linked_deinit(struct fay_linked *linked)
{
	for (unsigned i = 0; i < linked->slot_count; i++)
		free(linked->slots[i]);
	for (size_t i = 0; i < linked->symbol_count; i++)
		free(linked->symbols[i].name);
	for (size_t i = 0; i < linked->line_count; i++)
		free(linked->lines[i].file);
	free(linked->text);
	free(linked->rodata);
	free(linked->fixups);
	free(linked->symbols);
	free(linked->lines);
	memset(linked, 0, sizeof(*linked));
}

static bool within(const struct object *o, uint64_t offset, uint64_t size)
{
	return offset <= o->size && size <= o->size - offset;
}

static const char *text_at(const char *table, size_t size, size_t offset)
{
	return offset < size && memchr(table + offset, 0, size - offset) ? table + offset : "";
}

static int open_object(struct object *o)
{
	const Elf64_Shdr *names;

	o->header = (const void *)o->bytes;
	if (o->size < sizeof(*o->header) || memcmp(o->header->e_ident, ELFMAG, SELFMAG) ||
	    o->header->e_type != ET_REL ||
	    !within(o, o->header->e_shoff, (uint64_t)o->header->e_shnum * sizeof(Elf64_Shdr)) ||
	    o->header->e_shstrndx >= o->header->e_shnum)
		return fay_error_set(o->error, FAY_E_INTERNAL,
				     "the code generator's object is not ELF");
	o->sections = (const void *)(o->bytes + o->header->e_shoff);
	o->section_count = o->header->e_shnum;
	for (size_t i = 0; i < o->section_count; i++)
		if (o->sections[i].sh_type != SHT_NOBITS &&
		    !within(o, o->sections[i].sh_offset, o->sections[i].sh_size))
			return fay_error_set(o->error, FAY_E_INTERNAL,
					     "section %zu of the object lies outside the file", i);
	names = &o->sections[o->header->e_shstrndx];
	o->names = (const char *)o->bytes + names->sh_offset;
	o->names_size = names->sh_size;
	for (size_t i = 0; i < o->section_count; i++) {
		const Elf64_Shdr *s = &o->sections[i];

		if (s->sh_type != SHT_SYMTAB || s->sh_link >= o->section_count)
			continue;
		o->symbols = (const void *)(o->bytes + s->sh_offset);
		o->symbol_count = s->sh_size / sizeof(Elf64_Sym);
		o->strings = (const char *)o->bytes + o->sections[s->sh_link].sh_offset;
		o->strings_size = o->sections[s->sh_link].sh_size;
	}
	o->places = calloc(o->section_count, sizeof(*o->places));
	return o->places && o->symbols
		       ? 0
		       : fay_error_set(o->error, FAY_E_INTERNAL, "the object has no symbols");
}

static int append(uint8_t **data, size_t *size, const void *bytes, size_t count, size_t align,
		  uint8_t fill, size_t *offset)
{
	size_t start = align > 1 ? (*size + align - 1) & ~(align - 1) : *size;
	uint8_t *grown = realloc(*data, start + count + 1);

	if (!grown)
		return -1;
	memset(grown + *size, fill, start - *size);
	memcpy(grown + start, bytes, count);
	*data = grown;
	*size = start + count;
	*offset = start;
	return 0;
}

static int place_sections(struct object *o, struct fay_linked *l)
{
	l->rodata_align = 16;
	for (size_t i = 0; i < o->section_count; i++) {
		const Elf64_Shdr *s = &o->sections[i];
		const char *name = text_at(o->names, o->names_size, s->sh_name);
		bool code = s->sh_flags & SHF_EXECINSTR;
		int failed;

		if (!(s->sh_flags & SHF_ALLOC) || !s->sh_size || !strcmp(name, ".eh_frame"))
			continue;
		if (s->sh_type != SHT_PROGBITS || (s->sh_flags & (SHF_WRITE | SHF_TLS)))
			return fay_error_set(
				o->error, FAY_E_REFUSED,
				"section %s: a probe has code and constants only; use state "
				"for what is written",
				name);
		if (code)
			failed = append(&l->text, &l->text_size, o->bytes + s->sh_offset,
					s->sh_size, s->sh_addralign, 0xcc, &o->places[i].offset);
		else
			failed = append(&l->rodata, &l->rodata_size, o->bytes + s->sh_offset,
					s->sh_size, s->sh_addralign, 0, &o->places[i].offset);
		if (!code && s->sh_addralign > l->rodata_align)
			l->rodata_align = s->sh_addralign;
		if (failed)
			return fay_error_set(o->error, FAY_E_LIMIT, "out of memory");
		o->places[i].kind = code ? PLACE_TEXT : PLACE_RODATA;
	}
	return l->text_size
		       ? 0
		       : fay_error_set(
				 o->error, FAY_E_REFUSED,
				 "there is no probe in this file; FAY_ENTRY(\"module!function\") "
				 "makes one");
}

static int slot_of(struct fay_linked *l, const char *name)
{
	unsigned i;

	for (i = 0; i < l->slot_count; i++)
		if (!strcmp(l->slots[i], name))
			return (int)i;
	if (i == FAY_IMAGE_MAX_HELPERS)
		return -1;
	l->slots[i] = strdup(name);
	if (!l->slots[i])
		return -1;
	l->slot_count++;
	return (int)i;
}

static int relocate(struct object *o, struct fay_linked *l, size_t target, const char *section,
		    const Elf64_Rela *r)
{
	struct fay_fixup f = { 0 }, *grown;
	const Elf64_Sym *symbol;
	const char *name;
	size_t index = ELF64_R_SYM(r->r_info);
	int slot;

	if (index >= o->symbol_count)
		return fay_error_set(o->error, FAY_E_INTERNAL, "relocation with no symbol");
	symbol = &o->symbols[index];
	name = text_at(o->strings, o->strings_size, symbol->st_name);
	if (o->places[target].kind != PLACE_TEXT)
		return fay_error_set(
			o->error, FAY_E_REFUSED,
			"a constant in %s holds an address (%s); an image has no relocations: "
			"keep an index or an offset instead of a pointer",
			section, name);
	if (o->sections[target].sh_size < 4 || r->r_offset > o->sections[target].sh_size - 4)
		return fay_error_set(o->error, FAY_E_INTERNAL, "relocation outside its section");
	f.place = o->places[target].offset + r->r_offset;
	switch (ELF64_R_TYPE(r->r_info)) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
		if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= o->section_count ||
		    o->places[symbol->st_shndx].kind == PLACE_NONE)
			return fay_error_set(o->error, FAY_E_REFUSED,
					     "the code needs %s, which a probe cannot have", name);
		f.kind = o->places[symbol->st_shndx].kind == PLACE_TEXT ? FIXUP_TEXT : FIXUP_RODATA;
		f.target = (int64_t)(o->places[symbol->st_shndx].offset + symbol->st_value) +
			   r->r_addend;
		break;
	case R_X86_64_GOTPCREL:
	case R_X86_64_GOTPCRELX:
	case R_X86_64_REX_GOTPCRELX:
		if (symbol->st_shndx != SHN_UNDEF || !fay_is_helper(name))
			return fay_error_set(o->error, FAY_E_REFUSED,
					     "the code needs %s, which is not a helper", name);
		slot = slot_of(l, name);
		if (slot < 0)
			return fay_error_set(o->error, FAY_E_LIMIT, "too many helper slots");
		f.kind = FIXUP_SLOT;
		f.target = slot;
		f.addend = r->r_addend;
		break;
	default:
		return fay_error_set(o->error, FAY_E_REFUSED,
				     "relocation type %u against %s is not possible in an image",
				     (unsigned)ELF64_R_TYPE(r->r_info), name);
	}
	grown = realloc(l->fixups, (l->fixup_count + 1) * sizeof(*grown));
	if (!grown)
		return fay_error_set(o->error, FAY_E_LIMIT, "out of memory");
	l->fixups = grown;
	l->fixups[l->fixup_count++] = f;
	return 0;
}

static int relocate_all(struct object *o, struct fay_linked *l)
{
	for (size_t i = 0; i < o->section_count; i++) {
		const Elf64_Shdr *s = &o->sections[i];

		if (s->sh_type != SHT_RELA || s->sh_info >= o->section_count ||
		    o->places[s->sh_info].kind == PLACE_NONE)
			continue;
		for (size_t r = 0; r < s->sh_size / sizeof(Elf64_Rela); r++) {
			int result = relocate(o, l, s->sh_info,
					      text_at(o->names, o->names_size, s->sh_name),
					      (const Elf64_Rela *)(o->bytes + s->sh_offset) + r);

			if (result)
				return result;
		}
	}
	return 0;
}

static int take_symbols(struct object *o, struct fay_linked *l)
{
	l->symbols = calloc(o->symbol_count + 1, sizeof(*l->symbols));
	if (!l->symbols)
		return fay_error_set(o->error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < o->symbol_count; i++) {
		const Elf64_Sym *s = &o->symbols[i];
		struct fay_linked_symbol *to = &l->symbols[l->symbol_count];

		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx >= o->section_count ||
		    o->places[s->st_shndx].kind != PLACE_TEXT)
			continue;
		to->name = strdup(text_at(o->strings, o->strings_size, s->st_name));
		if (!to->name)
			return fay_error_set(o->error, FAY_E_LIMIT, "out of memory");
		to->offset = o->places[s->st_shndx].offset + s->st_value;
		to->size = s->st_size;
		l->symbol_count++;
	}
	return 0;
}

int fay_link(const void *object, size_t size, bool lines, struct fay_linked *linked,
	     struct fay_error *error)
{
	struct object o = { .bytes = object, .size = size, .error = error };
	int result = open_object(&o);

	if (!result)
		result = place_sections(&o, linked);
	if (!result)
		result = relocate_all(&o, linked);
	if (!result)
		result = take_symbols(&o, linked);
	if (!result && lines)
		result = fay_link_lines(object, size, linked, error);
	free(o.places);
	return result;
}
