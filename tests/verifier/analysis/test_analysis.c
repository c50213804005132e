/* SPDX-License-Identifier: MIT */
/*
 * What the corpus does not see of the analysis: who proves what (the fast pass or the solver),
 * exact facts of the report, counterexamples that were replayed, SMT-LIB output that a solver
 * confirms. Each test assembles a snippet into a whole image, as the corpus does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <z3.h>

#include "fay/verify.h"
#include "verifier/prover/prove.h"
#include "verifier/prover/smt/smt.h"
#include "verifier/prover/transfer/analysis.h"

static char directory[] = "/tmp/fay-analysis-XXXXXX";
static uint8_t bytes[1 << 20];
static size_t size;
static struct fay_verdict verdict;
static struct fay_policy policy;

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	assert_int_equal(system(line), 0);
}

static void assemble(const char *body)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/body.s", directory);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n\tTABLES\n", body);
	fclose(file);
	shell("cat %s %s/body.s > %s/image.s && as --defsym LOCAL=64 --defsym GLOBAL=64 -o "
	      "%s/image.o %s/image.s",
	      PROLOGUE, directory, directory, directory, directory);
	shell("ld -shared -nostdlib -z now -z noexecstack --build-id=none -o %s/image %s/image.o",
	      directory, directory);
	snprintf(path, sizeof(path), "%s/image", directory);
	file = fopen(path, "r");
	assert_non_null(file);
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
}

static void verify(const char *body)
{
	assemble(body);
	fay_verdict_deinit(&verdict);
	fay_verify(bytes, size, &policy, &verdict);
}

static void accepted(const char *body)
{
	verify(body);
	if (verdict.outcome != FAY_ACCEPTED)
		fail_msg("%s: %s; missing: %s", fay_rule_id(verdict.rejection.rule),
			 verdict.rejection.what,
			 verdict.rejection.missing ? verdict.rejection.missing : "-");
}

/* By the prover alone: fay_verify() looks for a certificate before it asks the solver. */
static void proved(const char *body)
{
	struct fay_run *run;

	assemble(body);
	fay_verdict_deinit(&verdict);
	run = fay_prove(bytes, size, &policy, NULL, NULL, NULL, &verdict);
	assert_non_null(run);
	assert_int_equal(fay_run_end(run), 0);
	assert_string_equal(fay_outcome_name(verdict.outcome), "accepted");
}

static void refused(const char *body, enum fay_rule rule, enum fay_outcome outcome)
{
	verify(body);
	assert_string_equal(fay_rule_id(verdict.rejection.rule), fay_rule_id(rule));
	assert_string_equal(fay_outcome_name(verdict.outcome), fay_outcome_name(outcome));
}

static int set_up(void **state)
{
	(void)state;
	fay_policy_default(&policy);
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	char line[256];

	(void)state;
	fay_verdict_deinit(&verdict);
	snprintf(line, sizeof(line), "rm -rf %s", directory);
	return system(line);
}

static void facts_are_exact(void **state)
{
	const struct fay_probe_facts *f;

	(void)state;
	accepted("	incq	(%rsi)\n	ret");
	f = &verdict.probes[0];
	assert_int_equal(f->event_fields, 0);
	assert_int_equal(f->clobbered_gprs, 0);
	assert_int_equal(f->arguments_used, 1u << FAY_RSI);
	assert_int_equal(f->worst_instructions, 2);
	assert_int_equal(f->worst_stack, 8);

	accepted("	push %rbx\n	mov 16(%rdi), %rbx\n	mov 90(%rdi), %ax\n	add %rbx, "
		 "(%rdx)\n	pop %rbx\n	ret");
	f = &verdict.probes[0];
	assert_int_equal(f->event_fields, (FAY_FIELD_ARG0 << 2) | FAY_FIELD_PID);
	assert_int_equal(f->clobbered_gprs, 1u << FAY_RAX);
	assert_int_equal(f->arguments_used, 1u << FAY_RDI | 1u << FAY_RDX);
	assert_int_equal(f->worst_stack, 16);

	/* A register that is clobbered and restored counts as kept. */
	accepted("	push %rcx\n	mov 8(%rdi), %rcx\n	mov %rcx, (%rsi)\n	pop "
		 "%rcx\n	ret");
	assert_int_equal(verdict.probes[0].clobbered_gprs, 0);
	/* Unless its saved copy was overwritten, on one path only and whichever is analysed first.
	 * */
	accepted("	push %rcx\n	cmpq $0, (%rdi)\n	jnz 2f\n	xor %eax, "
		 "%eax\n1:	pop %rcx\n	ret\n"
		 "2:	movq $5, (%rsp)\n	xor %eax, %eax\n	jmp 1b");
	assert_int_equal(verdict.probes[0].clobbered_gprs, 1u << FAY_RAX | 1u << FAY_RCX);
	/* What must not cross a cache line, on the stack of a program that may have misaligned it.
	 * */
	accepted("	push $1\n	mov $2, %eax\n	xchg %rax, (%rsp)\n	mov %rax, "
		 "(%rsi)\n	pop %rcx\n	ret");
	assert_true(verdict.probes[0].aligned_stack);
	accepted("	push $1\n	mov $2, %eax\n	xadd %rax, (%rsp)\n	lock xadd %rax, "
		 "(%rsi)\n	pop %rcx\n	ret");
	assert_false(verdict.probes[0].aligned_stack);
}

