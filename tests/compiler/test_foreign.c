/* SPDX-License-Identifier: MIT */
/*
 * Images that other toolchains make, by the commands that their sources state: each is built,
 * verified and run. The argument says which: gcc (with a linker script), assembly, fortran. 77 if
 * the machine has no such compiler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define FLAGS                                                                                      \
	"-O2 -fPIC -fno-plt -mgeneral-regs-only -mno-red-zone -fcf-protection=none "               \
	"-fno-asynchronous-unwind-tables -fomit-frame-pointer "
#define LINK "ld -shared -nostdlib -z now -z noexecstack --build-id=none "

static char folder[] = "/tmp/fay-foreign-XXXXXX";
static struct fay_buffer image;
static struct loaded l;

/* Runs `commands` in an empty folder, with $S for the sources; they make image.fay. */
static void build(const char *commands)
{
	char line[4096], path[PATH_MAX];
	FILE *file;

	assert_non_null(mkdtemp(folder));
	snprintf(line, sizeof(line), "cd %s && S=" FAY_SOURCE " && %s", folder, commands);
	assert_int_equal(system(line), 0);
	snprintf(path, sizeof(path), "%s/image.fay", folder);
	file = fopen(path, "rb");
	assert_non_null(file);
	image.data = malloc(1 << 20);
	image.size = fread(image.data, 1, 1 << 20, file);
	fclose(file);
	snprintf(line, sizeof(line), "rm -rf %s", folder);
	assert_int_equal(system(line), 0);
	image_verify("image.fay", &image);
	image_load(&image, &l);
	assert_string_equal(image_string(&l.probes[0].pattern), "libc!read");
}

static void done(void)
{
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void call_with(uint64_t size)
{
	l.event->arg[2] = size;
	image_call(&l, 0);
}

static void test_gcc(void **unused)
{
	static const uint64_t sizes[] = { 100, 100, 7, 0, 100, (uint64_t)-1, 4096, 7 };
	uint64_t *state;

	build("gcc " FLAGS "-fvisibility=hidden -fno-stack-protector -ffreestanding -I$S/include "
	      "-c -o r.o $S/examples/images/requests.c && " LINK
	      "-T $S/examples/images/requests.lds -o image.fay r.o");
	state = image_state(&l, "requests");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		call_with(sizes[i]);
	/* 0 is among the recent ones from the start; of the rest each counts once. */
	assert_int_equal(state[0], 4);
	assert_int_equal(state[1], 100 + 7 + (uint64_t)-1 + 4096);
	assert_int_equal(state[2 + 0], 1);
	assert_int_equal(state[2 + 3], 1);
	assert_int_equal(state[2 + 7], 1);
	assert_int_equal(state[2 + 13], 1);
	for (uint64_t i = 0; i < 9; i++) /* the first is forgotten */
		call_with(1000 + i);
	call_with(100);
	assert_int_equal(state[0], 4 + 9 + 1);
	done();
}

static void test_assembly(void **unused)
{
	uint64_t *state, row;

	build("as -o c.o $S/examples/images/count.S && " LINK "--hash-style=gnu -o image.fay c.o");
	state = image_state(&l, "requests");
	for (uint64_t i = 0; i < 10; i++)
		call_with(i);
	call_with(1 << 20);
	assert_int_equal(state[0], 11);
	assert_int_equal(state[1], 45 + (1 << 20));
	assert_int_equal(helper_log.emits, 1);
	memcpy(&row, helper_log.emitted, 8);
	assert_int_equal(row, 1 << 20);
	done();
}

static void test_fortran(void **unused)
{
	uint64_t *state;

	build("gfortran " FLAGS "-c -o s.o $S/examples/images/sizes.f90 && as -o t.o "
	      "$S/examples/images/sizes_tables.S && " LINK "-o image.fay s.o t.o");
	state = image_state(&l, "sizes");
	for (uint64_t i = 0; i < 40; i++)
		call_with(i % 3 ? i : 100000 + i);
	assert_int_equal(state[0], 40);
	assert_int_equal(state[1], 100039);
	assert_int_equal(state[3 + 16 + 38], 1); /* seen(38) */
	assert_int_equal(state[3 + 16 + 39], 0);
	uint64_t sum = 0;
	for (uint64_t i = 24; i < 40; i++)
		sum += i % 3 ? i : 100000 + i;
	assert_int_equal(state[2], sum / 16);
	call_with(UINT64_MAX); /* the mask is the guard */
	assert_int_equal(state[1], 1048575);
	done();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name, *program;
		struct CMUnitTest test;
	} kinds[] = {
		{ "gcc", "gcc", cmocka_unit_test(test_gcc) },
		{ "assembly", "as", cmocka_unit_test(test_assembly) },
		{ "fortran", "gfortran", cmocka_unit_test(test_fortran) },
	};
	char command[64];

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[1], kinds[i].name))
			continue;
		snprintf(command, sizeof(command), "command -v %s >/dev/null", kinds[i].program);
		if (system(command)) {
			printf("skipped: %s is not installed\n", kinds[i].program);
			return 77;
		}
		return _cmocka_run_group_tests("foreign images", &kinds[i].test, 1, NULL, NULL);
	}
	return 2;
}
