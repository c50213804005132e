/* SPDX-License-Identifier: MIT */
/* Where fay_debug_places_read() has the copy of copied.S begin. */
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/error.h"
#include "fay/loader.h"
#include "query/debug/debug.h"

static bool same(const char *glob, const char *symbol)
{
	return !strcmp(glob, symbol);
}

static bool has(const struct fay_debug_places *places, uint64_t address)
{
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].address == address)
			return true;
	return false;
}

/* The address of a symbol in the object, which is loaded for that. */
static uint64_t address_of(const char *symbol)
{
	Dl_info info;
	void *object = dlopen(FAY_COPIED, RTLD_NOW);
	assert_non_null(object);
	void *at = dlsym(object, symbol);
	assert_non_null(at);
	assert_int_not_equal(dladdr(at, &info), 0);
	uint64_t address = (uint64_t)((char *)at - (char *)info.dli_fbase);
	dlclose(object);
	return address;
}

static void test_range_without_bytes(void **state)
{
	struct fay_debug_places places = { 0 };
	struct fay_error error = { 0 };
	(void)state;
	int fd = open(FAY_COPIED, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	int code = fay_debug_places_read(fd, FAY_COPIED, "inlined inner", same, &places, &error);
	assert_string_equal(error.message, "");
	assert_int_equal(code, FAY_OK);
	assert_true(has(&places, address_of("first")));
	assert_true(has(&places, address_of("second")));
	assert_int_equal(places.count, 2);
	fay_debug_places_deinit(&places);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_range_without_bytes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
