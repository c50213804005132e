/* SPDX-License-Identifier: MIT */
/*
 * The functions of one ELF object, from .symtab and .dynsym, through libelf.
 *
 * libelf reads the file in pieces (ELF_C_READ) and not through one mapping of the whole file: a
 * file that shrinks while we look at it gives an error then, not SIGBUS, and of a 100 MB binary
 * only the symbol and string tables are read. Nothing that the file says is believed: counts,
 * indices and offsets are checked against what was really read.
 *
 * An object without .symtab is stripped: its table may lie in a separate file (elf_debug.c), and
 * what is then still without a name is taken from the unwind table (elf_unnamed.c).
 *
 * Limits: 64-bit little-endian x86-64 objects with section headers.
 */
#include <elf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/bisect.h"
#include "target.h"

#define DYNAMIC_MAX (64u << 10) /* bytes of a dynamic section */

/* Whether the dynamic linker writes to the object's code when it loads it. */
static bool has_text_relocations(Elf *elf, const Elf64_Phdr *dynamic)
{
	if (dynamic->p_filesz > DYNAMIC_MAX)
		return true;
	Elf_Data *data =
		elf_getdata_rawchunk(elf, (int64_t)dynamic->p_offset, dynamic->p_filesz, ELF_T_DYN);
	const Elf64_Dyn *entries = data ? data->d_buf : NULL;
	for (size_t i = 0;
	     entries && i < data->d_size / sizeof(*entries) && entries[i].d_tag != DT_NULL; i++)
		if (entries[i].d_tag == DT_TEXTREL ||
		    (entries[i].d_tag == DT_FLAGS && entries[i].d_un.d_val & DF_TEXTREL))
			return true;
	return false;
}

static int read_segments(struct fay_object *object, Elf *elf, const char *name,
			 struct fay_error *error)
{
	size_t count;
	const Elf64_Phdr *headers = elf64_getphdr(elf);
	if (!headers || elf_getphdrnum(elf, &count))
		return fay_error_set(error, FAY_E_REFUSED, "%s: no readable program headers", name);
	if (count > FAY_OBJECT_MAX_SEGMENTS)
		return fay_error_set(error, FAY_E_LIMIT, "%s: %zu program headers, the limit is %u",
				     name, count, FAY_OBJECT_MAX_SEGMENTS);
	object->segments = calloc(count ? count : 1, sizeof(*object->segments));
	if (!object->segments)
		return fay_error_set(error, FAY_E_LIMIT, "%s: out of memory", name);
	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *header = &headers[i];
		if (header->p_type == PT_DYNAMIC)
			object->text_relocations = has_text_relocations(elf, header);
		if (header->p_type != PT_LOAD)
			continue;
		object->segments[object->segment_count++] = (struct fay_segment){
			.vaddr = header->p_vaddr,
			.offset = header->p_offset,
			.file_size = header->p_filesz,
			.memory_size = header->p_memsz,
			.executable = header->p_flags & PF_X,
		};
	}
	return FAY_OK;
}

/* False for symbols that are of no interest at all: files, sections, thread-local data. */
static bool classify(const Elf64_Sym *symbol, uint16_t *kind)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT && type != STT_NOTYPE)
		return false;
	if (symbol->st_shndx == SHN_UNDEF) {
		*kind = FAY_SYMBOL_UNDEFINED;
		return true;
	}
	if (type == STT_NOTYPE ||
	    (symbol->st_shndx >= SHN_LORESERVE && symbol->st_shndx != SHN_XINDEX))
		return false;
	*kind = type == STT_FUNC     ? FAY_SYMBOL_FUNCTION
		: type == STT_OBJECT ? FAY_SYMBOL_OBJECT
				     : FAY_SYMBOL_IFUNC;
	return true;
}

/* Ends of sections by index, so that a symbol without a size can be bounded. */
struct section_ends {
	uint64_t *ends;
	size_t count;
};

static int read_section_ends(Elf *elf, struct section_ends *sections, const char *name,
			     struct fay_error *error)
{
	if (elf_getshdrnum(elf, &sections->count) || sections->count > 1u << 20)
		return fay_error_set(error, FAY_E_REFUSED, "%s: section headers are not readable",
				     name);
	sections->ends = calloc(sections->count ? sections->count : 1, sizeof(uint64_t));
	if (!sections->ends)
		return fay_error_set(error, FAY_E_LIMIT, "%s: out of memory", name);
	for (size_t i = 1; i < sections->count; i++) {
		Elf_Scn *section = elf_getscn(elf, i);
		const Elf64_Shdr *header = section ? elf64_getshdr(section) : NULL;
		if (header && header->sh_flags & SHF_ALLOC)
			sections->ends[i] = header->sh_addr + header->sh_size;
	}
	return FAY_OK;
}

/* Version indices of .dynsym's entries; bit 15 marks a version that new programs no longer bind
 * to. */
