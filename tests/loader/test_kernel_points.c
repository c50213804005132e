/* SPDX-License-Identifier: MIT */
/* Which functions of the kernel's are traced: symbols and types are the test's, and fay.ko, which
 * is not there, says that ftrace has them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loader/kernel/kernel_private.h"

int __wrap_ioctl(int fd, unsigned long request, struct fay_kernel_check *check);
int __wrap_ioctl(int fd, unsigned long request, struct fay_kernel_check *check)
{
	(void)fd;
	assert_int_equal(request, FAY_KERNEL_CHECK);
	memset((void *)check->answers, 1, check->count);
	return 0;
}

/* BTF has each name but those that begin with `__` or have a dot. */
bool __wrap_fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
				     struct fay_kernel_prototype *prototype);
bool __wrap_fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
				     struct fay_kernel_prototype *prototype)
{
	(void)btf;
	*prototype = (struct fay_kernel_prototype){ .stack_words = 1 };
	return strncmp(name, "__", 2) != 0 && !strchr(name, '.');
}

/* A session at all functions of `symbols`, which are sorted by address. */
static struct fay_kernel_session *find(const struct fay_kernel_symbols *symbols, uint32_t kind)
{
	static char pattern[] = "kernel!*";
	struct fay_kernel_session *session = calloc(1, sizeof(*session));
	static struct fay_probe_facts facts = { .pattern = pattern };
	static struct fay_verdict verdict = { .probes = &facts };
	struct fay_error error;

	assert_non_null(session);
	session->verdict = &verdict;
	session->symbols = symbols;
	session->probes[0].kind = kind;
	session->probe_count = 1;
	session->device = -1;
	assert_int_equal(fay_kernel_find_points(session, &error), FAY_OK);
	return session;
}

static const char *why_not(const struct fay_kernel_session *session, const char *function)
{
	for (size_t i = 0; i < session->skipped_count; i++)
		if (!strcmp(session->skipped[i].function, function))
			return session->skipped[i].reason;
	return "";
}

#define SYMBOLS(...)                                                                               \
	{ (struct fay_kernel_symbol[]){ __VA_ARGS__ },                                             \
	  sizeof((struct fay_kernel_symbol[]){ __VA_ARGS__ }) / sizeof(struct fay_kernel_symbol) }

/* Several functions have the names `same` and `copied`; a module's does not count, nor what was cut
 * off a function, nor a name that is said twice of one. */
static const struct fay_kernel_symbols named = SYMBOLS(
	{ 0x1000, "alone", false }, { 0x2000, "same", false }, { 0x3000, "__x64_sys_one", false },
	{ 0x3000, "sys_one", false }, { 0x4000, "same", false }, { 0x5000, "own", false },
	{ 0x6000, "same", false }, { 0x6000, "sixth", false }, { 0x7000, "twice", false },
	{ 0x7000, "twice", false }, { 0x8000, "copied", false }, { 0x9000, "copied.isra.0", false },
	{ 0xa000, "own.part.0", false }, { 0xb000, "own.cold", false }, { 0xc000, "own", true });

static void prototype_of_one_function(void **state)
{
	static const uint64_t traced[] = { 0x1000, 0x3000, 0x5000, 0x6000, 0x7000 };
	struct fay_kernel_session *session = find(&named, FAY_PROBE_RETURN);

	(void)state;
	assert_int_equal(session->point_count, sizeof(traced) / sizeof(*traced));
	for (size_t i = 0; i < session->point_count; i++) {
		assert_int_equal(session->points[i].place.address, traced[i]);
		assert_int_equal(session->points[i].prototype.stack_words, 1);
	}
	assert_non_null(strstr(why_not(session, "kernel!same"), "does not say which arguments"));
	assert_non_null(strstr(why_not(session, "kernel!copied"), "does not say which arguments"));
	fay_kernel_session_destroy(session);
}

static void entries_need_none(void **state)
{
	struct fay_kernel_session *session = find(&named, FAY_PROBE_ENTRY);

	(void)state;
	assert_int_equal(session->point_count, 11);
	fay_kernel_session_destroy(session);
}

static const struct fay_kernel_symbols endless =
	SYMBOLS({ 0x1000, "do_exit", false }, { 0x2000, "get_signal", false },
		{ 0x3000, "do_idle.constprop.0", false }, { 0x4000, "acpi_hw_write_port", false },
		{ 0x5000, "acpi_hw_write_ports", false });

static void never_ending_calls(void **state)
{
	struct fay_kernel_session *session = find(&endless, FAY_PROBE_RETURN);

	(void)state;
	assert_int_equal(session->point_count, 1);
	assert_int_equal(session->points[0].place.address, 0x5000);
	assert_string_equal(why_not(session, "kernel!do_exit"), "does not return");
	assert_string_equal(why_not(session, "kernel!get_signal"),
			    "does not return if its task ends or is killed in it");
	assert_string_equal(why_not(session, "kernel!do_idle.constprop.0"),
			    "does not return if its processor goes offline");
	assert_string_equal(why_not(session, "kernel!acpi_hw_write_port"),
			    "does not return if the machine sleeps in it");
	fay_kernel_session_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(prototype_of_one_function),
					    cmocka_unit_test(entries_need_none),
					    cmocka_unit_test(never_ending_calls) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
