/* SPDX-License-Identifier: MIT */
/*
 * Modules and symbols of live programs and files: addresses are compared with what the program
 * itself sees; names, aliases, sizes, deleted files, other mount namespaces; every message of a
 * wrong turn; damaged files never crash.
 */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/event.h"
#include "loader/names/target.h"
#include "loader/suggest/suggest.h"
#include "tests/xorshift.h"

static const char *pie_path, *nopie_path, *library_path;
static struct fay_error failure;

struct program {
	pid_t pid;
	uint64_t global, fixed, library; /* addresses that it printed */
};

/* `before` runs in the child before exec; may be NULL. */
static bool start(struct program *program, const char *path, bool (*before)(const char *path))
{
	int out[2];
	char line[256] = "";
	assert_int_equal(pipe(out), 0);
	program->pid = fork();
	if (!program->pid) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		if (before && !before(path))
			_exit(1);
		execl(before ? "/tmp/inner-target" : path, path, NULL);
		_exit(1);
	}
	close(out[1]);
	ssize_t got = read(out[0], line, sizeof(line) - 1);
	close(out[0]);
	return got > 0 && sscanf(line, "%lu %lu %lu", &program->global, &program->fixed,
				 &program->library) == 3;
}

static void stop(struct program *program)
{
	kill(program->pid, SIGKILL);
	waitpid(program->pid, NULL, 0);
}

static struct fay_function find_one(struct fay_target *target, const char *pattern)
{
	struct fay_function_list list;
	failure.message[0] = 0;
	if (fay_target_find(target, pattern, &list, &failure))
		fail_msg("%s: %s", pattern, failure.message);
	if (list.count != 1)
		fail_msg("%s: %zu matches", pattern, list.count);
	struct fay_function function = list.items[0];
	fay_function_list_deinit(&list);
	return function;
}

static void check_program(const struct program *program, const char *module)
{
	struct fay_target *target;
	char pattern[128];
	assert_int_equal(fay_target_open_pid(program->pid, &target, &failure), 0);
	assert_int_equal(fay_target_pid(target), program->pid);
	snprintf(pattern, sizeof(pattern), "%s!fay_sym_global", module);
	struct fay_function function = find_one(target, pattern);
	assert_int_equal(function.address, program->global);
	assert_string_equal(function.name, "fay_sym_global");
	assert_string_equal(function.module, module);
	assert_in_range(function.size, 3, 64);
	assert_string_equal(fay_target_function_name(target, fay_name_hash("fay_sym_global")),
			    "fay_sym_global");
	assert_null(fay_target_function_name(target, fay_name_hash("fay_sym_globa")));
	assert_int_equal(find_one(target, "*!fay_sym_static").address, program->fixed);
	function = find_one(target, "libfaysym!fay_sym_only_in_library");
	assert_int_equal(function.address, program->library);
	assert_string_equal(function.module, "libfaysym-1.2");
	assert_int_equal(find_one(target, "libfaysym-1.2.so.3!fay_sym_only_*").address,
			 program->library);
	assert_string_equal(find_one(target, "libc!fopen").module, "libc");
	assert_string_equal(find_one(target, "libc.so.6!fopen").module, "libc");
	fay_target_close(target);
}

static void test_live(void **state)
{
	struct program program;
	assert_true(start(&program, pie_path, NULL));
	check_program(&program, "symbols_target_pie");
	stop(&program);
	assert_true(start(&program, nopie_path, NULL));
	check_program(&program, "symbols_target_nopie");
	stop(&program);
}

static void copy_file(const char *from, const char *to)
{
	char command[1024];
	snprintf(command, sizeof(command), "rm -f '%s' && cp '%s' '%s'", to, from, to);
	assert_int_equal(system(command), 0);
}

static void test_deleted_and_replaced(void **state)
{
	struct program program;
	char path[64] = "/tmp/fay-symbols-XXXXXX", copy[96];
	assert_non_null(mkdtemp(path));
	snprintf(copy, sizeof(copy), "%s/victim", path);
	copy_file(pie_path, copy);
	assert_true(start(&program, copy, NULL));
	unlink(copy);
	check_program(&program, "victim");
	/* Another file of that name, with other addresses, must not be looked at. */
	copy_file("/bin/true", copy);
	check_program(&program, "victim");
	stop(&program);
	unlink(copy);
	rmdir(path);
}

