/* SPDX-License-Identifier: MIT */
/* As many places as a session may have, and one more: it is refused, and those before it are still the session's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "session.h"

static void test_too_many(void **state)
{
	const struct fay_function function = { .name = "f", .address = 4096 };
	struct fay_session *session = calloc(1, sizeof(*session));
	size_t capacity = 0;

	(void)state;
	assert_non_null(session);
	for (size_t i = 0; i < FAY_POINTS_MAX; i++)
		assert_int_equal(fay_point_append(session, &capacity, &function, NULL, FAY_HOOK_NONE), 0);
	assert_int_not_equal(fay_point_append(session, &capacity, &function, NULL, FAY_HOOK_NONE), 0);
	assert_int_equal(session->point_count, FAY_POINTS_MAX);
	fay_points_deinit(session);
	free(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_too_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
