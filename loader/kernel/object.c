/* SPDX-License-Identifier: MIT */
/*
 * A module object without a compiler: what the kernel's loader asks for and nothing else.
 *
 *   .text                       the verified layout and the trampolines
 *   .rela.text                  the trampolines' calls of fay.ko: to absolute symbols, since where
 *				 the text will lie is not known yet
 *   .gnu.linkonce.this_module   struct module: zero but for the name. No init, no exit: loading
 *				 runs nothing
 *   .modinfo                    license, name, version magic (of a module of this kernel)
 *   __versions                  the version of struct module's layout (likewise)
 *   .symtab .strtab             an absolute symbol for each such call
 */
#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel_private.h"

#define MODULE_NAME_MAX 56 /* struct module's name, struct modversion_info's too */

struct version {
	uint64_t crc;
	char name[MODULE_NAME_MAX];
};

struct reference {
	char vermagic[256];
	struct version layout;
	uint64_t module_size;
	bool has_versions;
};

static void take_section(const char *name, const Elf_Data *data, struct reference *reference)
{
	const char *bytes = data->d_buf;

	if (!strcmp(name, ".modinfo")) {
		for (size_t at = 0; at < data->d_size;
		     at += strnlen(bytes + at, data->d_size - at) + 1)
			if (data->d_size - at > 9 && !memcmp(bytes + at, "vermagic=", 9))
				snprintf(reference->vermagic, sizeof(reference->vermagic), "%.*s",
					 (int)(data->d_size - at), bytes + at);
	} else if (!strcmp(name, "__versions")) {
		reference->has_versions = true;
		for (size_t at = 0; at + sizeof(struct version) <= data->d_size;
		     at += sizeof(struct version)) {
			struct version one;

			memcpy(&one, bytes + at, sizeof(one));
			if (!strncmp(one.name, "module_layout", sizeof(one.name)))
				reference->layout = one;
		}
	} else if (!strcmp(name, ".gnu.linkonce.this_module")) {
		reference->module_size = data->d_size;
	}
}