/* A tmpfs over /tmp that only the child sees. */
static bool enter_namespace(const char *path)
{
	char command[1024];
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	/* The fixture may itself lie below /tmp: keep it open across the mount. */
	int fd = open(path, O_RDONLY);
	int library = open(library_path, O_RDONLY);
	if (fd < 0 || library < 0 || mount("tmpfs", "/tmp", "tmpfs", 0, NULL))
		return false;
	snprintf(command, sizeof(command),
		 "cat /proc/%d/fd/%d >/tmp/inner-target && cat /proc/%d/fd/%d "
		 ">/tmp/libfaysym-1.2.so.3 && chmod 755 /tmp/inner-target",
		 getpid(), fd, getpid(), library);
	setenv("LD_LIBRARY_PATH", "/tmp", 1);
	return !system(command);
}

static void test_mount_namespace(void **state)
{
	struct program program;
	if (geteuid()) {
		print_message("skipped: mount namespaces need root\n");
		skip();
	}
	if (!start(&program, pie_path, enter_namespace)) {
		stop(&program);
		print_message("skipped: this container does not allow mount namespaces\n");
		skip();
	}
	assert_int_not_equal(access("/tmp/inner-target", F_OK), 0);
	check_program(&program, "inner-target");
	stop(&program);
}

/* An executable answers to the name it was started by, as Debian's redis-server, which is a link to
 * redis-check-rdb. */
static void test_link_name(void **state)
{
	struct program program;
	struct fay_target *target;
	char directory[64] = "/tmp/fay-symbols-XXXXXX", link_path[96];
	assert_non_null(mkdtemp(directory));
	snprintf(link_path, sizeof(link_path), "%s/other-name", directory);
	assert_int_equal(symlink(pie_path, link_path), 0);
	assert_true(start(&program, link_path, NULL));
	check_program(&program, "other-name");
	assert_int_equal(fay_target_open_pid(program.pid, &target, &failure), 0);
	assert_string_equal(find_one(target, "symbols_target_pie!fay_sym_global").module,
			    "other-name");
	fay_target_close(target);
	assert_int_equal(fay_target_open_file(link_path, &target, &failure), 0);
	find_one(target, "other-name!fay_sym_global");
	find_one(target, "symbols_target_pie!fay_sym_global");
	fay_target_close(target);
	stop(&program);
	unlink(link_path);
	rmdir(directory);
}

static void test_file(void **state)
{
	struct fay_target *target;
	struct fay_function_list list;
	assert_int_equal(fay_target_open_file(nopie_path, &target, &failure), 0);
	assert_int_equal(fay_target_pid(target), 0);
	/* Aliases fold to the shortest name that matched. */
	assert_string_equal(find_one(target, "*!fay_sym_*al*").name, "fay_sym_global");
	assert_string_equal(find_one(target, "*!fay_sym_alias_*").name, "fay_sym_alias_long_name");
	/* No size in the symbol: up to the next function. */
	assert_int_equal(find_one(target, "fay_sym_no_size").size, 32);
	assert_int_equal(find_one(target, "fay_sym_after").size, 1);
	/* By address, each once. */
	assert_int_equal(fay_target_find(target, "*", &list, &failure), 0);
	assert_true(list.count > 5);
	for (size_t i = 1; i < list.count; i++)
		assert_true(list.items[i - 1].address < list.items[i].address);
	fay_function_list_deinit(&list);
	fay_target_close(target);
}

static void check_message(const char *path, const char *pattern, const char *part)
{
	struct fay_target *target;
	struct fay_function_list list = { 0 };
	assert_int_equal(fay_target_open_file(path, &target, &failure), 0);
	assert_int_equal(fay_target_find(target, pattern, &list, &failure), FAY_E_USAGE);
	fay_suggest(target, &failure);
	assert_int_equal(failure.code, FAY_E_USAGE);
	if (!strstr(failure.message, part))
		fail_msg("%s: \"%s\" lacks \"%s\"", pattern, failure.message, part);
	assert_null(list.items);
	fay_target_close(target);
}

