/* SPDX-License-Identifier: MIT */
/*
 * What the loader asks of the kernel's types (BTF: the kernel's Documentation/bpf/btf.rst): the
 * layout of struct module, which functions take arguments on the stack, and what they return.
 *
 * Nobody checks these answers after the loader: fay.ko copies as many words of the traced
 * function's stack as it is told. So what gives them is trusted, and it is this file: libbpf, by
 * which the untrusted parts read the same types, is not linked in for the few of its functions that
 * would do. tests/loader/test_kernel_btf.c compares with it.
 *
 * The file is the kernel's, but every offset is checked all the same: once, when it is opened, so
 * that what is handed out can be followed without looking.
 */
#include <errno.h>
#include <linux/btf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_private.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define BYTES_FIRST (8u << 20)
#define BYTES_MAX (256u << 20)
#define MODIFIERS_MAX 32

struct named {
	const char *name;
	uint32_t id;
};

struct fay_kernel_btf {
	uint8_t *bytes;
	size_t size;
	const struct btf_type **types; /* by id; [0] is NULL, void */
	uint32_t count;
	const char *strings;
	uint32_t strings_size;
	struct named *functions; /* by name */
	size_t function_count;
};

static unsigned kind(const struct btf_type *type)
{
	return type ? BTF_INFO_KIND(type->info) : BTF_KIND_UNKN;
}

static const struct btf_type *type_of(const struct fay_kernel_btf *btf, uint32_t id)
{
	return id < btf->count ? btf->types[id] : NULL;
}

static const char *name_of(const struct fay_kernel_btf *btf, uint32_t offset)
{
	return offset < btf->strings_size ? btf->strings + offset : "";
}

/* --- the file --- */

/* Bytes that follow a type's header. */
static size_t extra(uint32_t info)
{
	size_t count = BTF_INFO_VLEN(info);

	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG: return 4;
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64: return 12 * count;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO: return 8 * count;
	default: return 0;
	}
}

/* Fills in `types`, or only counts. False: malformed. */
static bool index_types(struct fay_kernel_btf *btf, const uint8_t *at, size_t size)
{
	uint32_t id = 1;

	for (size_t offset = 0; offset < size; id++) {
		const struct btf_type *type = (const void *)(at + offset);

		if (size - offset < sizeof(*type) || kind(type) > BTF_KIND_ENUM64 ||
		    size - offset - sizeof(*type) < extra(type->info))
			return false;
		if (btf->types)
			btf->types[id] = type;
		offset += sizeof(*type) + extra(type->info);
	}
	btf->count = id;
	return true;
}

static bool index_file(struct fay_kernel_btf *btf)
{
	const struct btf_header *header = (const void *)btf->bytes;

	if (btf->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->version != BTF_VERSION || header->hdr_len > btf->size || header->hdr_len % 4)
		return false;
	const uint8_t *types = btf->bytes + header->hdr_len + header->type_off;
	size_t rest = btf->size - header->hdr_len;

	if (header->type_off > rest || header->type_len > rest - header->type_off ||
	    header->str_off > rest || header->str_len > rest - header->str_off ||
	    header->type_off % 4 || !header->str_len)
		return false;
	btf->strings = (const char *)btf->bytes + header->hdr_len + header->str_off;
	btf->strings_size = header->str_len;
	if (btf->strings[header->str_len - 1] || !index_types(btf, types, header->type_len))
		return false;
	btf->types = calloc(btf->count, sizeof(*btf->types));
	return btf->types && index_types(btf, types, header->type_len);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static bool index_functions(struct fay_kernel_btf *btf)
{
	btf->functions = calloc(btf->count, sizeof(*btf->functions));
	if (!btf->functions)
		return false;
	for (uint32_t id = 1; id < btf->count; id++)
		if (kind(btf->types[id]) == BTF_KIND_FUNC)
			btf->functions[btf->function_count++] =
				(struct named){ name_of(btf, btf->types[id]->name_off), id };
	qsort(btf->functions, btf->function_count, sizeof(*btf->functions), by_name);
	return true;
}

int fay_kernel_btf_create(uint8_t *bytes, size_t size, struct fay_kernel_btf **result,
			  struct fay_error *error)
{
	struct fay_kernel_btf *btf = calloc(1, sizeof(*btf));

	if (!btf) {
		free(bytes);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	btf->bytes = bytes;
	btf->size = size;
	if (!index_file(btf) || !index_functions(btf)) {
		fay_kernel_btf_close(btf);
		return fay_error_set(error, FAY_E_REFUSED, "%s is malformed", KERNEL_BTF);
	}
	*result = btf;
	return FAY_OK;
}

/* All of the file in memory of malloc's; NULL: errno. */
static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes = NULL, *grown = NULL;
	size_t room = 0;
	int code;

	*size = 0;
	while (file && !feof(file) && !ferror(file)) {
		if (*size == room) {
			room = room ? 2 * room : BYTES_FIRST;
			errno = EFBIG;
			grown = room <= BYTES_MAX ? realloc(bytes, room) : NULL;
			if (!grown)
				break;
			bytes = grown;
		}
		*size += fread(bytes + *size, 1, room - *size, file);
	}
	code = errno;
	if (file && grown && !ferror(file)) {
		fclose(file);
		return bytes;
	}
	if (file)
		fclose(file);
	free(bytes);
	errno = code;
	return NULL;
}

int fay_kernel_btf_open(struct fay_kernel_btf **result, struct fay_error *error)
{
	size_t size;
	uint8_t *bytes = read_file(KERNEL_BTF, &size);

	if (!bytes)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the kernel's types are not known: %s: %s (a kernel with "
				     "CONFIG_DEBUG_INFO_BTF has them)",
				     KERNEL_BTF, strerror(errno));
	return fay_kernel_btf_create(bytes, size, result, error);
}

