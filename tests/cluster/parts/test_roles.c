/* SPDX-License-Identifier: MIT */
/* Files of signers: roles, and what they admit. */
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cluster/access/access.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SIGNER "signer s " KEY

static struct fay_error error;

static int read_text(const char *text, const char *word, struct fay_key_file *file)
{
	char path[] = "/tmp/fay-roles-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	int result = fay_key_file_read(path, word, file, &error);
	unlink(path);
	return result;
}

/* The signer's role in a file of signers; what the file has must outlive it. */
static const struct fay_role *role_of(const char *text, struct fay_key_file *file)
{
	assert_int_equal(read_text(text, "signer", file), FAY_OK);
	return fay_key_file_role(file, &file->entries[file->count - 1]);
}

static void test_values(void **state)
{
	struct fay_key_file file;
	const struct fay_role *role =
		role_of("role other\n"
			"role web policy=/p users=root programs=nginx,redis* queries=2 memory=64 "
			"bytes-per-second=1000 # comment\n" SIGNER " role=web\n",
			&file);
	assert_non_null(role);
	assert_string_equal(role->name, "web");
	assert_string_equal(role->policy, "/p");
	assert_int_equal(role->user_count, 1);
	assert_int_equal(role->users[0], 0);
	assert_int_equal(role->program_count, 2);
	assert_int_equal(role->queries, 2);
	assert_int_equal(role->memory, 64 << 20);
	assert_int_equal(role->bytes_per_second, 1000);
	fay_key_file_deinit(&file);
	assert_null(role_of(SIGNER "\n", &file));
	fay_key_file_deinit(&file);
	assert_null(role_of("role web\n" SIGNER " /etc/policy\n", &file));
	assert_string_equal(file.entries[0].policy, "/etc/policy");
	fay_key_file_deinit(&file);
}

/* The kernel's events are of all processes. */
static void test_kernel(void **state)
{
	static const struct {
		const char *line;
		bool kernel;
	} cases[] = {
		{ "role r\n", true },
		{ "role r kernel=no\n", false },
		{ "role r users=root\n", false },
		{ "role r programs=nginx\n", false },
		{ "role r users=root kernel=yes\n", true },
		{ "role r kernel=yes programs=nginx\n", true },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		struct fay_key_file file;
		snprintf(text, sizeof(text), "%s" SIGNER " role=r\n", cases[i].line);
		assert_int_equal(role_of(text, &file)->kernel, cases[i].kernel);
		fay_key_file_deinit(&file);
	}
}

static void test_refusals(void **state)
{
	static const char *const texts[] = {
		"role\n",
		"role a b\n",
		"role users=root\n",
		"role a users=\n",
		"role a users=,root\n",
		"role a users=no-such-user-here\n",
		"role a programs=\n",
		"role a kernel=maybe\n",
		"role a kernel\n",
		"role a queries=0\n",
		"role a queries=-1\n",
		"role a queries=4294967296\n",
		"role a memory=lots\n",
		"role a memory=17592186044416\n",
		"role a bytes-per-second=1k\n",
		"role a colour=blue\n",
		"role a policy=\n",
		"role a\nrole a\n",
		SIGNER " role=none\n",
		SIGNER " role=a\nrole a\n",
		"role a\n" SIGNER " role=a more\n",
		SIGNER " role=\n",
		"signer s 0011\n",
		"machine m " KEY "\n",
	};
	/* nothing of it is passed over */
	const char *many = "role a queries=1 queries=1 queries=1 queries=1 queries=1 queries=1 "
			   "queries=1 queries=1 kernel=no\n";
	char line[2000];
	struct fay_key_file file;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (read_text(texts[i], "signer", &file) == FAY_OK)
			fail_msg("was taken: %s", texts[i]);
		assert_true(strstr(error.message, ":1: ") || strstr(error.message, ":2: "));
		assert_null(file.entries);
		assert_null(file.roles);
	}
	assert_int_equal(read_text(many, "signer", &file), FAY_E_USAGE);
	assert_int_equal(read_text("role a\n", "machine", &file), FAY_E_USAGE);
	assert_int_equal(read_text("machine m " KEY " role=a\n", "machine", &file), FAY_E_USAGE);
	/* The rest of a long line is not a line of its own. */
	memset(line, ' ', sizeof(line));
	strcpy(line + 1100, SIGNER "\n");
	assert_int_equal(read_text(line, "signer", &file), FAY_E_USAGE);
}

static int admits(const char *what, pid_t pid)
{
	char text[512];
	struct fay_key_file file;
	snprintf(text, sizeof(text), "role r %s\n" SIGNER " role=r\n", what);
	int result = fay_role_admits(role_of(text, &file), pid, &error);
	fay_key_file_deinit(&file);
	return result;
}

static void test_processes(void **state)
{
	char own[128], both[256], other[128];
	const struct passwd *user = getpwuid(geteuid());
	assert_non_null(user);
	snprintf(own, sizeof(own), "users=%s", user->pw_name);
	snprintf(both, sizeof(both), "%s programs=test_cluster_*", own);
	snprintf(other, sizeof(other), "users=%s", geteuid() ? "root" : "daemon");
	assert_int_equal(fay_role_admits(NULL, getpid(), &error), FAY_OK);
	assert_int_equal(admits("", getpid()), FAY_OK);
	assert_int_equal(admits(own, getpid()), FAY_OK);
	assert_int_equal(admits(both, getpid()), FAY_OK);
	assert_int_equal(admits("programs=*/test_cluster_roles", getpid()), FAY_OK);
	assert_int_equal(admits(other, getpid()), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "does not include processes of user"));
	assert_int_equal(admits("programs=nginx,test_cluster", getpid()), FAY_E_REFUSED);
	assert_int_equal(admits("programs=/usr/bin/*", getpid()), FAY_E_REFUSED);
	assert_non_null(strstr(error.message, "does not include the program"));
	assert_int_equal(admits(own, 0x7ffffff), FAY_E_REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
