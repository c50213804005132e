/* SPDX-License-Identifier: MIT */
/*
 * The corpus of probe programs: each is compiled by fay cc and verified, and the rate of acceptance is printed and asserted (first argument, in
 * percent). Each is also compiled natively, without guards, by clang-19, and both run the same events, random and extreme, with packets, texts and
 * records to read; after every event their states must be equal. Further arguments: names, to run only these. First of all may come
 *
 *	-d FOLDER   the programs of that folder of this one        -m ARCH   fay cc -march=ARCH
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reference.h"

#define PROGRAMS 1024
#define EVENTS 200

static char *programs[PROGRAMS];
static unsigned program_count;
static double required = 98;
static const char *subfolder = ".", *march;

static bool all_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

static void test_corpus(void **unused)
{
	char folder[] = "/tmp/fay-corpus-XXXXXX", path[PATH_MAX];
	uint8_t *data = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fay_compile_options options = {.size = sizeof(options), .march = march};
	unsigned good = 0, differ = 0;

	assert_ptr_not_equal(data, MAP_FAILED);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), FAY_SOURCE "/tests/corpus_c/%s", subfolder);
	native_build(path, folder, programs, program_count);
	for (unsigned i = 0; i < program_count; i++) {
		struct fay_error error = {0};
		struct fay_buffer image;
		struct loaded l;
		struct native n;

		fay_buffer_init(&image);
		snprintf(path, sizeof(path), FAY_SOURCE "/tests/corpus_c/%s/%s.c", subfolder, programs[i]);
		if (fay_compile_source(path, &options, &image, &error)) {
			printf("  %s\n", error.message);
			continue;
		}
		good += image_accepted(programs[i], &image);
		image_load(&image, &l);
		snprintf(path, sizeof(path), "%s/%s.so", folder, programs[i]);
		native_open(path, &n);
		differ += !native_compare(programs[i], &l, &n, data, EVENTS);
		if (all_zero(l.local, n.local_size) && all_zero(l.global, n.global_size))
			fail_msg("%s: no event changed its state", programs[i]);
		dlclose(n.library);
		unlink(path);
		image_unload(&l);
		fay_buffer_deinit(&image);
	}
	snprintf(path, sizeof(path), "rm -rf %s", folder);
	assert_int_equal(system(path), 0);
	munmap(data, DATA_SIZE);
	printf("fay cc: %u of %u accepted, %.1f %%\n", good, program_count, 100.0 * good / program_count);
	assert_int_equal(differ, 0);
	assert_true(100.0 * good >= required * program_count);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list_programs(void)
{
	char path[PATH_MAX];
	DIR *d;

	snprintf(path, sizeof(path), FAY_SOURCE "/tests/corpus_c/%s", subfolder);
	d = opendir(path);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d)) && program_count < PROGRAMS;) {
		size_t length = strlen(e->d_name);

		if (length > 2 && !strcmp(e->d_name + length - 2, ".c") && strncmp(e->d_name, "test_", 5) && strcmp(e->d_name, "reference.c") &&
		    strcmp(e->d_name, "generate.c"))
			programs[program_count++] = strndup(e->d_name, length - 2);
	}
	closedir(d);
	qsort(programs, program_count, sizeof(*programs), by_name);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};

	for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2)
		*(argv[1][1] == 'd' ? &subfolder : &march) = argv[2];
	if (march && !strcmp(march, "x86-64-v3") && !__builtin_cpu_supports("avx2")) {
		printf("skipped: this machine cannot run x86-64-v3\n");
		return 77;
	}
	if (argc > 1)
		required = atof(argv[1]);
	for (int i = 2; i < argc && program_count < PROGRAMS; i++)
		programs[program_count++] = argv[i];
	if (!program_count)
		list_programs();
	return cmocka_run_group_tests_name("corpus of probe programs", tests, NULL, NULL);
}
