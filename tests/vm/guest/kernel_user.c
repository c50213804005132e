/* SPDX-License-Identifier: MIT */
/*
 * Policies for users, at the device itself, without what `fay` checks before: as root, with the
 * images /probes/idle.fay (an entry probe), twice.fay (the same twice) and values.fay (a return
 * probe, which reads the value and calls a helper), all at __x64_sys_getpgid. Prints what is not as
 * it must be; exit code 1 if there is any.
 *
 *   kernel_user without    before the module with room for users' code is loaded
 *   kernel_user with       when it is
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatcher/kernel/abi.h"
#include "fay/event.h"
#include "fay/facts.h"

#define GROUP 2000u
#define OTHER_GROUP 3000u
#define GETPGID "__x64_sys_getpgid"

static int failures;

static void check(const char *name, int wanted, int got)
{
	if (wanted == got)
		return;
	printf("FAIL %s: %s instead of %s\n", name, strerror(got), strerror(wanted));
	failures++;
}

/* ---- what policies are made of ---- */

static struct fay_kernel_function functions[3]; /* by address */
static char names[256];
static uint32_t names_size;
static struct fay_policy images;
static struct fay_kernel_policy policy;

/* Three functions by address, with their names. Returns which is getpgid: only its returns are
 * allowed, and it returns a whole register. */
static uint32_t make_functions(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], name[256], type;
	unsigned long long address;
	uint32_t count = 0, getpgid = 0;

	while (file && count < 3 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) != 3 ||
		    (strcmp(name, "vfs_read") && strcmp(name, "vfs_write") &&
		     strcmp(name, GETPGID)))
			continue;
		if (!strcmp(name, GETPGID))
			getpgid = count;
		functions[count] =
			(struct fay_kernel_function){ .address = address,
						      .returns = !strcmp(name, GETPGID) };
		if (count && functions[count - 1].address >= address)
			abort(); /* /proc/kallsyms is by address there */
		strcpy(names + names_size, name);
		names_size += (uint32_t)strlen(name) + 1;
		count++;
	}
	fclose(file);
	return getpgid;
}

/* Everything that there is, at getpgid. */
static void allow_all(void)
{
	images = (struct fay_policy){ .max_instructions = 5000,
				      .max_stack = 1024,
				      .max_local = FAY_IMAGE_MAX_LOCAL,
				      .max_global = FAY_IMAGE_MAX_GLOBAL,
				      .allow_helpers = UINT64_MAX,
				      .allow_kinds = UINT32_MAX,
				      .allow_fields = UINT32_MAX,
				      .pattern_count = 1,
				      .patterns = { "kernel!" GETPGID } };
	policy = (struct fay_kernel_policy){ .functions = (uint64_t)functions,
					     .names = (uint64_t)names,
					     .images = (uint64_t)&images,
					     .max_state = 1u << 20,
					     .images_size = sizeof(images),
					     .function_count = 3,
					     .names_size = names_size,
					     .group = GROUP,
					     .max_points = 2,
					     .max_sessions = 2 };
}

/* errno's value. */
static int set(int root)
{
	return ioctl(root, FAY_KERNEL_POLICY, &policy) ? errno : 0;
}

/* ---- a user ---- */

/* Runs it as a user of this number, and adds its failures. */
static void as(uid_t uid, gid_t gid, void (*run)(void))
{
	pid_t child;
	int status = 1;

	fflush(stdout);
	child = fork();
	if (!child) {
		failures = 0;
		if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
			exit(99);
		run();
		fflush(stdout);
		_exit(failures);
	}
	waitpid(child, &status, 0);
	failures += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int device(void)
{
	return open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
}

static struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX];
static struct fay_kernel_create created;

