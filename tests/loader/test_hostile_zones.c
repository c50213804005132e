/* SPDX-License-Identifier: MIT */
/* A process that nobody traces and that pretends to carry sessions, each with as many patches as a
 * zone may have: what is read of it is bounded. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/loader.h"
#include "loader/zones/zone.h"

#define PRETENDED 4u
#define PAGE 4096u

/* A page of "code" and behind it a header; the patches behind that are pages of zeroes that take no
 * memory. */
static void pretend(int code, uint64_t session, uint32_t patches)
{
	const size_t data = sizeof(struct fay_zone_header) +
			    (size_t)patches * sizeof(struct fay_zone_patch) + PAGE;
	uint8_t *at = mmap(NULL, PAGE + data, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED ||
	    mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, code, 0) != at)
		_exit(1);
	*(struct fay_zone_header *)(at + PAGE) =
		(struct fay_zone_header){ .magic = FAY_ZONE_MAGIC,
					  .version = FAY_ZONE_VERSION,
					  .patch_count = patches,
					  .session = session,
					  .code = (uint64_t)at,
					  .code_size = PAGE,
					  .data = (uint64_t)at + PAGE,
					  .data_size = data };
}

/* As many mappings as a process can have, or nearly so. */
static void make_mappings(unsigned count)
{
	uint8_t *at = mmap(NULL, (size_t)count * PAGE, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (unsigned i = 0; at != MAP_FAILED && i < count; i += 2)
		if (mprotect(at + (size_t)i * PAGE, PAGE, PROT_NONE))
			break; /* no more are allowed here */
}

/* What the doctor sees of a process with so many pretended sessions. */
static size_t sessions_seen(unsigned pretended, uint32_t patches, unsigned others)
{
	struct fay_installed_sessions list;
	struct fay_error error;
	int ends[2];
	char byte = 0;
	size_t count;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		int code = memfd_create(FAY_ZONE_MEMFD, 0);

		if (code < 0 || ftruncate(code, PAGE))
			_exit(1);
		for (uint64_t i = 1; i <= pretended; i++)
			pretend(code, i, patches);
		make_mappings(others);
		if (write(ends[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	int result = fay_installed_sessions(child, &list, &error);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(result, FAY_OK);
	count = list.count;
	fay_installed_sessions_deinit(&list);
	return count;
}

static void test_bounded(void **state)
{
	(void)state;
	assert_int_equal(sessions_seen(PRETENDED, FAY_ZONE_MAX_PATCHES, 0),
			 FAY_ZONES_MAX_PATCHES / FAY_ZONE_MAX_PATCHES);
}

static void test_many(void **state)
{
	(void)state;
	assert_int_equal(sessions_seen(5 * FAY_ZONES_MAX, 1, 50000), FAY_ZONES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_bounded),
					    cmocka_unit_test(test_many) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
