/* SPDX-License-Identifier: MIT */
/* Which probes are copied into the trampoline: instructions by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "dispatcher/user/trampoline_private.h"

#define INC "\x48\xff\x06"      /* incq (%rsi) */
#define LOAD "\x48\x8b\x06"     /* mov (%rsi), %rax */
#define JNE(to) "\x75" to       /* rel8 */
#define JNE32(to) "\x0f\x85" to /* rel32 */
#define JMP(to) "\xeb" to
#define JRCXZ(to) "\xe3" to
#define XCHG "\x48\x87\x04\xce" /* xchg %rax, (%rsi,%rcx,8) */
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
	copied_whole(judge(XCHG RET), 4, true);
	copied_whole(judge(XCHG JNE("\xfa") RET), 6, false); /* again and again */
	copied_whole(judge(INC JNE("\xfb") RET), 5, true);
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

/* ---- what is copied does what the probe does ---- */

#define WAYS(tail_a, tail_b)                                                                       \
	"\x48\x83\x3e\x01"                        /* cmpq $1, (%rsi) */                            \
	"\x74" tail_a "\x72" tail_b               /* je, jb */                                     \
	"\x48\xff\x46\x08\xc3"                    /* incq 8(%rsi); ret */
#define TAIL_A "\x50\x48\x83\x46\x10\x02\x58\xc3" /* push %rax; addq $2, 16(%rsi); pop %rax; ret */
#define TAIL_B "\x48\x83\x46\x18\x03\xc3"         /* addq $3, 24(%rsi); ret */

typedef void (*probe_type)(void *event, uint64_t *words);

/* A probe at the beginning of the page, and what is made of `copies` of it, which returns. */
static probe_type make(uint8_t *page, const char *code, size_t size, unsigned copies)
{
	struct fay_emitter e = { .code = page + 1024,
				 .capacity = 3072,
				 .address = (uint64_t)(uintptr_t)(page + 1024) };
	struct fay_exits exits = { .count = 0 };
	struct fay_trampoline_probe probe = { .code = (uint64_t)(uintptr_t)page, .bytes = page };
	struct fay_inline is;

	memcpy(page, code, size);
	is = fay_inline_judge(page, size);
	assert_true(is.possible && is.leaves);
	probe.inlined = probe.leaves = true;
	probe.size = is.size;
	for (unsigned i = 0; i < copies; i++)
		fay_inline_emit(&e, &probe, &exits);
	fay_emit_byte(&e, 0xc3);
	fay_inline_aside(&e, &exits);
	assert_false(e.failed);
	assert_true(e.size <= copies * FAY_TRAMPOLINE_PROBE_MAX);
	return (probe_type)(uintptr_t)(page + 1024);
}

static void same(const char *code, size_t size, unsigned copies)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	probe_type made;

	assert_ptr_not_equal(page, MAP_FAILED);
	made = make(page, code, size, copies);
	for (uint64_t first = 0; first < 4; first++) {
		uint64_t ours[4] = { first }, want[4] = { first };

		made(NULL, ours);
		for (unsigned i = 0; i < copies; i++)
			((probe_type)(uintptr_t)page)(NULL, want);
		assert_memory_equal(ours, want, sizeof(ours));
	}
	munmap(page, 4096);
}

static void test_run(void **state)
{
	static const char tails[] = WAYS("\x07", "\x0d") TAIL_A TAIL_B;
	static const char ends[] = WAYS("\x07", "\x0c") TAIL_A TAIL_B; /* jb to a ret */

	(void)state;
	for (unsigned copies = 1; copies <= 8; copies *= 2) { /* with two exits each */
		same(tails, sizeof(tails) - 1, copies);
		same(ends, sizeof(ends) - 1, copies);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_whole),
					    cmocka_unit_test(test_in_part),
					    cmocka_unit_test(test_refused),
					    cmocka_unit_test(test_run) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
