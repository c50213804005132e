/* SPDX-License-Identifier: MIT */
/*
 * The loader's reader of the kernel's types: a file that libbpf writes, the running kernel's beside
 * libbpf's view of it, and damaged files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "loader/kernel/kernel_private.h"

#define NO_PROTOTYPE UINT32_MAX

/* --- a file --- */

static void function(struct btf *btf, const char *name, int result, const int *arguments)
{
	int prototype = btf__add_func_proto(btf, result);

	for (; *arguments >= 0; arguments++)
		assert_int_equal(btf__add_func_param(btf, *arguments ? "a" : "", *arguments), 0);
	assert_true(btf__add_func(btf, name, BTF_FUNC_STATIC, prototype) > 0);
}

static struct btf *make(void)
{
	struct btf *btf = btf__new_empty();
	int number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	int byte = btf__add_int(btf, "unsigned char", 1, 0);
	int wide = btf__add_int(btf, "__int128", 16, BTF_INT_SIGNED);
	int pointer = btf__add_ptr(btf, 0);
	int text = btf__add_array(btf, number, byte, 56);
	int pair = btf__add_struct(btf, "pair", 16);
	int large = btf__add_struct(btf, "large", 40);
	int module = btf__add_struct(btf, "module", 128);

	assert_int_equal(btf__add_field(btf, "state", number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "name", text, 192, 0), 0);
	assert_int_equal(module, 8);
	int named = btf__add_typedef(btf, "byte_t", btf__add_const(btf, byte));
	int choice = btf__add_enum(btf, "choice", 4);

	assert_int_equal(btf__add_enum_value(btf, "ONE", 1), 0);
	function(btf, "nothing", 0, (int[]){ -1 });
	function(btf, "six", number, (int[]){ number, pointer, named, number, number, number, -1 });
	function(btf, "seven", named,
		 (int[]){ number, number, number, number, number, number, number, -1 });
	function(btf, "by_value", choice, (int[]){ large, -1 });
	function(btf, "large_result", large, (int[]){ pair, pair, number, number, -1 });
	function(btf, "wide", pointer, (int[]){ number, pair, wide, wide, -1 });
	function(btf, "variadic", number, (int[]){ pointer, 0, -1 });
	function(btf, "twice", number, (int[]){ -1 });
	function(btf, "twice", number, (int[]){ number, -1 });
	return btf;
}

static struct fay_kernel_btf *copy(const struct btf *btf)
{
	uint32_t size;
	const void *bytes = btf__raw_data(btf, &size);
	uint8_t *own = malloc(size);
	struct fay_kernel_btf *result;

	assert_non_null(own);
	memcpy(own, bytes, size);
	assert_int_equal(fay_kernel_btf_create(own, size, &result, NULL), 0);
	return result;
}

static void answers(void **state)
{
	static const struct {
		const char *name;
		uint32_t stack_words, result;
	} cases[] = {
		{ "nothing", 0, 64 },
		{ "six", 0, 32 | FAY_KERNEL_RESULT_SIGNED },
		{ "seven", 1, 56 },
		{ "by_value", 6, 32 | FAY_KERNEL_RESULT_SIGNED },
		{ "large_result", 1, 0 },
		{ "wide", 3, 0 },
		{ "variadic", NO_PROTOTYPE, 0 },
		{ "twice", NO_PROTOTYPE, 0 },
		{ "absent", NO_PROTOTYPE, 0 },
	};
	struct btf *made = make();
	struct fay_kernel_btf *btf = copy(made);
	uint32_t size, name;

	assert_true(fay_kernel_btf_module(btf, &size, &name));
	assert_int_equal(size, 128);
	assert_int_equal(name, 24);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fay_kernel_prototype prototype;
		bool found = fay_kernel_btf_prototype(btf, cases[i].name, &prototype);

		assert_int_equal(found, cases[i].stack_words != NO_PROTOTYPE);
		if (!found)
			continue;
		assert_int_equal(prototype.stack_words, cases[i].stack_words);
		assert_int_equal(prototype.result, cases[i].result);
	}
	fay_kernel_btf_close(btf);
	btf__free(made);
}

/* Whatever the file holds: refused, or read without a fault. */
static void damaged(void **state)
{
	struct btf *made = make();
	uint32_t size;
	const uint8_t *bytes = btf__raw_data(made, &size);
	unsigned refused = 0;

	srand(1);
	for (unsigned i = 0; i < 5000; i++) {
		struct fay_kernel_btf *btf;
		struct fay_kernel_prototype prototype;
		uint32_t length = i < size ? i : size, numbers[2];
		uint8_t *own = malloc(length + 1);

		assert_non_null(own);
		memcpy(own, bytes, length);
		for (int k = 0; i >= size && k < 4; k++)
			own[(size_t)rand() % size] = (uint8_t)rand();
		if (fay_kernel_btf_create(own, length, &btf, NULL)) {
			refused++;
			continue;
		}
		fay_kernel_btf_module(btf, &numbers[0], &numbers[1]);
		fay_kernel_btf_prototype(btf, "wide", &prototype);
		fay_kernel_btf_prototype(btf, "seven", &prototype);
		fay_kernel_btf_close(btf);
	}
	assert_in_range(refused, size, 4999); /* all that are cut, and more */
	btf__free(made);
}

/* Sections that begin or end behind the file, by a little and by much. All types are zeros, but for
 * the first one's kind. */