static void test_messages(void **state)
{
	check_message(pie_path, "fay_sym_gloabl", "did you mean `fay_sym_global`");
	check_message(pie_path, "FAY_SYM_STATIC", "did you mean `fay_sym_static`");
	check_message(pie_path, "fay_sym_no_si", "`fay_sym_no_size`");
	check_message(pie_path, "fay_sym_variable", "is a variable, not a function");
	check_message(pie_path, "fay_sym_indirect", "IFUNC");
	check_message(pie_path, "fay_sym_only_in_library", "only imports");
	check_message(pie_path, "symbols_targte_pie!main", "no module `symbols_targte_pie`");
	check_message(pie_path, "symbols_targte_pie!main", "did you mean `symbols_target_pie`?");
	check_message(pie_path, "iolib!Read", "modules: symbols_target_pie");
	check_message(pie_path, "app::Cache<int, std::less<int> >::get(int) const",
		      "try `_[ZR]*3app*5Cache*3get*`");
	check_message(pie_path, "(anonymous namespace)::Job::~Job", "try `_[ZR]*3Job*`");
	check_message(pie_path, "app::*::Job::Job", "try `_[ZR]*3app*3Job*`");
	check_message(pie_path, "a:::::b<(", "try `_[ZR]*1a*1b*`");
	check_message(pie_path, "a!b!c", "more than one '!'");
	check_message(pie_path, "a!operator!=!", "more than one '!'");
	check_message(pie_path, "symbols_target_pie!operator!=", "no function `operator!=`");
	check_message(pie_path, "!b", "before '!'");
	check_message(pie_path, "b!", "after '!'");
	check_message(pie_path, "", "empty");
	/* memcpy's present version is indirect; the old one, kept for old programs, must not be
	 * traced in its stead. */
	check_message("/lib/x86_64-linux-gnu/libc.so.6", "libc!memcpy", "IFUNC");
}

static void test_same_name_elsewhere(void **state)
{
	struct program program;
	struct fay_target *target;
	struct fay_function_list list;
	assert_true(start(&program, pie_path, NULL));
	assert_int_equal(fay_target_open_pid(program.pid, &target, &failure), 0);
	assert_int_equal(fay_target_find(target, "symbols_target_pie!fay_sym_only_in_library",
					 &list, &failure),
			 FAY_E_USAGE);
	fay_suggest(target, &failure);
	assert_non_null(strstr(failure.message, "`libfaysym-1.2!fay_sym_only_in_library`"));
	/* A glob over modules is one list. */
	assert_int_equal(fay_target_find(target, "*sym*!fay_sym_*", &list, &failure), 0);
	assert_int_equal(list.count, 6);
	fay_function_list_deinit(&list);
	fay_target_close(target);
	stop(&program);
}

static void test_no_process(void **state)
{
	struct fay_target *target;
	pid_t child = fork();
	if (!child)
		_exit(0);
	siginfo_t info;
	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	assert_int_equal(fay_target_open_pid(child, &target, &failure), FAY_E_REFUSED);
	assert_non_null(strstr(failure.message, "zombie"));
	waitpid(child, NULL, 0);
	assert_int_equal(fay_target_open_pid(child, &target, &failure), FAY_E_REFUSED);
	assert_non_null(strstr(failure.message, "no process with PID"));
	assert_int_equal(fay_target_open_pid(-3, &target, &failure), FAY_E_REFUSED);
	assert_int_equal(fay_target_open_pid(2, &target, &failure), FAY_E_REFUSED);
	assert_int_equal(fay_target_open_file("/no/such", &target, &failure), FAY_E_USAGE);
	assert_non_null(strstr(failure.message, "No such file"));
	assert_int_equal(fay_target_open_file("/etc/passwd", &target, &failure), FAY_E_REFUSED);
	assert_non_null(strstr(failure.message, "not an ELF file"));
	assert_int_equal(fay_target_open_file("/tmp", &target, &failure), FAY_E_REFUSED);
}