static int create(int fd, const char *path)
{
	static uint8_t image[65536];
	FILE *file = fopen(path, "r");

	created = (struct fay_kernel_create){ .abi = FAY_KERNEL_ABI,
					      .image = (uint64_t)image,
					      .image_size = (uint32_t)fread(image, 1, sizeof(image),
									    file),
					      .probes = (uint64_t)probes };
	fclose(file);
	return ioctl(fd, FAY_KERNEL_CREATE, &created) ? errno : 0;
}

#define IDLE "/probes/idle.fay"
#define TWICE "/probes/twice.fay"
#define VALUES "/probes/values.fay"

static int attach(int fd, struct fay_kernel_set set_of, uint64_t first, uint64_t second)
{
	struct fay_kernel_point points[3] = { { first, 0 }, { second, 0 }, { 2, 0 } };
	struct fay_kernel_attach given = { (uint64_t)&set_of, (uint64_t)points, 1,
					   set_of.point_count };

	return ioctl(fd, FAY_KERNEL_ATTACH, &given) ? errno : 0;
}

static uint32_t getpgid_index;

/* ---- what is refused ---- */

static int root_device;
static enum fay_rule wanted_rule;
static const char *wanted_of;

static void refused_by_rule(void)
{
	int fd = device();

	check(wanted_of, EKEYREJECTED, create(fd, wanted_of));
	if (created.rule != wanted_rule) {
		printf("FAIL %s: rule %u instead of %u\n", wanted_of, created.rule, wanted_rule);
		failures++;
	}
	close(fd);
}

/* With this policy the image is refused by that rule. */
static void rule(const char *image, enum fay_rule wanted)
{
	wanted_of = image;
	wanted_rule = wanted;
	check("a policy", 0, set(root_device));
	as(1000, GROUP, refused_by_rule);
	allow_all();
}

static void images_refused(void)
{
	images.max_instructions = 1;
	rule(IDLE, FAY_RULE_POL_INSTRUCTIONS);
	images.max_stack = 8;
	rule(VALUES, FAY_RULE_POL_STACK);
	images.allow_helpers = 3;
	rule(VALUES, FAY_RULE_POL_HELPER);
	images.allow_fields = ~(uint32_t)FAY_FIELD_RETVAL;
	rule(VALUES, FAY_RULE_POL_FIELD);
	images.allow_kinds = 1u << FAY_PROBE_ENTRY;
	rule(VALUES, FAY_RULE_POL_KIND);
	strcpy(images.patterns[0], "kernel!vfs_read");
	rule(IDLE, FAY_RULE_POL_TRACEPOINT);
}

static void create_only(void)
{
	int fd = device();

	failures = create(fd, wanted_of);
	close(fd);
}

/* Whether a user makes a session of it under this limit. */
static bool accepted(const char *image, uint64_t max_instructions)
{
	int before = failures, code;

	images.max_instructions = max_instructions;
	check("a policy", 0, set(root_device));
	wanted_of = image;
	as(1000, GROUP, create_only);
	code = failures - before;
	failures = before;
	check("a limit of instructions", code ? EKEYREJECTED : 0, code);
	return !code;
}

/* The limit is for all probes of an image together. */
static void instructions_summed(void)
{
	uint64_t needs = 1;

	while (needs < 50 && !accepted(IDLE, needs))
		needs++;
	if (needs < 2 || accepted(TWICE, 2 * needs - 1) || !accepted(TWICE, 2 * needs)) {
		printf("FAIL twice %llu instructions\n", (unsigned long long)needs);
		failures++;
	}
	allow_all();
}

static void not_admitted(void)
{
	int fd = device();

	check("not in the group", EPERM, fd < 0 ? errno : 0);
	close(fd);
}

static void in_a_namespace(void)
{
	if (unshare(CLONE_NEWUSER))
		return check("a user namespace", 0, errno);
	int fd = device();

	check("in a user namespace", EPERM, fd < 0 ? errno : 0);
	close(fd);
}

static void too_much_state(void)
{
	int fd = device();

	check("more state", EFBIG, create(fd, IDLE));
	close(fd);
}

