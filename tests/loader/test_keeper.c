/* SPDX-License-Identifier: MIT */
/* The keeper is not taken by the memory killer while it works, where it may say so; then all is as
 * it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "loader/stop/stop.h"

static int score(void)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "re");
	int value = -2000;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &value), 1);
	fclose(file);
	return value;
}

static int transaction(void *found)
{
	*(int *)found = score();
	return 7;
}

/* Whether a process may exempt itself. */
static bool may_lower(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		FILE *file = fopen("/proc/self/oom_score_adj", "we");

		_exit(!file || fprintf(file, "-1000") < 0 || fclose(file));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status == 0;
}

static void test_exempt(void **state)
{
	int before = score(), meanwhile = 0;
	struct fay_error error;

	(void)state;
	assert_int_equal(fay_keeper_run(transaction, &meanwhile, &error), 7);
	assert_int_equal(meanwhile, may_lower() ? -1000 : before);
	assert_int_equal(score(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_exempt) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