static void sections(void **state)
{
	enum { ROOM = 120 };
	static const struct {
		uint32_t header, type_off, type_len, str_off, str_len;
		bool fine;
		uint32_t kind;
	} cases[] = {
		{ 24, 0, ROOM, 0, ROOM, true, 0 },
		{ 24, 0, 96, 96, 24, true, 0 },
		{ 24, 0, ROOM + 12, 0, ROOM, false, 0 },
		{ 24, 8, ROOM, 0, ROOM, false, 0 },
		{ 24, ROOM + 4, 0, 0, ROOM, false, 0 },
		{ 24, 0, 96, 8, ROOM, false, 0 },
		{ 24, 0, 96, ROOM + 1, 1, false, 0 },
		{ 24, 0, 96, 0, 0, false, 0 },
		{ 24, 2, 96, 0, ROOM, false, 0 },
		{ 22, 0, 96, 0, ROOM, false, 0 },
		{ 24 + ROOM + 4, 0, 0, 0, 1, false, 0 },
		{ 24, 0, 100, 0, ROOM, false, 0 }, /* a part of a type */
		{ 24, UINT32_MAX - 3, 96, 0, ROOM, false, 0 },
		{ 24, 0, 96, UINT32_MAX, ROOM, false, 0 },
		{ 24, 0, 96, 96, 24, false, BTF_KIND_ENUM64 + 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct btf_header *file = calloc(1, sizeof(*file) + ROOM);
		struct fay_kernel_btf *btf;

		assert_non_null(file);
		*file = (struct btf_header){ .magic = BTF_MAGIC,
					     .version = BTF_VERSION,
					     .hdr_len = cases[i].header,
					     .type_off = cases[i].type_off,
					     .type_len = cases[i].type_len,
					     .str_off = cases[i].str_off,
					     .str_len = cases[i].str_len };
		((struct btf_type *)(file + 1))->info = cases[i].kind << 24;
		int code = fay_kernel_btf_create((uint8_t *)file, sizeof(*file) + ROOM, &btf, NULL);

		if (!code)
			fay_kernel_btf_close(btf);
		assert_int_equal(!code, cases[i].fine);
	}
}

/* --- the running kernel's --- */

/* Registers of a plain argument, as libbpf sees it; 0: something else. */
static unsigned plain(const struct btf *types, uint32_t id)
{
	const struct btf_type *type =
		btf__type_by_id(types, (uint32_t)btf__resolve_type(types, id));

	return type && (btf_is_int(type) || btf_is_ptr(type) || btf_is_any_enum(type)) &&
	       btf__resolve_size(types, id) <= 8;
}

static uint32_t expected_result(const struct btf *types, uint32_t id)
{
	const struct btf_type *type =
		btf__type_by_id(types, (uint32_t)btf__resolve_type(types, id));
	bool is_signed = type && (btf_is_enum(type) ||
				  (btf_is_int(type) && btf_int_encoding(type) & BTF_INT_SIGNED));

	if (!id)
		return 64;
	if (!type || type->size >= 8 || !(btf_is_int(type) || btf_is_enum(type)))
		return 0;
	return (64 - 8 * type->size) | (is_signed ? FAY_KERNEL_RESULT_SIGNED : 0);
}

/* Functions whose name and arguments leave no doubt: one of that name, plain arguments. */
static void compare(const struct btf *types, const struct fay_kernel_btf *btf, uint32_t id,
		    unsigned *compared)
{
	const struct btf_type *type = btf__type_by_id(types, id),
			      *form = btf__type_by_id(types, type->type);
	const char *name = btf__name_by_offset(types, type->name_off);
	struct fay_kernel_prototype prototype;
	uint32_t count = btf_vlen(form);

	for (uint32_t i = 0; i < count; i++)
		if (!plain(types, btf_params(form)[i].type))
			return;
	if ((form->type && !plain(types, form->type)) ||
	    !fay_kernel_btf_prototype(btf, name, &prototype))
		return;
	assert_int_equal(prototype.stack_words, count > 6 ? count - 6 : 0);
	assert_int_equal(prototype.result, expected_result(types, form->type));
	++*compared;
}

static void as_libbpf_reads_them(void **state)
{
	struct btf *types = btf__parse_raw("/sys/kernel/btf/vmlinux");
	struct fay_kernel_btf *btf;
	uint32_t size, name;
	unsigned functions = 0, compared = 0;

	if (!types) {
		print_message("skipped: this kernel does not describe its types (BTF)\n");
		skip();
	}
	assert_int_equal(fay_kernel_btf_open(&btf, NULL), 0);
	assert_true(fay_kernel_btf_module(btf, &size, &name));
	int id = btf__find_by_name_kind(types, "module", BTF_KIND_STRUCT);

	assert_int_equal(size, btf__resolve_size(types, (uint32_t)id));
	for (uint32_t i = 1; i < btf__type_cnt(types); i++) {
		if (!btf_is_func(btf__type_by_id(types, i)))
			continue;
		functions++;
		compare(types, btf, i, &compared);
	}
	print_message("%u of %u functions compared\n", compared, functions);
	assert_true(compared > functions / 2);
	fay_kernel_btf_close(btf);
	btf__free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers), cmocka_unit_test(damaged),
					    cmocka_unit_test(sections),
					    cmocka_unit_test(as_libbpf_reads_them) };

	libbpf_set_print(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
