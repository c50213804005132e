/* SPDX-License-Identifier: MIT */
/*
 * Generated programs (generate.c): guarded output equals unguarded output for all of them, and the verifier accepts the stated share; the
 * seeds of the others are printed with the reason.
 *
 *     test_generated [COUNT [FIRST_SEED [PERCENT]]]     200, 1, 98
 *     test_generated --print SEED
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "generate.h"
#include "reference.h"

#define EVENTS 100
#define BATCH 50

static unsigned long count = 200, first = 1;
static double required = 98;
static unsigned good, differ;
static uint8_t *data;

static void run_one(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct fay_error error = {0};
	struct fay_buffer image;
	struct loaded l;
	struct native n;

	fay_buffer_init(&image);
	snprintf(path, sizeof(path), "%s/%s.c", folder, name);
	if (fay_compile_source(path, NULL, &image, &error))
		fail_msg("%s: %s", name, error.message); /* every program is one that fay cc takes */
	good += image_accepted(name, &image);
	image_load(&image, &l);
	snprintf(path, sizeof(path), "%s/%s.so", folder, name);
	native_open(path, &n);
	differ += !native_compare(name, &l, &n, data, EVENTS);
	dlclose(n.library);
	image_unload(&l);
	fay_buffer_deinit(&image);
}

static void run_batch(unsigned long from, unsigned batch)
{
	char folder[] = "/tmp/fay-generated-XXXXXX", path[PATH_MAX], names[BATCH][32];
	char *list[BATCH];

	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < batch; i++) {
		FILE *out;

		snprintf(names[i], sizeof(names[i]), "seed_%lu", from + i);
		list[i] = names[i];
		snprintf(path, sizeof(path), "%s/%s.c", folder, names[i]);
		out = fopen(path, "w");
		assert_non_null(out);
		fputs("#pragma clang diagnostic ignored \"-Weverything\"\n", out);
		generate_program(from + i, out);
		assert_int_equal(fclose(out), 0);
	}
	snprintf(path, sizeof(path), FAY_SOURCE "/tests/corpus_c/corpus.h");
	{
		char command[PATH_MAX * 2];

		snprintf(command, sizeof(command), "cp %s %s/", path, folder);
		assert_int_equal(system(command), 0);
	}
	native_build(folder, folder, list, batch);
	for (unsigned i = 0; i < batch; i++)
		run_one(folder, names[i]);
	snprintf(path, sizeof(path), "rm -rf %s", folder);
	assert_int_equal(system(path), 0);
}

static void test_generated(void **unused)
{
	data = mmap(NULL, DATA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	for (unsigned long done = 0; done < count; done += BATCH)
		run_batch(first + done, (unsigned)(count - done < BATCH ? count - done : BATCH));
	printf("generated programs: %u of %lu accepted, %.1f %%; %u differ\n", good, count, 100.0 * good / (double)count, differ);
	assert_int_equal(differ, 0);
	assert_true(100.0 * good >= required * (double)count);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_generated)};

	if (argc == 3 && !strcmp(argv[1], "--print")) {
		generate_program(strtoull(argv[2], NULL, 0), stdout);
		return 0;
	}
	if (argc > 1)
		count = strtoul(argv[1], NULL, 0);
	if (argc > 2)
		first = strtoul(argv[2], NULL, 0);
	if (argc > 3)
		required = atof(argv[3]);
	return cmocka_run_group_tests_name("generated programs", tests, NULL, NULL);
}
