/* SPDX-License-Identifier: MIT */
/*
 * The image file (include/fay/image.h, docs/probe-image.md). Every address is equal to its file
 * offset, so that a section's place is one number:
 *
 *   0       ELF header, program headers                        PT_LOAD R
 *           .dynsym .dynstr .rela.dyn .dynamic .rodata
 *           .fay.image .fay.probes .fay.state .fay.columns .fay.lines .fay.strings
 *   page    .text                                              PT_LOAD R X
 *   page    .got, if helpers are called                        PT_LOAD R
 *           .symtab .strtab .shstrtab, section headers         not loaded
 *
 * The bytes depend on the input alone: no time, no path of this machine, no random number.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

#define PAGE 4096u
#define SECTION_MAX 24

struct bytes {
	uint8_t *data;
	size_t size, room;
	bool failed;
};

struct section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint32_t link, info;
	uint64_t align, entry_size, offset, size;
};

struct writer {
	struct bytes out;
	struct section sections[SECTION_MAX];
	unsigned section_count;
	struct bytes dynstr, strings;
	const struct fay_image_spec *spec;
	const struct fay_linked *linked;
	unsigned dynsym, dynstr_index, rela, dynamic, rodata, image, probes, state, columns, lines,
		strings_index, text, got;
	struct fay_error *error;
};

static void put(struct bytes *b, const void *data, size_t size)
{
	if (b->failed)
		return;
	if (b->size + size > b->room) {
		size_t room = (b->size + size) * 2 + 256;
		uint8_t *grown = realloc(b->data, room);

		if (!grown) {
			b->failed = true;
			return;
		}
		b->data = grown;
		b->room = room;
	}
	if (data)
		memcpy(b->data + b->size, data, size);
	else
		memset(b->data + b->size, 0, size);
	b->size += size;
}

static void align_to(struct bytes *b, size_t align)
{
	put(b, NULL, (align - b->size % align) % align);
}

/* Offset of a string in a pool, added if it is not there yet. */
static uint32_t pool(struct bytes *b, const char *text)
{
	size_t length = strlen(text) + 1;

	for (size_t i = 0; i < b->size; i += strlen((char *)b->data + i) + 1)
		if (!strcmp((char *)b->data + i, text))
			return (uint32_t)i;
	put(b, text, length);
	return (uint32_t)(b->size - length);
}

/* Opens a section at the current place; returns its index. */
static unsigned begin(struct writer *w, const char *name, uint32_t type, uint64_t flags,
		      uint64_t align, uint64_t entry_size)
{
	struct section *s = &w->sections[w->section_count];

	align_to(&w->out, align);
	*s = (struct section){ .name = name,
			       .type = type,
			       .flags = flags,
			       .align = align,
			       .entry_size = entry_size,
			       .offset = w->out.size };
	return w->section_count++;
}

static void end(struct writer *w, unsigned section)
{
	w->sections[section].size = w->out.size - w->sections[section].offset;
}

static void rel32(struct writer *w, size_t place, uint64_t target)
{
	int32_t value = (int32_t)((int64_t)target - (int64_t)place);

	if (!w->out.failed)
		memcpy(w->out.data + place, &value, sizeof(value));
}

static uint64_t string_address(struct writer *w, const char *text)
{
	return w->sections[w->strings_index].offset + pool(&w->strings, text);
}

static void write_dynamic(struct writer *w)
{
	const struct fay_linked *l = w->linked;
	Elf64_Sym symbol = { 0 };

	pool(&w->dynstr, "");
	w->dynsym = begin(w, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 8, sizeof(symbol));
	put(&w->out, &symbol, sizeof(symbol));
	for (unsigned i = 0; i < l->slot_count; i++) {
		symbol = (Elf64_Sym){ .st_name = pool(&w->dynstr, l->slots[i]),
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC) };
		put(&w->out, &symbol, sizeof(symbol));
	}
	end(w, w->dynsym);
	w->sections[w->dynsym].info = 1;
	w->dynstr_index = begin(w, ".dynstr", SHT_STRTAB, SHF_ALLOC, 1, 0);
	put(&w->out, w->dynstr.data, w->dynstr.size);
	end(w, w->dynstr_index);
	w->sections[w->dynsym].link = w->dynstr_index;
	if (l->slot_count) {
		w->rela = begin(w, ".rela.dyn", SHT_RELA, SHF_ALLOC, 8, sizeof(Elf64_Rela));
		put(&w->out, NULL, l->slot_count * sizeof(Elf64_Rela));
		end(w, w->rela);
		w->sections[w->rela].link = w->dynsym;
	}
	w->dynamic = begin(w, ".dynamic", SHT_DYNAMIC, SHF_ALLOC, 8, sizeof(Elf64_Dyn));
	put(&w->out, NULL, 8 * sizeof(Elf64_Dyn));
	end(w, w->dynamic);
	w->sections[w->dynamic].link = w->dynstr_index;
}

