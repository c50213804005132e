/* SPDX-License-Identifier: MIT */
/* Which probes are copied into the trampoline: instructions by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dispatcher/user/trampoline.h"

#define INC "\x48\xff\x06"      /* incq (%rsi) */
#define LOAD "\x48\x8b\x06"     /* mov (%rsi), %rax */
#define JNE(to) "\x75" to       /* rel8 */
#define JNE32(to) "\x0f\x85" to /* rel32 */
#define JMP(to) "\xeb" to
#define JRCXZ(to) "\xe3" to
#define PUSH "\x50"
#define RET "\xc3"
#define FAR "\x90\x90\x90\x90" RET /* what a jump over the ret may lead to */

#define judge(code) fay_inline_judge((const uint8_t *)(code), sizeof(code) - 1)

static void copied_whole(struct fay_inline is, size_t size, bool reentrant)
{
	assert_true(is.possible);
	assert_false(is.leaves);
	assert_int_equal(is.size, size);
	assert_int_equal(is.reentrant, reentrant);
}

static void copied_in_part(struct fay_inline is, size_t size)
{
	assert_true(is.possible);
	assert_true(is.leaves);
	assert_false(is.reentrant);
	assert_int_equal(is.size, size);
}

static void test_whole(void **state)
{
	(void)state;
	copied_whole(judge(RET), 0, true);
	copied_whole(judge(INC RET), 3, true);
	copied_whole(judge(INC RET PUSH), 3, true);
	copied_whole(judge(JNE("\x03") INC RET), 5, true); /* to the ret */
	copied_whole(judge(JRCXZ("\x03") INC RET), 5, true);
	copied_whole(judge(LOAD INC RET), 6, false);
	assert_false(judge(JNE("\x01") INC RET).possible); /* into an instruction */
	assert_false(judge(PUSH RET).possible);
	assert_false(judge(INC).possible);
}

static void test_in_part(void **state)
{
	(void)state;
	copied_in_part(judge(JNE("\x04") INC RET FAR), 5);
	copied_in_part(judge(JNE32("\x04\0\0\0") INC RET FAR), 9);
	copied_in_part(judge(JNE("\x08") INC RET FAR), 5); /* another ret */
	copied_in_part(judge(JNE("\x0a") JNE("\x08") JNE("\x06") JNE("\x04") INC RET FAR), 11);
}

static void test_refused(void **state)
{
	(void)state;
	assert_false(judge(JNE("\x09") INC RET FAR).possible); /* beyond the code */
	assert_false(judge(JNE("\x80") INC RET FAR).possible); /* before it */
	assert_false(judge(JMP("\x04") INC RET FAR).possible);
	assert_false(judge(JRCXZ("\x04") INC RET FAR).possible);
	/* a jump that stays, whose distance would be another */
	assert_false(judge(JNE("\x02") JNE("\x04") INC RET FAR).possible);
	assert_false(judge(JNE("\x0c") JNE("\x0a") JNE("\x08") JNE("\x06") JNE("\x04") INC RET FAR)
			     .possible);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole),
					    cmocka_unit_test(test_in_part),
					    cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