static const uint16_t *read_versions(Elf *elf, Elf_Scn *symbols, size_t *count)
{
	Elf_Scn *section = NULL;
	*count = 0;
	while ((section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		if (!header || header->sh_type != SHT_GNU_versym ||
		    header->sh_link != elf_ndxscn(symbols))
			continue;
		Elf_Data *data = elf_getdata(section, NULL);
		if (!data || !data->d_buf)
			return NULL;
		*count = data->d_size / sizeof(uint16_t);
		return data->d_buf;
	}
	return NULL;
}

static int read_table(struct fay_object *object, Elf *elf, Elf_Scn *section,
		      const Elf64_Shdr *header, const struct section_ends *sections,
		      const char *name, struct fay_error *error)
{
	Elf_Scn *string_section = elf_getscn(elf, header->sh_link);
	const Elf64_Shdr *string_header = string_section ? elf64_getshdr(string_section) : NULL;
	Elf_Data *data = elf_getdata(section, NULL);
	Elf_Data *strings = string_header && string_header->sh_type == SHT_STRTAB
				    ? elf_getdata(string_section, NULL)
				    : NULL;
	if (!data || !data->d_buf || !strings || !strings->d_buf || data->d_type != ELF_T_SYM)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s: a symbol table is malformed or truncated", name);
	size_t count = data->d_size / sizeof(Elf64_Sym);
	if (count > FAY_OBJECT_MAX_SYMBOLS - object->symbol_count)
		return fay_error_set(error, FAY_E_LIMIT, "%s: more than %u symbols", name,
				     FAY_OBJECT_MAX_SYMBOLS);
	struct fay_symbol *grown =
		realloc(object->symbols, (object->symbol_count + count + 1) * sizeof(*grown));
	if (!grown)
		return fay_error_set(error, FAY_E_LIMIT, "%s: out of memory for %zu symbols", name,
				     count);
	object->symbols = grown;
	const Elf64_Sym *symbols = data->d_buf;
	const char *text = strings->d_buf;
	size_t version_count;
	const uint16_t *versions = read_versions(elf, section, &version_count);
	for (size_t i = 1; i < count; i++) {
		const Elf64_Sym *symbol = &symbols[i];
		uint16_t kind;
		if (!symbol->st_name || symbol->st_name >= strings->d_size ||
		    !classify(symbol, &kind))
			continue;
		/* The last string may lack its NUL in a malformed file; it is skipped. */
		size_t room = strings->d_size - symbol->st_name;
		size_t length = strnlen(text + symbol->st_name, room);
		if (length == room || !length)
			continue;
		const char *version = memchr(text + symbol->st_name, '@', length);
		struct fay_symbol *to = &object->symbols[object->symbol_count];
		*to = (struct fay_symbol){
			.name = text + symbol->st_name,
			.length = (uint32_t)(version ? (size_t)(version - text) - symbol->st_name
						     : length),
			.kind = kind,
			.compat = version ? version[1] != '@'
					  : i < version_count && versions[i] & 0x8000,
			.address = symbol->st_value,
			.size = symbol->st_size,
			.limit = symbol->st_shndx < sections->count
					 ? sections->ends[symbol->st_shndx]
					 : 0,
		};
		if (to->length)
			object->symbol_count++;
	}
	return FAY_OK;
}

/* *whole: there is a .symtab, so that every function has a name. */
static int read_symbols(struct fay_object *object, Elf *elf, const char *name, bool *whole,
			struct fay_error *error)
{
	struct section_ends sections = { 0 };
	Elf_Scn *section = NULL;
	int code = read_section_ends(elf, &sections, name, error);
	while (!code && (section = elf_nextscn(elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		if (header && header->sh_type == SHT_SYMTAB)
			*whole = true;
		if (header && (header->sh_type == SHT_SYMTAB || header->sh_type == SHT_DYNSYM))
			code = read_table(object, elf, section, header, &sections, name, error);
	}
	free(sections.ends);
	return code;
}

static int check_header(Elf *elf, const char *name, uint16_t *type, struct fay_error *error)
{
	const char *ident = elf_getident(elf, NULL);
	if (elf_kind(elf) != ELF_K_ELF || !ident)
		return fay_error_set(error, FAY_E_REFUSED, "%s: not an ELF file", name);
	if (ident[EI_CLASS] != ELFCLASS64)
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s: a 32-bit object; only x86-64 is supported", name);
	const Elf64_Ehdr *header = elf64_getehdr(elf);
	if (!header)
		return fay_error_set(error, FAY_E_REFUSED, "%s: the ELF header is truncated", name);
	if (header->e_machine != EM_X86_64 || ident[EI_DATA] != ELFDATA2LSB)
		return fay_error_set(error, FAY_E_REFUSED, "%s: not for x86-64 (machine %u)", name,
				     header->e_machine);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"%s: not an executable or shared object (a relocatable file or core?)",
			name);
	*type = header->e_type;
	return FAY_OK;
}

static int read_functions(struct fay_object *object, const char *name, struct fay_error *error)
{
	bool whole = false;
	int code = read_symbols(object, object->elf, name, &whole, error);
	if (!code && !whole)
		fay_object_open_debug(object, object->elf);
	if (!code && object->debug_elf)
		code = read_symbols(object, object->debug_elf, name, &whole, error);
	if (!code && !whole)
		code = fay_object_read_unnamed(object, object->elf, name, error);
	/* Those that were asked about meanwhile lack the unnamed ones. */
	free(object->starts);
	object->starts = NULL;
	object->start_count = 0;
	return code;
}

int fay_object_open(int fd, const char *name, struct fay_object **result, struct fay_error *error)
{
	struct fay_object *object = calloc(1, sizeof(*object));
	int code = FAY_OK;
	if (!object) {
		close(fd);
		return fay_error_set(error, FAY_E_LIMIT, "%s: out of memory", name);
	}
	object->fd = fd;
	object->users = 1;
	object->debug_fd = -1;
	elf_version(EV_CURRENT);
	Elf *elf = object->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		code = fay_error_set(error, FAY_E_REFUSED, "%s: not an ELF file (%s)", name,
				     elf_errmsg(-1));
	if (!code)
		code = check_header(elf, name, &object->type, error);
	if (!code)
		code = read_segments(object, elf, name, error);
	if (!code)
		code = read_functions(object, name, error);
	if (code) {
		fay_object_close(object);
		return code;
	}
	*result = object;
	return FAY_OK;
}

void fay_object_close(struct fay_object *object)
{
	if (!object || --object->users)
		return;
	fay_taken_destroy(object->taken);
	if (object->elf)
		elf_end(object->elf);
	close(object->fd);
	if (object->debug_elf)
		elf_end(object->debug_elf);
	if (object->debug_fd >= 0)
		close(object->debug_fd);
	free(object->made_names);
	free(object->segments);
	free(object->symbols);
	free(object->starts);
	free(object->code);
	free(object->markers);
	fay_object_forget_told(object);
	free(object);
}

bool fay_object_superseded(const struct fay_object *object, const struct fay_symbol *symbol)
{
	for (size_t i = 0; symbol->compat && i < object->symbol_count; i++) {
		const struct fay_symbol *other = &object->symbols[i];
		if (!other->compat && other->kind != FAY_SYMBOL_UNDEFINED &&
		    other->length == symbol->length &&
		    !memcmp(other->name, symbol->name, symbol->length))
			return true;
	}
	return false;
}

static int compare_addresses(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return a < b ? -1 : a > b;
}

static bool make_starts(struct fay_object *object)
{
	object->starts = malloc((object->symbol_count + 1) * sizeof(uint64_t));
	if (!object->starts)
		return false;
	for (size_t i = 0; i < object->symbol_count; i++) {
		uint32_t kind = object->symbols[i].kind;
		if (kind == FAY_SYMBOL_FUNCTION || kind == FAY_SYMBOL_IFUNC)
			object->starts[object->start_count++] = object->symbols[i].address;
	}
	qsort(object->starts, object->start_count, sizeof(uint64_t), compare_addresses);
	return true;
}

/* How many function starts lie at or before `address`. */
static size_t starts_until(const struct fay_object *object, uint64_t address)
{
	return address == UINT64_MAX ? object->start_count
				     : fay_count_below(object->starts, 0, sizeof(*object->starts),
						       object->start_count, address + 1);
}

/* The first function start behind `address`; UINT64_MAX: none. */
static uint64_t next_start(const struct fay_object *object, uint64_t address)
{
	size_t until = starts_until(object, address);

	return until < object->start_count ? object->starts[until] : UINT64_MAX;
}

uint64_t fay_object_start_before(struct fay_object *object, uint64_t address)
{
	if (!object->starts && !make_starts(object))
		return UINT64_MAX;
	size_t until = starts_until(object, address);

	return until ? object->starts[until - 1] : UINT64_MAX;
}

bool fay_object_has_start(struct fay_object *object, uint64_t address)
{
	if (!object->starts && !make_starts(object))
		return false;
	return address && next_start(object, address - 1) == address;
}

uint64_t fay_object_size(struct fay_object *object, const struct fay_symbol *symbol)
{
	if (!object->starts && !make_starts(object))
		return 0;
	uint64_t next = next_start(object, symbol->address);
	/* A second entry within the bytes that a jump would take (endbr64 and 5) ends the function,
	 * whatever its symbol says: calls go there. */
	if (symbol->size)
		return next - symbol->address < 9 && next - symbol->address < symbol->size
			       ? next - symbol->address
			       : symbol->size;
	uint64_t end = symbol->limit > symbol->address ? symbol->limit : 0;
	if (next != UINT64_MAX && (!end || next < end))
		end = next;
	return end ? end - symbol->address : 0;
}