static void fill_dynamic(struct writer *w)
{
	const struct section *s = w->sections;
	Elf64_Dyn entries[8] = {
		{ DT_STRTAB, { s[w->dynstr_index].offset } },
		{ DT_STRSZ, { s[w->dynstr_index].size } },
		{ DT_SYMTAB, { s[w->dynsym].offset } },
		{ DT_SYMENT, { sizeof(Elf64_Sym) } },
	};

	if (w->rela) {
		entries[4] = (Elf64_Dyn){ DT_RELA, { s[w->rela].offset } };
		entries[5] = (Elf64_Dyn){ DT_RELASZ, { s[w->rela].size } };
		entries[6] = (Elf64_Dyn){ DT_RELAENT, { sizeof(Elf64_Rela) } };
	}
	memcpy(w->out.data + s[w->dynamic].offset, entries, sizeof(entries));
	for (unsigned i = 0; i < w->linked->slot_count; i++) {
		Elf64_Rela r = { s[w->got].offset + 8 * i, ELF64_R_INFO(i + 1, R_X86_64_GLOB_DAT),
				 0 };

		memcpy(w->out.data + s[w->rela].offset + i * sizeof(r), &r, sizeof(r));
	}
}

static void write_tables(struct writer *w)
{
	const struct fay_image_spec *spec = w->spec;
	struct fay_image_header header = {
		.version = FAY_IMAGE_VERSION,
		.local_size = spec->local_size,
		.global_size = spec->global_size,
		.probe_count = spec->probe_count,
		.state_count = spec->state_count,
		.column_count = spec->column_count,
	};

	memcpy(header.magic, FAY_IMAGE_MAGIC, sizeof(header.magic));
	w->image = begin(w, ".fay.image", SHT_PROGBITS, SHF_ALLOC, 8, 0);
	put(&w->out, &header, sizeof(header));
	end(w, w->image);
	w->probes =
		begin(w, ".fay.probes", SHT_PROGBITS, SHF_ALLOC, 8, sizeof(struct fay_image_probe));
	put(&w->out, NULL, spec->probe_count * sizeof(struct fay_image_probe));
	end(w, w->probes);
	if (spec->state_count) {
		w->state = begin(w, ".fay.state", SHT_PROGBITS, SHF_ALLOC, 8,
				 sizeof(struct fay_image_state));
		put(&w->out, NULL, spec->state_count * sizeof(struct fay_image_state));
		end(w, w->state);
	}
	if (spec->column_count) {
		w->columns = begin(w, ".fay.columns", SHT_PROGBITS, SHF_ALLOC, 8,
				   sizeof(struct fay_image_column));
		put(&w->out, NULL, spec->column_count * sizeof(struct fay_image_column));
		end(w, w->columns);
	}
	if (w->linked->line_count) {
		w->lines = begin(w, ".fay.lines", SHT_PROGBITS, SHF_ALLOC, 8,
				 sizeof(struct fay_image_line));
		put(&w->out, NULL, w->linked->line_count * sizeof(struct fay_image_line));
		end(w, w->lines);
	}
}

static const struct fay_linked_symbol *symbol_of(const struct fay_linked *l, const char *name)
{
	for (size_t i = 0; i < l->symbol_count; i++)
		if (!strcmp(l->symbols[i].name, name))
			return &l->symbols[i];
	return NULL;
}

/* Fills the tables once .text has its place; the strings go last, because their pool grows
 * meanwhile. */