static void only_root_may(void)
{
	uint64_t address = 0xffffffff81000000;
	uint8_t answer;
	struct fay_kernel_check asked = { (uint64_t)&address, (uint64_t)&answer, 1, 0 };
	int fd = device();

	check("CHECK", EPERM, ioctl(fd, FAY_KERNEL_CHECK, &asked) ? errno : 0);
	check("POLICY", EPERM, set(fd));
	close(fd);
}

static void no_address(void)
{
	static const struct fay_kernel_places none;
	struct fay_kernel_function told[3] = { 0 };
	char told_names[256] = "";
	struct fay_kernel_policy asked = { .functions = (uint64_t)told,
					   .names = (uint64_t)told_names,
					   .function_count = 3,
					   .names_size = names_size };
	int fd = device();

	check("ALLOWED", 0, ioctl(fd, FAY_KERNEL_ALLOWED, &asked) ? errno : 0);
	check("names", 0, memcmp(told_names, names, names_size) ? EINVAL : 0);
	check("addresses of functions", 0,
	      told[0].address | told[1].address | told[2].address ? EINVAL : 0);
	check("a session", 0, create(fd, IDLE));
	check("addresses of helpers", 0, memcmp(&created.places, &none, sizeof(none)) ? EINVAL : 0);
	close(fd);
}

static void too_many_sessions(void)
{
	int fds[3] = { device(), device(), device() };

	check("first session", 0, create(fds[0], IDLE));
	check("second session", 0, create(fds[1], IDLE));
	check("third session", EDQUOT, create(fds[2], IDLE));
	close(fds[0]);
	check("third instead of the first", 0, create(fds[2], IDLE));
	close(fds[1]);
	close(fds[2]);
}

/* Two of each user until there are as many as areas; by turns in one process, which is root in
 * between. */
static void all_sessions(void)
{
	int fds[FAY_KERNEL_AREA_COUNT + 1];

	for (unsigned i = 0; i <= FAY_KERNEL_AREA_COUNT; i++) {
		uid_t user = 1001 + i / 2;

		check("a user", 0, setresgid(0, GROUP, 0) | setresuid(user, user, 0));
		fds[i] = device();
		check("sessions of all users", i < FAY_KERNEL_AREA_COUNT ? 0 : EUSERS,
		      create(fds[i], IDLE));
		check("root", 0, setresuid(0, 0, 0) | setresgid(0, 0, 0));
	}
	for (unsigned i = 0; i <= FAY_KERNEL_AREA_COUNT; i++)
		close(fds[i]);
}

static void points_refused(void)
{
	const struct fay_kernel_set one = { .probes = 1, .point_count = 1 };
	struct fay_kernel_set changed = one;
	int fd = device();

	check("a session", 0, create(fd, IDLE));
	check("an index too high", ENOENT, attach(fd, one, 3, 0));
	check("an address", ENOENT, attach(fd, one, 0xffffffff81000000, 0));
	changed.point_count = 2;
	check("an index twice", EINVAL, attach(fd, changed, 1, 1));
	changed.point_count = 3;
	check("more points", E2BIG, attach(fd, changed, 0, 1));
	changed = one;
	changed.trampoline = 4096;
	check("a trampoline", EINVAL, attach(fd, changed, 0, 0));
	changed = one;
	changed.probes = 2;
	check("a probe that is none", EINVAL, attach(fd, changed, 0, 0));
	close(fd);
}

static void returns_refused(void)
{
	struct fay_kernel_set set_of = { .probes = 1, .point_count = 1 };
	int fd = device();

	check("a session with returns", 0, create(fd, VALUES));
	check("another's returns", EINVAL, attach(fd, set_of, getpgid_index ? 0 : 1, 0));
	set_of.stack_words = 1;
	check("words of the stack", EINVAL, attach(fd, set_of, getpgid_index, 0));
	set_of.stack_words = 0;
	set_of.result = 32;
	check("bits of the result", EINVAL, attach(fd, set_of, getpgid_index, 0));
	close(fd);
}

