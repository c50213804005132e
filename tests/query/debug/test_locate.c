/* SPDX-License-Identifier: MIT */
/* What fay_debug_locate() makes of places that located.S has. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "query/debug/scopes_private.h"

static const struct expected {
	const char *function, *name;
	const char *value, *address; /* operands; NULL: none */
} all[] = {
	/* registers, by their names of the type's size; what has no memory has no address */
	{ "located", "in_rax", "4@%eax", NULL },
	{ "located", "in_rdx", "1@%dl", NULL },
	{ "located", "in_rcx", "2@%cx", NULL },
	{ "located", "in_rbx", "8@%rbx", NULL },
	{ "located", "in_rsi", "4@%esi", NULL },
	{ "located", "in_rdi", "4@%edi", NULL },
	{ "located", "in_rbp", "8@%rbp", NULL },
	{ "located", "in_r15", "1@%r15b", NULL },
	{ "located", "in_rip", NULL, NULL },
	{ "located", "in_xmm0", NULL, NULL },
	/* memory */
	{ "located", "at_rsp", "4@8(%rsp)", "8@&8(%rsp)" },
	{ "located", "below_r9", "2@-8(%r9)", "8@&-8(%r9)" },
	{ "located", "in_frame", "4@-12(%rsp)", "8@&-12(%rsp)" }, /* 20 below rsp + 8 */
	{ "located", "in_object", "4@64+.", "8@$64+." },
	{ "located", "indexed", "1@3(%rax,%rdx)", "8@&3(%rax,%rdx)" },
	{ "located", "indexed_rsp", "4@16(%rsp,%rax)", "8@&16(%rsp,%rax)" },
	{ "located", "twice_rsp", NULL, NULL },
	{ "located", "three", NULL, NULL },
	{ "located", "object_indexed", "4@68+.(%rdi)", "8@&68+.(%rdi)" },
	{ "located", "two_objects", NULL, NULL },
	{ "located", "added", "4@12(%rax)", "8@&12(%rax)" },
	{ "located", "taken", "4@-12(%rax)", "8@&-12(%rax)" },
	{ "located", "taken_register", NULL, NULL },
	{ "located", "behind", NULL, "8@0(%rax)" }, /* its address is read */
	{ "located", "behind_and_on", NULL, NULL },
	{ "located", "behind_twice", NULL, NULL },
	/* values */
	{ "located", "five", "8@$5", NULL },
	{ "located", "product", "8@$30", NULL },
	{ "located", "masked_number", "8@$4", NULL },
	{ "located", "minus_two", "8@$-2", NULL },
	{ "located", "sum", "8@&3(%rbx,%rsi)", NULL },
	{ "located", "masked", "8@&0(%rbx)", NULL },
	{ "located", "masked_oddly", NULL, NULL },
	{ "located", "masked_by_register", NULL, NULL },
	{ "located", "times_register", NULL, NULL },
	{ "located", "either", NULL, NULL },
	{ "located", "read", "8@8(%rbx)", NULL },
	{ "located", "read_short", "2@8(%rbx)", NULL },
	{ "located", "read_three", NULL, NULL },
	{ "located", "converted", "8@&0(%rbx)", NULL },
	{ "located", "converted_gnu", "8@&0(%rbx)", NULL },
	{ "located", "implicit", "8@$67305985", NULL },
	{ "located", "implicit_none", NULL, NULL },
	{ "located", "implicit_nine", NULL, NULL },
	{ "located", "minus_three", "8@$-3", NULL },
	{ "located", "in_block", "8@$513", NULL },
	{ "located", "in_long_block", NULL, NULL },
	/* what means nothing */
	{ "located", "pieces", NULL, NULL },
	{ "located", "plus_alone", NULL, NULL },
	{ "located", "deref_alone", NULL, NULL },
	{ "located", "stacked", NULL, NULL },
	{ "located", "after_value", NULL, NULL },
	{ "located", "nothing", NULL, NULL },
	{ "located", "cut", NULL, NULL },
	{ "located", "unknown", NULL, NULL },
	{ "located", "optimised_out", NULL, NULL },
	{ "located", "unsaid", NULL, NULL },
	/* lists of places */
	{ "located", "in_list", "4@%ecx", NULL },
	{ "located", "in_view", "4@%r12d", NULL }, /* a range without bytes, which begins here */
	{ "located", "elsewhere", NULL, NULL },
	{ "located", "cut_list", NULL, NULL },
	{ "located", "nowhere", NULL, NULL },
	/* types */
	{ "located", "structure", NULL, "8@&8(%rsp)" },
	{ "located", "wide", NULL, "8@&8(%rsp)" },
	{ "located", "pointer", "8@8(%rsp)", "8@&8(%rsp)" },
	{ "located", "reference", "8@8(%rsp)", "8@&8(%rsp)" },
	{ "located", "enumeration", "2@8(%rsp)", "8@&8(%rsp)" },
	{ "located", "named", "2@8(%rsp)", "8@&8(%rsp)" },
	{ "located", "circle", NULL, "8@&8(%rsp)" },
	/* what DW_OP_fbreg counts from */
	{ "by_register", "of_register", "4@16(%rbp)", "8@&16(%rbp)" },
	{ "by_sum", "of_sum", "4@-12(%rbp)", "8@&-12(%rbp)" },
	{ "by_itself", "of_itself", NULL, NULL },
	{ "by_two", "of_two", NULL, NULL },
	{ "by_cell", "of_cell", NULL, NULL },
	{ "without", "of_none", NULL, NULL },
};

static bool find(Dwarf_Die *parent, const char *name, Dwarf_Die *found)
{
	bool more = !dwarf_child(parent, found);
	while (more && (!dwarf_diename(found) || strcmp(dwarf_diename(found), name)))
		more = !dwarf_siblingof(found, found);
	return more;
}

static void equal(const struct expected *expected, const char *want, bool there, const char *text)
{
	if (want ? there && !strcmp(text, want) : !there)
		return;
	fail_msg("%s in %s: %s, expected %s", expected->name, expected->function,
		 there ? text : "nowhere", want ? want : "nowhere");
}

static void check(const struct fay_debug_file *file, Dwarf_Die *unit,
		  const struct expected *expected)
{
	struct fay_debug_scopes scopes;
	Dwarf_Die function, variable;
	Dwarf_Addr pc;
	uint64_t left = 1000000;
	char text[128];
	assert_true(find(unit, expected->function, &function));
	assert_int_equal(dwarf_lowpc(&function, &pc), 0);
	assert_true(fay_debug_scopes_at(unit, pc, &left, &scopes));
	assert_true(find(&function, expected->name, &variable));
	bool there = fay_debug_locate(file, &scopes, &variable, pc, false, text, sizeof(text));
	equal(expected, expected->value, there, text);
	there = fay_debug_locate(file, &scopes, &variable, pc, true, text, sizeof(text));
	equal(expected, expected->address, there, text);
}

static void test_places(void **state)
{
	struct fay_debug_file file;
	struct fay_error error;
	Dwarf_Die unit;
	Dwarf_CU *begun = NULL;
	(void)state;
	int fd = open(FAY_LOCATED, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fay_debug_file_open(&file, fd, FAY_LOCATED, &error), 0);
	assert_int_equal(dwarf_get_units(file.dwarf, NULL, &begun, NULL, NULL, &unit, NULL), 0);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check(&file, &unit, &all[i]);
	fay_debug_file_close(&file);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_places) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