static int fill_tables(struct writer *w, uint64_t text)
{
	const struct fay_image_spec *spec = w->spec;

	for (uint32_t i = 0; i < spec->probe_count; i++) {
		uint64_t at = w->sections[w->probes].offset + i * sizeof(struct fay_image_probe);
		const struct fay_linked_symbol *symbol =
			symbol_of(w->linked, spec->probes[i].symbol);
		struct fay_image_probe p = { .kind = spec->probes[i].kind,
					     .parameter = spec->probes[i].parameter };

		if (!symbol)
			return fay_error_set(w->error, FAY_E_INTERNAL, "no code for probe %s",
					     spec->probes[i].symbol);
		memcpy(w->out.data + at, &p, sizeof(p));
		rel32(w, at + offsetof(struct fay_image_probe, pattern),
		      string_address(w, spec->probes[i].pattern));
		rel32(w, at + offsetof(struct fay_image_probe, code), text + symbol->offset);
	}
	for (uint32_t i = 0; i < spec->state_count; i++) {
		const struct fay_spec_state *s = &spec->states[i];
		uint64_t at = w->sections[w->state].offset + i * sizeof(struct fay_image_state);
		struct fay_image_state state = {
			.kind = s->kind,
			.scope = s->scope,
			.offset = s->offset,
			.size = s->size,
			.first_column = s->first_column,
			.keys = s->keys,
			.values = s->values,
			.rows = s->rows,
			.row_size = s->row_size,
		};

		memcpy(w->out.data + at, &state, sizeof(state));
		rel32(w, at, string_address(w, s->name));
	}
	for (uint32_t i = 0; i < spec->column_count; i++) {
		const struct fay_spec_column *c = &spec->columns[i];
		uint64_t at = w->sections[w->columns].offset + i * sizeof(struct fay_image_column);
		struct fay_image_column column = {
			.type = c->type,
			.merge = c->merge,
			.offset = c->offset,
			.size = c->size,
			.param = { c->param[0], c->param[1] },
		};

		memcpy(w->out.data + at, &column, sizeof(column));
		rel32(w, at, string_address(w, c->name));
	}
	for (size_t i = 0; i < w->linked->line_count; i++) {
		const struct fay_linked_line *l = &w->linked->lines[i];
		uint64_t at = w->sections[w->lines].offset + i * sizeof(struct fay_image_line);
		struct fay_image_line line = { .code_offset = l->offset,
					       .line = l->line,
					       .column = l->column };

		memcpy(w->out.data + at, &line, sizeof(line));
		rel32(w, at + offsetof(struct fay_image_line, file), string_address(w, l->file));
	}
	return 0;
}

static void collect_strings(struct writer *w)
{
	pool(&w->strings, "");
	for (uint32_t i = 0; i < w->spec->probe_count; i++)
		pool(&w->strings, w->spec->probes[i].pattern);
	for (uint32_t i = 0; i < w->spec->state_count; i++)
		pool(&w->strings, w->spec->states[i].name);
	for (uint32_t i = 0; i < w->spec->column_count; i++)
		pool(&w->strings, w->spec->columns[i].name);
	for (size_t i = 0; i < w->linked->line_count; i++)
		pool(&w->strings, w->linked->lines[i].file);
}

static void fix_text(struct writer *w)
{
	uint64_t text = w->sections[w->text].offset;

	for (size_t i = 0; i < w->linked->fixup_count; i++) {
		const struct fay_fixup *f = &w->linked->fixups[i];
		uint64_t target = f->kind == FIXUP_TEXT ? text + (uint64_t)f->target
				  : f->kind == FIXUP_RODATA
					  ? w->sections[w->rodata].offset + (uint64_t)f->target
					  : w->sections[w->got].offset + 8 * (uint64_t)f->target +
						    (uint64_t)f->addend;

		rel32(w, text + f->place, target);
	}
}

static void write_symbols(struct writer *w)
{
	const struct fay_linked *l = w->linked;
	struct bytes names = { 0 };
	Elf64_Sym symbol = { 0 };
	unsigned table, strings;

	pool(&names, "");
	table = begin(w, ".symtab", SHT_SYMTAB, 0, 8, sizeof(symbol));
	put(&w->out, &symbol, sizeof(symbol));
	for (size_t i = 0; i < l->symbol_count; i++) {
		symbol = (Elf64_Sym){
			.st_name = pool(&names, l->symbols[i].name),
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = (uint16_t)w->text,
			.st_size = l->symbols[i].size,
			.st_value = w->sections[w->text].offset + l->symbols[i].offset,
		};
		put(&w->out, &symbol, sizeof(symbol));
	}
	end(w, table);
	strings = begin(w, ".strtab", SHT_STRTAB, 0, 1, 0);
	put(&w->out, names.data, names.size);
	end(w, strings);
	w->sections[table].link = strings;
	w->sections[table].info = 1;
	w->out.failed |= names.failed;
	free(names.data);
}

