/* SPDX-License-Identifier: MIT */
/* What the loader asks of the kernel's types: the layout of struct module, which functions take
 * arguments on the stack, and what they return. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MODIFIERS_MAX 32

struct named {
	const char *name;
	uint32_t id;
};

struct fay_kernel_btf {
	struct fay_btf *types;
	struct named *functions; /* by name */
	size_t function_count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

int fay_kernel_btf_open(struct fay_kernel_btf **result, struct fay_error *error)
{
	struct fay_kernel_btf *btf = calloc(1, sizeof(*btf));

	if (!btf)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_btf_open(NULL, &btf->types, error)) {
		free(btf);
		return error->code;
	}
	btf->functions = calloc(fay_btf_count(btf->types) + 1u, sizeof(*btf->functions));
	for (uint32_t id = 1; btf->functions && id < fay_btf_count(btf->types); id++) {
		const struct btf_type *type = fay_btf_type(btf->types, id);

		if (type && BTF_INFO_KIND(type->info) == BTF_KIND_FUNC)
			btf->functions[btf->function_count++] =
				(struct named){ fay_btf_string(btf->types, type->name_off), id };
	}
	if (!btf->functions) {
		fay_kernel_btf_close(btf);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	qsort(btf->functions, btf->function_count, sizeof(*btf->functions), by_name);
	*result = btf;
	return FAY_OK;
}

void fay_kernel_btf_close(struct fay_kernel_btf *btf)
{
	if (!btf)
		return;
	fay_btf_close(btf->types);
	free(btf->functions);
	free(btf);
}

bool fay_kernel_btf_module(const struct fay_kernel_btf *btf, uint32_t *size, uint32_t *name_offset)
{
	uint32_t id = fay_btf_find(btf->types, BTF_KIND_STRUCT, "module");
	struct fay_btf_field name;

	if (!id || !fay_btf_member(btf->types, id, "name", &name) || name.bit_offset % 8)
		return false;
	*size = fay_btf_size(btf->types, id);
	*name_offset = name.bit_offset / 8;
	return *name_offset < *size;
}

/* Integer registers that an argument takes; 0: it lies on the stack, *words is how much of it; -1:
 * not understood. */
static int registers_of(const struct fay_kernel_btf *btf, uint32_t id, uint32_t *words)
{
	for (int i = 0; i < MODIFIERS_MAX; i++) {
		const struct btf_type *type = fay_btf_type(btf->types, id);

		if (!type)
			return -1;
		switch (BTF_INFO_KIND(type->info)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG: id = type->type; continue;
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
	return -1;
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
	return fay_btf_type(btf->types, found->id);
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

bool fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
			      struct fay_kernel_prototype *prototype)
{
	const struct btf_type *function = find_function(btf, name),
			      *type = function ? fay_btf_type(btf->types, function->type) : NULL;
	int words = type && BTF_INFO_KIND(type->info) == BTF_KIND_FUNC_PROTO
			    ? stack_words(btf, type)
			    : -1;

	if (words < 0)
		return false;
	struct fay_btf_result result = fay_btf_result(btf->types, function->type);
	prototype->stack_words = (uint32_t)words;
	prototype->result =
		(64 - 8 * result.bytes) | (result.is_signed ? FAY_KERNEL_RESULT_SIGNED : 0);
	return true;
}