void fay_kernel_btf_close(struct fay_kernel_btf *btf)
{
	if (!btf)
		return;
	free(btf->bytes);
	free(btf->types);
	free(btf->functions);
	free(btf);
}

/* --- what is asked --- */

bool fay_kernel_btf_module(const struct fay_kernel_btf *btf, uint32_t *size, uint32_t *name_offset)
{
	const struct btf_type *type = NULL;

	for (uint32_t id = 1; id < btf->count && !type; id++)
		if (kind(btf->types[id]) == BTF_KIND_STRUCT &&
		    !strcmp(name_of(btf, btf->types[id]->name_off), "module"))
			type = btf->types[id];
	for (uint32_t i = 0; type && i < BTF_INFO_VLEN(type->info); i++) {
		const struct btf_member *member = (const struct btf_member *)(type + 1) + i;
		uint32_t bits = BTF_INFO_KFLAG(type->info) ? BTF_MEMBER_BIT_OFFSET(member->offset)
							   : member->offset;

		if (strcmp(name_of(btf, member->name_off), "name"))
			continue;
		*size = type->size;
		*name_offset = bits / 8;
		return bits % 8 == 0 && *name_offset < *size;
	}
	return false;
}

/* Without typedefs and qualifiers; NULL: nothing is left. */
static const struct btf_type *strip(const struct fay_kernel_btf *btf, uint32_t id)
{
	for (int i = 0; i < MODIFIERS_MAX; i++) {
		const struct btf_type *type = type_of(btf, id);

		switch (kind(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG: id = type->type; break;
		default: return type;
		}
	}
	return NULL;
}

/* Integer registers that an argument takes; 0: it lies on the stack, *words is how much of it; -1:
 * not understood. */
static int registers_of(const struct fay_kernel_btf *btf, uint32_t id, uint32_t *words)
{
	const struct btf_type *type = strip(btf, id);

	switch (kind(type)) {
	case BTF_KIND_PTR: return 1;
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64: return type->size <= 8 ? 1 : type->size == 16 ? 2 : -1;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		*words = (type->size + 7) / 8;
		return type->size <= 16 ? (int)*words : 0;
	default: return -1;
	}
}

/* The only function of that name; NULL: there is none, or several. */
static const struct btf_type *find_function(const struct fay_kernel_btf *btf, const char *name)
{
	struct named key = { name, 0 };
	const struct named *found =
		bsearch(&key, btf->functions, btf->function_count, sizeof(key), by_name);

	if (!found || (found > btf->functions && !strcmp(found[-1].name, name)) ||
	    (found + 1 < btf->functions + btf->function_count && !strcmp(found[1].name, name)))
		return NULL;
	return type_of(btf, found->id);
}

/*
 * The System V ABI's classification, for a kernel that has no floating point: six registers, an
 * argument that does not fit into what is left of them goes to the stack whole. One of 16 bytes'
 * alignment there, or a packed structure, may be counted a word too few: so a word is added where
 * an argument has more than one.
 */
static int stack_words(const struct fay_kernel_btf *btf, const struct btf_type *prototype)
{
	const struct btf_param *params = (const void *)(prototype + 1);
	uint32_t stack = 0, words = 0;
	int left = 6;

	if (prototype->type && registers_of(btf, prototype->type, &words) == 0)
		left--; /* the address of the result */
	for (uint32_t i = 0; i < BTF_INFO_VLEN(prototype->info); i++) {
		words = 1;
		int registers = registers_of(btf, params[i].type, &words);

		if (registers < 0 || (!params[i].type && !params[i].name_off))
			return -1; /* variadic too */
		if (registers && registers <= left)
			left -= registers;
		else
			stack += registers > 1 || words > 1 ? (words > 2 ? words : 2) + 1 : 1;
	}
	return stack <= FAY_KERNEL_STACK_WORDS_MAX ? (int)stack : -1;
}

/* As struct fay_kernel_set has it: how many of the result register's upper bits do not count, and
 * whether what is left has a sign. All count of what is not understood. */
static uint32_t result_of(const struct fay_kernel_btf *btf, const struct btf_type *prototype)
{
	const struct btf_type *type = strip(btf, prototype->type);
	bool is_signed = kind(type) == BTF_KIND_ENUM;

	if (!prototype->type)
		return 64;
	if (kind(type) == BTF_KIND_INT)
		is_signed = BTF_INT_ENCODING(*(const uint32_t *)(type + 1)) & BTF_INT_SIGNED;
	else if (!is_signed)
		return 0;
	if (type->size >= 8)
		return 0;
	return (64 - 8 * type->size) | (is_signed ? FAY_KERNEL_RESULT_SIGNED : 0);
}

bool fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
			      struct fay_kernel_prototype *prototype)
{
	const struct btf_type *function = find_function(btf, name),
			      *type = function ? type_of(btf, function->type) : NULL;
	int words = kind(type) == BTF_KIND_FUNC_PROTO ? stack_words(btf, type) : -1;

	if (words < 0)
		return false;
	prototype->stack_words = (uint32_t)words;
	prototype->result = result_of(btf, type);
	return true;
}