static void worst_cases_are_exact(void **state)
{
	uint64_t straight;

	(void)state;
	accepted("	mov $10, %ecx\n1:	dec %ecx\n	jne 1b\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 10 * 2 + 1);
	accepted("	xor %eax, %eax\n1:	add $3, %rax\n	cmp $30, %rax\n	jne 1b\n	"
		 "ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 10 * 3 + 1);
	accepted("	mov $-24, %rax\n1:	incq 24(%rsi,%rax)\n	add $8, %rax\n	jne "
		 "1b\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 3 * 3 + 1);
	/* Nested, the inner bound from a masked input. */
	accepted("	mov $4, %ecx\n1:	mov (%rdi), %rax\n	and $7, %eax\n	inc "
		 "%eax\n2:	dec %eax\n	jne 2b\n	dec %ecx\n	jne 1b\n	"
		 "ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 4 * (3 + 8 * 2 + 2) + 1);
	/* The branch's shorter side does not count. */
	accepted("	cmpq $0, (%rdi)\n	je 1f\n	nop\n	nop\n1:	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 5);
	/* A call counts with its body. */
	accepted("	call f\n	call f\n	ret\nf:	incq (%rsi)\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 2 * 3 + 1);
	assert_int_equal(verdict.probes[0].worst_stack, 16);
	/* A counter in the outer loop that the inner one leaves alone; one more way round the
	 * outer; a copy on the way. */
	accepted("	xor %r8d, %r8d\n1:	xor %ecx, %ecx\n2:	inc %ecx\n	cmp $3, "
		 "%ecx\n	jb 2b\n	mov %r8, %r9\n	lea 2(%r9), %r8\n	cmp $10, %r8\n"
		 "	jb 1b\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 5 * (1 + 3 * 3 + 4) + 1);
	/* Out of two loops at once, and on from there. */
	accepted("	mov $4, %ecx\n1:	mov $3, %eax\n2:	cmpq $7, (%rdi)\n	je "
		 "3f\n	dec %eax\n	jne 2b\n	dec %ecx\n	jne 1b\n	ret\n"
		 "3:	nop\n	nop\n	nop\n	nop\n	nop\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 1 + 4 * (1 + 3 * 4 + 2) + 6);
	/* What rep moves counts by the element, in every round. */
	accepted("	mov $5, %r8d\n	xor %eax, %eax\n1:	mov %rsi, %rdi\n	mov $8, "
		 "%ecx\n	rep stosq\n	dec %r8d\n	jne 1b\n	ret");
	assert_int_equal(verdict.probes[0].worst_instructions, 2 + 5 * (5 + 8) + 1);
	/* Obligations count once, however often a loop was looked at. */
	accepted("	incq (%rsi)\n	incq (%rsi)\n	ret");
	straight = verdict.obligations;
	accepted("	xor %eax, %eax\n1:	incq (%rsi)\n	mov %eax, %ecx\n2:	inc "
		 "%ecx\n	cmp $90, %ecx\n	jb 2b\n	inc %eax\n	cmp $30, %eax\n"
		 "	jb 1b\n	incq (%rsi)\n	ret");
	assert_int_equal(verdict.obligations, straight);
	/* No bound is not a great bound. */
	policy.max_instructions = UINT64_MAX;
	refused("	xor %eax, %eax\n1:	cmpq $0, (%rdi)\n	jne 1b\n	ret",
		FAY_RULE_TRM_LOOP, FAY_UNPROVED);
	fay_policy_default(&policy);
}

static void the_solver_proves_the_rest(void **state)
{
	(void)state;
	/* max(x, 1) by carry, then a division. */
	proved("	mov (%rdi), %rcx\n	cmp $1, %rcx\n	adc $0, %rcx\n	mov 8(%rdi), "
	       "%rax\n	xor %edx, %edx\n	div %rcx\n	mov %rax, (%rsi)\n	ret");
	assert_int_equal(verdict.obligations_by_solver, 1);
	/* x / 2 + y / 2 stays below 8 when both do: through multiplication and xor. */
	proved("	mov (%rdi), %eax\n	and $7, %eax\n	mov %eax, %ecx\n	xor $7, "
	       "%ecx\n	add %ecx, %eax\n	incq (%rsi,%rax,8)\n	ret");
	assert_true(verdict.obligations_by_solver >= 1);
	/* A signed division, the sign taken by a shift; after cqo it needs no solver. */
	proved("	mov (%rdi), %rax\n	mov %rax, %rdx\n	sar $63, %rdx\n	mov $10, "
	       "%ecx\n	idiv %rcx\n	mov %rax, (%rsi)\n	ret");
	assert_int_equal(verdict.obligations_by_solver, 1);
	proved("	mov (%rdi), %rax\n	cqo\n	mov $10, %ecx\n	idiv %rcx\n	mov %rax, "
	       "(%rsi)\n	ret");
	assert_int_equal(verdict.obligations_by_solver, 0);
	/* Within a loop: the head's invariant is the hypothesis. */
	proved("	mov $8, %ecx\n1:	mov (%rdi), %eax\n	and $7, %eax\n	mov %eax, "
	       "%r8d\n	xor $7, %r8d\n	add %r8d, %eax\n	incq (%rsi,%rax,8)\n"
	       "	dec %ecx\n	jne 1b\n	ret");
	assert_true(verdict.obligations_by_solver >= 1);
}

/* One question in two probes, or in two calls, is asked once. */
static void questions_are_asked_once(void **state)
{
	const char *body = "	mov (%rdi), %eax\n	and $7, %eax\n	mov %eax, %ecx\n	"
			   "xor $7, %ecx\n	add %ecx, %eax\n	incq (%rsi,%rax,8)\n";
	char text[1024];

	(void)state;
	snprintf(text, sizeof(text), "%s	ret", body);
	proved(text);
	assert_int_equal(verdict.obligations_by_solver, 2);
	assert_int_equal(verdict.solver_queries, 1);
}

static void counterexamples_are_replayed(void **state)
{
	static const struct {
		const char *body;
		enum fay_rule rule;
	} cases[] = {
		{ "	mov (%rdi), %rax\n	cmp $8, %rax\n	ja 1f\n	incq (%rsi,%rax,8)\n1:	"
		  "ret",
		  FAY_RULE_MEM_BOUNDS },
		{ "	xor %eax, %eax\n1:	incq (%rsi,%rax,8)\n	inc %rax\n	cmp $8, "
		  "%rax\n	jbe 1b\n	ret",
		  FAY_RULE_MEM_BOUNDS },
		{ "	mov 64(%rsi), %rax\n	ret", FAY_RULE_MEM_BOUNDS },
		{ "	movl (%rsi), %eax\n	cmp $3, %eax\n	jne 1f\n	movq $0, "
		  "(%rdi)\n1:	ret",
		  FAY_RULE_MEM_PERMISSION },
		{ "	mov 8(%rdi), %rax\n	xor %edx, %edx\n	divq (%rdi)\n	ret",
		  FAY_RULE_ARI_DIVIDE },
		{ "	mov %rcx, (%rsi)\n	ret", FAY_RULE_MEM_UNINIT },
		{ "	cmpq $5, (%rdi)\n	jne 1f\n	mov $1, %ebx\n1:	ret",
		  FAY_RULE_ENV_SAVED },
		{ "	cmpq $5, (%rdi)\n	jne 1f\n	mov %rdi, (%rsi)\n1:	ret",
		  FAY_RULE_MEM_LEAK },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		refused(cases[i].body, cases[i].rule, FAY_UNSAFE);
		if (!verdict.rejection.replayed || !verdict.rejection.counterexample)
			fail_msg("no counterexample for:\n%s", cases[i].body);
		assert_true(verdict.rejection.path_length > 0);
	}
}

/* What is safe but not seen to be is told apart from what is unsafe. */
static void unproved_is_not_unsafe(void **state)
{
	(void)state;
	/* A generator of period 65,536 comes to 0: nothing here knows of periods. */
	refused("	movzwl (%rdi), %eax\n1:	imul $5, %eax, %eax\n	inc %eax\n	"
		"and $0xffff, %eax\n	jne 1b\n	ret",
		FAY_RULE_TRM_LOOP, FAY_UNPROVED);
	assert_non_null(verdict.rejection.missing);
}

static void speculation_needs_more_than_a_branch(void **state)
{
	static const char *const branch = "	mov (%rdi), %rax\n	cmp $8, %rax\n	jae "
					  "1f\n	incq (%rsi,%rax,8)\n1:	ret";
	static const char *const fence = "	mov (%rdi), %rax\n	cmp $8, %rax\n	jae "
					 "1f\n	lfence\n	incq (%rsi,%rax,8)\n1:	ret";
	static const char *const mask =
		"	mov (%rdi), %rax\n	and $7, %eax\n	incq (%rsi,%rax,8)\n	ret";

	(void)state;
	accepted(branch);
	policy.speculation_confined = true;
	refused(branch, FAY_RULE_SPC_BRANCH, FAY_UNPROVED);
	accepted(fence);
	accepted(mask);
	policy.speculation_confined = false;
}

static char *read_text(const char *path)
{
	static char text[1 << 20];
	FILE *file = fopen(path, "r");
	size_t n;

	assert_non_null(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	return text;
}

/* Every obligation is written, and a solver that reads only the file says what the file claims. */
static void obligations_can_be_rechecked(void **state)
{
	static const char *const rules[] = { "MEM-UNINIT", "MEM-REGION", "MEM-PERMISSION",
					     "MEM-BOUNDS", "MEM-LEAK",   "ENV-FLAGS",
					     "ENV-SAVED",  "CFI-RETURN", "INVARIANT",
					     "ENTRY" };
	char path[512], out[256];
	struct dirent *entry;
	const char *text;
	unsigned files = 0;
	DIR *dir;

	(void)state;
	snprintf(out, sizeof(out), "%s/smt2", directory);
	assemble("	mov (%rdi), %rax\n	and $7, %eax\n	mov $4, %ecx\n1:	incq "
		 "(%rsi,%rax,8)\n	dec %ecx\n	jne 1b\n	mov %rax, (%rdx)\n	"
		 "ret");
	fay_verdict_deinit(&verdict);
	assert_int_equal(fay_verify_smt2(bytes, size, &policy, out, &verdict), 0);
	assert_int_equal(verdict.outcome, FAY_ACCEPTED);
	dir = opendir(out);
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		Z3_config config;
		Z3_context z;
		const char *answer;

		if (!strstr(entry->d_name, ".smt2"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", out, entry->d_name);
		text = read_text(path);
		assert_non_null(strstr(text, "(check-sat)"));
		assert_non_null(strstr(text, "unsat"));
		config = Z3_mk_config();
		z = Z3_mk_context(config);
		answer = Z3_eval_smtlib2_string(z, text);
		assert_non_null(strstr(answer, "unsat"));
		Z3_del_context(z);
		Z3_del_config(config);
		files++;
	}
	closedir(dir);
	assert_true(files >= 20); /* 8 instructions, the entry, three edges */
	snprintf(path, sizeof(path), "%s/index.json", out);
	text = read_text(path);
	assert_non_null(strstr(text, "\"complete\":true"));
	for (unsigned i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!strstr(text, rules[i]))
			fail_msg("no obligation of %s in %s", rules[i], text);
}

/* Both questions of an obligation together take no longer than the policy allows, but for what the
 * first overran; each that is asked has a quarter at least. */
static void two_questions_share_their_time(void **state)
{
	for (unsigned ms = 1; ms < 5000; ms++) {
		unsigned near = fay_smt_near_ms(ms),
			 whole = fay_smt_whole_ms(ms, (uint64_t)near * 1000000);

		assert_true(near + whole <= ms && whole >= near && whole > 0);
		assert_int_equal(fay_smt_whole_ms(ms, 0), ms);
		assert_int_equal(fay_smt_whole_ms(ms, (uint64_t)ms * 2000000), ms > 4 ? ms / 4 : 1);
	}
	assert_int_equal(fay_smt_near_ms(2000), 500);
	assert_int_equal(fay_smt_whole_ms(2000, 499000001), 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_are_exact),
		cmocka_unit_test(worst_cases_are_exact),
		cmocka_unit_test(the_solver_proves_the_rest),
		cmocka_unit_test(questions_are_asked_once),
		cmocka_unit_test(two_questions_share_their_time),
		cmocka_unit_test(counterexamples_are_replayed),
		cmocka_unit_test(unproved_is_not_unsafe),
		cmocka_unit_test(speculation_needs_more_than_a_branch),
		cmocka_unit_test(obligations_can_be_rechecked),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
