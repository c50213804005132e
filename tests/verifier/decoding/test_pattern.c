/* SPDX-License-Identifier: MIT */
/*
 * POL-TRACEPOINT: fay_policy_allows() against names. Where it allows a glob, every short name that
 * the glob matches is matched by the policy; globs and names are made of few letters, so that all
 * names up to a length can be tried.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fay/verify.h"
#include "tests/xorshift.h"

static bool allows(const char *allowed, const char *pattern)
{
	struct fay_policy policy = { .pattern_count = 1 };
	snprintf(policy.patterns[0], sizeof(policy.patterns[0]), "%s", allowed);
	return fay_policy_allows(&policy, pattern);
}

static void named_cases(void **state)
{
	(void)state;
	assert_true(allows("libc!re*", "libc!rea*"));
	assert_true(allows("libc!*read*", "libc!*pread*"));
	assert_true(allows("libc!*", "libc![a-z]*"));
	assert_true(allows("*", "sshd!main"));
	assert_true(allows("read", "libc!read"));
	assert_true(allows("libc!rea?", "libc!rea?"));
	assert_true(allows("libc!re[ad]d", "libc!read"));
	assert_true(allows("*!read", "lib*!read"));
	assert_false(allows("libc!*read*", "libc!m[read]lloc"));
	assert_false(allows("libc!rea?", "libc!rea*"));
	assert_false(allows("libc!re[!a]", "libc!re*"));
	assert_false(allows("libc!*!", "libc!*"));
	assert_false(allows("lib?!read", "lib*!read"));
	assert_false(allows("libc!read", "read"));
	assert_false(allows("m*", "m*!secret"));
	assert_false(allows("libc!re??", "libc!re\\ad"));
	assert_false(allows("libc!???", "libc!\xc3\xa9?")); /* three bytes, or two characters */
	/* with a slash the loader matches paths, without names */
	assert_true(allows("*", "/usr/lib/libc.so.6!read"));
	assert_true(allows("**!*", "*/libc.so.6!read"));
	assert_true(allows("/usr/lib/*!*", "/usr/lib/ssl/legacy.so!read"));
	assert_true(allows("/usr/lib/*!*", "/usr/lib/*ssl*!read"));
	assert_true(allows("libc!*", "libc!operator/*"));
	assert_false(allows("*ssl*!*", "*ssl*/legacy.so!*"));
	assert_false(allows("*ssl*!*", "/usr/lib/ssl/legacy.so!read"));
	assert_false(allows("*ssl*!*", "*ssl[/]legacy.so!read"));
	assert_false(allows("*ssl*!*", "*ssl\\/legacy.so!read"));
	assert_false(allows("lib?ssl!*", "lib/ssl!read"));
	assert_false(allows("*[!/]*!*", "libc!read"));
	assert_false(allows("/usr/lib/*!*", "libc!read"));
	assert_true(fay_policy_allows(&(struct fay_policy){ 0 }, "anything!*"));
}

static uint64_t random_state = 88172645463325252u;

static unsigned below(unsigned n)
{
	return (unsigned)(xorshift(&random_state) >> 33) % n;
}

static void random_glob(char *glob)
{
	static const char *const pieces[] = { "a", "b",    "a",    "b",   "*",  "*",
					      "?", "[ab]", "[!a]", "\\a", "[a", "]" };
	unsigned count = 1 + below(5);
	*glob = 0;
	for (unsigned i = 0; i < count; i++)
		strcat(glob, pieces[below(sizeof(pieces) / sizeof(*pieces))]);
}

/* The next of all strings over a, b, ], [ by length; false beyond five letters. */
static bool next_name(char name[8])
{
	static const char letters[] = "ab][";
	for (size_t i = 0; i < 5; i++) {
		const char *letter = name[i] ? strchr(letters, name[i]) + 1 : letters;
		name[i] = *letter ? *letter : letters[0];
		if (*letter)
			return true;
	}
	return false;
}

static void random_globs(void **state)
{
	unsigned allowed_count = 0;
	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		char allowed[40], wanted[40], pattern[48], policy[48], name[8] = "";
		random_glob(allowed);
		random_glob(wanted);
		snprintf(policy, sizeof(policy), "m!%s", allowed);
		snprintf(pattern, sizeof(pattern), "m!%s", wanted);
		if (!allows(policy, pattern))
			continue;
		allowed_count++;
		do
			if (!fnmatch(wanted, name, 0) && fnmatch(allowed, name, 0))
				fail_msg("policy %s allows %s, which matches %s", allowed, wanted,
					 name);
		while (next_name(name));
	}
	assert_true(allowed_count > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(named_cases),
					    cmocka_unit_test(random_globs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