static void write_headers(struct writer *w, uint64_t end_of_first)
{
	const struct section *s = w->sections;
	struct bytes names = { 0 };
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Phdr phdrs[5] = {
		{ PT_LOAD, PF_R, 0, 0, 0, end_of_first, end_of_first, PAGE },
		{ PT_LOAD, PF_R | PF_X, s[w->text].offset, s[w->text].offset, s[w->text].offset,
		  s[w->text].size, s[w->text].size, PAGE },
		{ PT_DYNAMIC, PF_R, s[w->dynamic].offset, s[w->dynamic].offset,
		  s[w->dynamic].offset, s[w->dynamic].size, s[w->dynamic].size, 8 },
		{ PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16 },
	};
	uint32_t name_offsets[SECTION_MAX];
	unsigned shstrtab;

	header.e_phnum = 4;
	if (w->got) {
		phdrs[4] = phdrs[3];
		phdrs[3] = phdrs[2];
		phdrs[2] = (Elf64_Phdr){ PT_LOAD,          PF_R,
					 s[w->got].offset, s[w->got].offset,
					 s[w->got].offset, s[w->got].size,
					 s[w->got].size,   PAGE };
		header.e_phnum = 5;
	}
	for (unsigned i = 0; i < w->section_count; i++)
		name_offsets[i] = pool(&names, s[i].name);
	shstrtab = w->section_count;
	name_offsets[shstrtab] = pool(&names, ".shstrtab");
	begin(w, ".shstrtab", SHT_STRTAB, 0, 1, 0);
	put(&w->out, names.data, names.size);
	end(w, shstrtab);
	align_to(&w->out, 8);
	header.e_shoff = w->out.size;
	header.e_shnum = (uint16_t)w->section_count;
	header.e_shstrndx = (uint16_t)shstrtab;
	for (unsigned i = 0; i < w->section_count; i++) {
		Elf64_Shdr sh = {
			.sh_name = name_offsets[i],
			.sh_type = s[i].type,
			.sh_flags = s[i].flags,
			.sh_addr = s[i].flags & SHF_ALLOC ? s[i].offset : 0,
			.sh_offset = s[i].offset,
			.sh_size = s[i].size,
			.sh_link = s[i].link,
			.sh_info = s[i].info,
			.sh_addralign = s[i].align,
			.sh_entsize = s[i].entry_size,
		};

		put(&w->out, &sh, sizeof(sh));
	}
	w->out.failed |= names.failed;
	free(names.data);
	if (w->out.failed)
		return;
	memcpy(w->out.data, &header, sizeof(header));
	memcpy(w->out.data + sizeof(header), phdrs, sizeof(phdrs));
}

static int write_all(struct writer *w)
{
	const struct fay_linked *l = w->linked;
	uint64_t end_of_first;
	int result;

	w->sections[w->section_count++] = (struct section){ .name = "" };
	put(&w->out, NULL, sizeof(Elf64_Ehdr) + 5 * sizeof(Elf64_Phdr));
	write_dynamic(w);
	if (l->rodata_size) {
		w->rodata = begin(w, ".rodata", SHT_PROGBITS, SHF_ALLOC, l->rodata_align, 0);
		put(&w->out, l->rodata, l->rodata_size);
		end(w, w->rodata);
	}
	write_tables(w);
	collect_strings(w);
	w->strings_index = begin(w, ".fay.strings", SHT_PROGBITS, SHF_ALLOC, 1, 0);
	put(&w->out, w->strings.data, w->strings.size);
	end(w, w->strings_index);
	end_of_first = w->out.size;
	w->text = begin(w, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, PAGE, 0);
	put(&w->out, l->text, l->text_size);
	end(w, w->text);
	w->sections[w->text].align = 16;
	if (l->slot_count) {
		w->got = begin(w, ".got", SHT_PROGBITS, SHF_ALLOC, PAGE, 8);
		put(&w->out, NULL, 8 * l->slot_count);
		end(w, w->got);
		w->sections[w->got].align = 8;
	}
	if (w->out.failed || w->strings.failed || w->dynstr.failed)
		return fay_error_set(w->error, FAY_E_LIMIT, "out of memory");
	result = fill_tables(w, w->sections[w->text].offset);
	if (result)
		return result;
	fix_text(w);
	fill_dynamic(w);
	write_symbols(w);
	write_headers(w, end_of_first);
	return w->out.failed ? fay_error_set(w->error, FAY_E_LIMIT, "out of memory") : 0;
}

int fay_write_image(const struct fay_image_spec *spec, const struct fay_linked *linked,
		    struct fay_buffer *image, struct fay_error *error)
{
	struct writer w = { .spec = spec, .linked = linked, .error = error };
	int result = write_all(&w);

	free(w.dynstr.data);
	free(w.strings.data);
	if (result) {
		free(w.out.data);
		return result;
	}
	image->data = w.out.data;
	image->size = w.out.size;
	return 0;
}