static void test_no_permission(void **state)
{
	int status;
	struct program program;
	if (geteuid()) {
		print_message("skipped: needs root, to have a process of somebody else\n");
		skip();
	}
	assert_true(start(&program, pie_path, NULL));
	pid_t child = fork();
	if (!child) {
		struct fay_target *target;
		if (setgid(65534) || setuid(65534))
			_exit(9);
		_exit(fay_target_open_pid(program.pid, &target, &failure) == FAY_E_REFUSED &&
				      strstr(failure.message, "CAP_SYS_PTRACE")
			      ? 0
			      : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	stop(&program);
}

static void check_names(const char *path, const char *expected)
{
	struct fay_module module = { 0 };
	char names[1024] = "";
	assert_true(fay_module_add_names_of(&module, path));
	for (size_t i = 0; i < module.name_count; i++) {
		strcat(names, i ? " " : "");
		strcat(names, module.names[i]);
	}
	assert_string_equal(names, expected);
	fay_module_deinit(&module);
}

static void test_module_names(void **state)
{
	check_names("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc libc.so libc.so.6");
	check_names("/usr/bin/redis-server", "redis-server");
	check_names("/x/libfoo-2.31.so.1", "libfoo-2.31 libfoo-2.31.so libfoo-2.31.so.1 libfoo");
	check_names("libstdc++.so.6.0.30", "libstdc++ libstdc++.so libstdc++.so.6.0.30");
	check_names("/usr/bin/python3.11", "python3.11");
	check_names("/l/_ssl.cpython-311-x86_64-linux-gnu.so",
		    "_ssl.cpython-311-x86_64-linux-gnu _ssl.cpython-311-x86_64-linux-gnu.so _ssl");
	check_names("/l/plpgsql.so", "plpgsql plpgsql.so");
	check_names("/l/.so", ".so");
	check_names("/l/my.source", "my.source");
	check_names("ld-linux-x86-64.so.2",
		    "ld-linux-x86-64 ld-linux-x86-64.so ld-linux-x86-64.so.2");
}

/* --- damaged files
 * -------------------------------------------------------------------------------------------------
 * */

static uint64_t random_next(uint64_t *seed)
{
	return xorshift(seed) * 0x2545f4914f6cdd1du;
}

/* 1 if it opened, 0 if it was refused with a message. */
static unsigned try_bytes(const uint8_t *bytes, size_t size)
{
	struct fay_target *target;
	struct fay_function_list list;
	char path[64];
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	failure.message[0] = 0;
	int code = fay_target_open_file(path, &target, &failure);
	if (code) {
		assert_true(failure.message[0]);
	} else {
		if (!fay_target_find(target, "*", &list, &failure)) {
			for (size_t i = 0; i < list.count; i++)
				assert_true(list.items[i].name[0]);
			fay_function_list_deinit(&list);
		}
		if (fay_target_find(target, "no_such_name", &list, &failure))
			fay_suggest(target, &failure);
		fay_target_close(target);
	}
	close(fd);
	return !code;
}

static void test_damaged(void **state)
{
	static uint8_t original[1 << 20], damaged[1 << 20];
	uint64_t seed = 7;
	unsigned opened = 0, rounds = 0;
	FILE *file = fopen(pie_path, "rb");
	assert_non_null(file);
	size_t size = fread(original, 1, sizeof(original), file);
	fclose(file);
	for (size_t length = 0; length < size; length += length < 4096 ? 61 : 997, rounds++)
		opened += try_bytes(original, length);
	assert_in_range(opened, 0, rounds - 1);
	const uint64_t *section_offset = (const uint64_t *)(original + 40);
	for (unsigned round = 0; round < 4000; round++) {
		memcpy(damaged, original, size);
		for (unsigned i = 0; i <= round % 5; i++) {
			/* The ELF header, the program headers, the section headers, anywhere. */
			size_t start = round % 4 == 2 ? *section_offset : 0;
			size_t span = round % 4 == 0 ? 64 : round % 4 == 1 ? 1024 : size - start;
			static const uint64_t values[] = { 0,          1,          UINT32_MAX,
							   UINT64_MAX, 1ull << 63, 4096 };
			uint64_t value = random_next(&seed) % 2 ? values[random_next(&seed) % 6]
								: random_next(&seed);
			size_t at = start + random_next(&seed) % span;
			memcpy(damaged + at, &value,
			       at + 8 <= size ? 1 + random_next(&seed) % 8 : 1);
		}
		opened += try_bytes(damaged, size);
		rounds++;
	}
	/* Not everything is refused, or nothing was tested. */
	assert_in_range(opened, rounds / 10, rounds - 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live),
		cmocka_unit_test(test_deleted_and_replaced),
		cmocka_unit_test(test_mount_namespace),
		cmocka_unit_test(test_link_name),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_same_name_elsewhere),
		cmocka_unit_test(test_no_process),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_module_names),
		cmocka_unit_test(test_damaged),
	};
	if (argc != 4) {
		fprintf(stderr, "usage: test_symbols PIE NON-PIE LIBRARY\n");
		return 2;
	}
	pie_path = argv[1];
	nopie_path = argv[2];
	library_path = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