/* One thing is wrong with each of these. */
static void policies_refused(void)
{
	struct fay_kernel_policy given = policy;

	policy.names_size--;
	check("names without an end", EINVAL, set(root_device));
	policy = given;
	policy.function_count = 2;
	check("a name too many", EINVAL, set(root_device));
	policy = given;
	policy.max_sessions = FAY_KERNEL_AREA_COUNT + 1;
	check("sessions without areas", EINVAL, set(root_device));
	policy = given;
	policy.images_size--;
	check("another fay's policy", EPROTO, set(root_device));
	policy = given;
	functions[1].address = functions[0].address;
	check("a function twice", EINVAL, set(root_device));
	functions[1].address = functions[0].address + 1;
	images.pattern_count = 33;
	check("patterns that are not there", EINVAL, set(root_device));
	allow_all();
}

static int attached_as; /* errno's value */

static void attach_valid(void)
{
	int fd = device();

	check("a valid session", 0, create(fd, VALUES));
	check("attached", attached_as,
	      attach(fd, (struct fay_kernel_set){ .probes = 1, .point_count = 1 }, getpgid_index,
		     0));
	close(fd);
}

/* Root's descriptor sets policies for whoever has it and CAP_SYS_ADMIN. */
static void with_roots_device(void)
{
	check("POLICY by root's descriptor", EPERM, set(root_device));
}

/* Opened under a policy that is another one when it attaches: root's side waits for a byte. */
static int turns[2][2];

static void attach_late(void)
{
	int fd = device();
	char byte = 0;

	check("a session before", 0, create(fd, IDLE));
	if (write(turns[0][1], &byte, 1) != 1 || read(turns[1][0], &byte, 1) != 1)
		check("turns", 0, EIO);
	check("attached late", ESTALE,
	      attach(fd, (struct fay_kernel_set){ .probes = 1, .point_count = 1 }, 0, 0));
	close(fd);
}

static void change_meanwhile(void)
{
	char byte = 0;
	pid_t child;
	int status;

	if (pipe(turns[0]) || pipe(turns[1]))
		return check("pipes", 0, errno);
	child = fork();
	if (!child) {
		failures = 0;
		if (read(turns[0][0], &byte, 1) != 1)
			_exit(1);
		check("the policy again", 0, set(root_device));
		_exit(failures + (write(turns[1][1], &byte, 1) != 1));
	}
	as(1000, GROUP, attach_late);
	waitpid(child, &status, 0);
	check("root's side", 0, status);
}

int main(int argc, char **argv)
{
	bool room = argc > 1 && !strcmp(argv[1], "with");
	struct stat before;

	root_device = device();
	getpgid_index = make_functions();
	fstat(root_device, &before);
	fchmod(root_device, 0666); /* fay.ko itself refuses */
	allow_all();
	check("a policy", 0, set(root_device));
	attached_as = room ? 0 : ENOEXEC;
	as(1000, GROUP, attach_valid);
	if (room) {
		images_refused();
		instructions_summed();
		policy.max_state = 4096;
		check("a policy", 0, set(root_device));
		as(1000, GROUP, too_much_state);
		allow_all();
		check("a policy", 0, set(root_device));
		as(1000, OTHER_GROUP, not_admitted);
		as(1000, GROUP, in_a_namespace);
		as(1000, GROUP, only_root_may);
		as(1000, GROUP, with_roots_device);
		as(1000, GROUP, no_address);
		as(1000, GROUP, too_many_sessions);
		all_sessions();
		as(1000, GROUP, points_refused);
		as(1000, GROUP, returns_refused);
		policies_refused();
		change_meanwhile();
	}
	policy = (struct fay_kernel_policy){ 0 };
	check("no policy", 0, set(root_device));
	as(1000, GROUP, not_admitted);
	fchmod(root_device, before.st_mode & 07777);
	return failures != 0;
}