static int read_reference(const char *path, struct reference *reference, struct fay_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 && elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ, NULL)
								 : NULL;
	size_t names;

	*reference = (struct reference){ 0 };
	for (Elf_Scn *section = NULL;
	     elf && !elf_getshdrstrndx(elf, &names) && (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		Elf_Data *data =
			name && header.sh_type == SHT_PROGBITS ? elf_rawdata(section, NULL) : NULL;

		if (data && data->d_buf)
			take_section(name, data, reference);
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	if (!reference->vermagic[0] || !reference->module_size ||
	    (reference->has_versions && !reference->layout.crc))
		return fay_error_set(error, FAY_E_REFUSED,
				     "'%s' is not a kernel module with this kernel's version magic",
				     path);
	return FAY_OK;
}

bool fay_kernel_object_release(const char *path, char release[FAY_KERNEL_RELEASE_MAX])
{
	struct reference reference;
	struct fay_error error;

	if (read_reference(path, &reference, &error))
		return false;
	snprintf(release, FAY_KERNEL_RELEASE_MAX, "%.*s", (int)strcspn(reference.vermagic + 9, " "),
		 reference.vermagic + 9);
	return true;
}

struct part {
	const char *name;
	uint32_t type;
	uint64_t flags, align, entry;
	uint32_t link, info;
	void *bytes;
	size_t size;
};

static bool add_section(Elf *elf, const struct part *part, uint32_t name)
{
	Elf_Scn *section = elf_newscn(elf);
	Elf_Data *data = section ? elf_newdata(section) : NULL;
	GElf_Shdr header;

	if (!data || !gelf_getshdr(section, &header))
		return false;
	*data = (Elf_Data){ .d_buf = part->bytes,
			    .d_size = part->size,
			    .d_align = part->align,
			    .d_type = ELF_T_BYTE,
			    .d_version = EV_CURRENT };
	header.sh_name = name;
	header.sh_type = part->type;
	header.sh_flags = part->flags;
	header.sh_entsize = part->entry;
	header.sh_link = part->link;
	header.sh_info = part->info;
	return gelf_update_shdr(section, &header);
}

static bool write_elf(int fd, const struct part *parts, size_t count)
{
	char names[512] = "";
	size_t used = 1;
	Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
	GElf_Ehdr header;
	bool ok = elf && gelf_newehdr(elf, ELFCLASS64);

	for (size_t i = 0; ok && i < count; i++) {
		size_t length = strlen(parts[i].name) + 1;

		ok = used + length + 16 < sizeof(names) &&
		     add_section(elf, &parts[i], (uint32_t)used);
		if (ok)
			memcpy(names + used, parts[i].name, length);
		used += length;
	}
	if (ok) {
		struct part last = { .name = ".shstrtab",
				     .type = SHT_STRTAB,
				     .align = 1,
				     .bytes = names,
				     .size = used + 10 };

		memcpy(names + used, last.name, 10);
		ok = add_section(elf, &last, (uint32_t)used) && gelf_getehdr(elf, &header);
		header.e_type = ET_REL;
		header.e_machine = EM_X86_64;
		header.e_version = EV_CURRENT;
		header.e_ident[EI_DATA] = ELFDATA2LSB;
		header.e_shstrndx = (GElf_Half)(count + 1);
		ok = ok && gelf_update_ehdr(elf, &header) && elf_update(elf, ELF_C_WRITE) >= 0;
	}
	elf_end(elf);
	return ok;
}

static int read_back(int fd, uint8_t **bytes, size_t *size)
{
	struct stat stat;

	if (fstat(fd, &stat) || !(*bytes = malloc((size_t)stat.st_size + 1)))
		return -1;
	*size = (size_t)stat.st_size;
	if (pread(fd, *bytes, *size, 0) == stat.st_size)
		return 0;
	free(*bytes);
	return -1;
}

/* Symbol i + 1 is what relocation i calls. */
static bool make_relocations(const struct fay_kernel_object *object, Elf64_Sym **symbols,
			     Elf64_Rela **relocations)
{
	size_t count = object->relocation_count;

	*symbols = calloc(count + 1, sizeof(**symbols));
	*relocations = calloc(count + 1, sizeof(**relocations));
	if (!*symbols || !*relocations)
		return false;
	for (size_t i = 0; i < count; i++) {
		(*symbols)[i + 1] = (Elf64_Sym){ .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
						 .st_shndx = SHN_ABS,
						 .st_value = object->relocations[i].target };
		(*relocations)[i] = (Elf64_Rela){ object->relocations[i].offset,
						  ELF64_R_INFO(i + 1, R_X86_64_PLT32), -4 };
	}
	return true;
}

int fay_kernel_object_write(const struct fay_kernel_object *object,
			    const struct fay_kernel_btf *btf, uint8_t **bytes, size_t *size,
			    struct fay_error *error)
{
	struct reference reference;
	uint32_t module_size, name_offset;
	char info[512];
	Elf64_Sym *symbols = NULL;
	Elf64_Rela *relocations = NULL;
	int used, fd, result = read_reference(object->reference, &reference, error);

	if (result)
		return result;
	if (!fay_kernel_btf_module(btf, &module_size, &name_offset) ||
	    name_offset + MODULE_NAME_MAX > module_size || module_size > reference.module_size ||
	    reference.module_size > 65536)
		return fay_error_set(error, FAY_E_REFUSED,
				     "struct module is %u bytes in the kernel's BTF, %llu in '%s': "
				     "a module built for another kernel",
				     module_size, (unsigned long long)reference.module_size,
				     object->reference);
	uint8_t *module = calloc(1, reference.module_size);
	if (!module || !make_relocations(object, &symbols, &relocations)) {
		free(module);
		free(symbols);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	size_t symbol_count = object->relocation_count + 1;
	snprintf((char *)module + name_offset, MODULE_NAME_MAX, "%s", object->name);
	/* "retpoline=Y": has no indirect call that a mispredicted target could abuse. */
	used = snprintf(info, sizeof(info), "license=Dual MIT/GPL%cname=%s%c%s%c%s", 0,
			object->name, 0, reference.vermagic, 0,
			object->indirect ? "" : "retpoline=Y") +
	       1;
	struct part parts[] = {
		{ ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 4096, 0, 0, 0,
		  (void *)object->text, object->text_size },
		{ ".modinfo", SHT_PROGBITS, SHF_ALLOC, 1, 0, 0, 0, info, (size_t)used },
		{ ".gnu.linkonce.this_module", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 64, 0, 0, 0,
		  module, reference.module_size },
		{ ".symtab", SHT_SYMTAB, 0, 8, sizeof(*symbols), 5, (uint32_t)symbol_count, symbols,
		  symbol_count * sizeof(*symbols) },
		{ ".strtab", SHT_STRTAB, 0, 1, 0, 0, 0, (char[1]){ 0 }, 1 },
		{ ".rela.text", SHT_RELA, SHF_INFO_LINK, 8, sizeof(*relocations), 4, 1, relocations,
		  object->relocation_count * sizeof(*relocations) },
		{ "__versions", SHT_PROGBITS, SHF_ALLOC, 8, 0, 0, 0, &reference.layout,
		  sizeof(reference.layout) },
	};
	fd = memfd_create("fay-module", MFD_CLOEXEC);
	bool ok = fd >= 0 &&
		  write_elf(fd, parts, sizeof(parts) / sizeof(*parts) - !reference.has_versions) &&
		  !read_back(fd, bytes, size);
	if (fd >= 0)
		close(fd);
	free(module);
	free(symbols);
	free(relocations);
	return ok ? FAY_OK
		  : fay_error_set(error, FAY_E_INTERNAL, "cannot make the module object: %s",
				  elf_errmsg(-1));
}
