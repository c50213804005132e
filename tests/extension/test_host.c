/* SPDX-License-Identifier: MIT */
/*
 * libfay_extension on the examples as gcc made them (by `built`, in the directory that is named):
 * results, limits, memory that cannot be written, two threads, replacement, damaged images.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "extensions.h"

#define CALLS 500000u /* of each of two threads */

static struct fay_loaded *load(const struct fay_host *host, const char *name)
{
	struct fay_loaded *loaded;
	struct fay_error error;
	size_t size;
	uint8_t *image = read_file(name, &size);

	if (fay_host_load(host, image, size, &loaded, &error))
		fail_msg("%s: %s", name, error.message);
	memset(image, 0, size); /* it was copied */
	free(image);
	return loaded;
}

/* ---- calls ---- */

static uint32_t adler_of(const uint8_t *data, size_t size)
{
	uint32_t a = 1, b = 0;

	for (size_t i = 0; i < size; i++) {
		a = (a + data[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void results(void **state)
{
	static const uint8_t frame[] = {
		[12] = 0x81, [16] = 0x08, [18] = 0x45, [27] = 17, [40] = 0x14, 0xe9, [45] = 0
	};
	struct fay_host *host = open_host();
	struct fay_loaded *sums = load(host, "checksum.fay"), *port = load(host, "udp_port.fay");
	uint8_t data[1000];
	uint64_t instructions, stack;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	for (size_t size = 0; size <= sizeof(data); size++)
		assert_int_equal(entry(sums, "adler32")(data, size, NULL), adler_of(data, size));
	assert_int_equal(entry(sums, "fnv1a")((const uint8_t *)"foobar", 6, NULL), 0xbf9cf968);
	for (size_t size = 0; size < sizeof(frame); size++)
		assert_int_equal(entry(port, "udp_port")(frame, size, NULL), 0);
	assert_int_equal(entry(port, "udp_port")(frame, sizeof(frame), NULL), 0x14e9);
	assert_int_equal(fay_loaded_limits(port, "udp_port", &instructions, &stack), FAY_OK);
	assert_in_range(instructions, 20, 100);
	assert_in_range(stack, 8, 64);
	assert_int_equal(fay_loaded_limits(port, "other", &instructions, &stack), FAY_E_USAGE);
	assert_null(fay_loaded_entry(port, "other"));
	fay_host_close(host); /* what was loaded does not need it */
	assert_int_equal(entry(port, "udp_port")(frame, sizeof(frame), NULL), 0x14e9);
	fay_host_unload(sums);
	fay_host_unload(port);
	fay_host_unload(NULL);
}

/* The same by Rust. */
static void results_of_rust(void **state)
{
	struct fay_host *host;
	struct fay_loaded *sums;
	uint8_t data[1000];
	char path[512];

	snprintf(path, sizeof(path), "%s/adler32.fay", directory);
	if (access(path, R_OK)) {
		print_message("skipped: no rustc\n");
		skip();
	}
	host = open_host();
	sums = load(host, "adler32.fay");
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 11);
	for (size_t size = 0; size <= sizeof(data); size++)
		assert_int_equal(entry(sums, "adler32")(data, size, NULL), adler_of(data, size));
	fay_host_unload(sums);
	fay_host_close(host);
}

/* A page that ends where the packet does: what reads behind it would fault. */
static void nothing_behind(void **state)
{
	struct fay_host *host = open_host();
	struct fay_loaded *sums = load(host, "checksum.fay"), *port = load(host, "udp_port.fay");
	uint8_t *pages = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t random = 1;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_READ | PROT_WRITE), 0);
	for (unsigned round = 0; round < 20000; round++) {
		size_t size = xorshift(&random) % 64;
		uint8_t *data = pages + 8192 - size;

		for (size_t i = 0; i < size; i++)
			data[i] = (uint8_t)xorshift(&random);
		if (size > 23 && round % 2)
			memcpy(data + 12, "\x08\x00\x45", 3);
		if (size > 23 && round % 4 == 1)
			data[23] = 17;
		entry(port, "udp_port")(data, size, NULL);
		assert_int_equal(entry(sums, "adler32")(data, size, NULL), adler_of(data, size));
	}
	munmap(pages, 3 * 4096);
	fay_host_unload(sums);
	fay_host_unload(port);
	fay_host_close(host);
}

static void sealed(void **state)
{
	struct fay_host *host = open_host();
	struct fay_loaded *sums = load(host, "checksum.fay");
	uintptr_t code = (uintptr_t)fay_loaded_entry(sums, "adler32");
	void *page = (void *)(code & ~(uintptr_t)4095);

	assert_int_not_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_not_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	fay_host_unload(sums);
	fay_host_close(host);
}

struct caller {
	const struct fay_loaded *loaded;
	uint64_t *counts;
	uint64_t letters;
};

static void *call_often(void *of)
{
	static const char text[] = "Twelve drummers, 11 pipers.";
	struct caller *c = of;

	for (unsigned i = 0; i < CALLS; i++)
		c->letters = entry(c->loaded, "classes")((const uint8_t *)text, sizeof(text) - 1,
							 c->counts);
	return NULL;
}

static void two_threads(void **state)
{
	struct fay_host *host = open_host();
	struct fay_loaded *classes = load(host, "classes.fay");
	struct caller callers[2];
	pthread_t threads[2];

	assert_int_equal(fay_loaded_local_size(classes), 32);
	for (unsigned i = 0; i < 2; i++) {
		callers[i] = (struct caller){ classes, fay_loaded_instance(classes), 0 };
		assert_non_null(callers[i].counts);
		assert_int_equal((uintptr_t)callers[i].counts % 64, 0);
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].counts[0], 2 * CALLS);
		assert_int_equal(callers[i].counts[1], 20 * CALLS);
		assert_int_equal(callers[i].counts[2], 3 * CALLS);
		assert_int_equal(callers[i].counts[3], 2 * CALLS);
		assert_int_equal(callers[i].letters, 20 * CALLS);
		fay_instance_release(callers[i].counts);
	}
	fay_host_unload(classes);
	fay_host_close(host);
}

/* ---- replacing one that runs ---- */

static _Atomic(packet_function *) current;
static atomic_ulong passes, wrong;
static atomic_bool enough;

static void *call_current(void *of)
{
	static const uint8_t data[] = "what is called is replaced meanwhile";
	uint32_t want = adler_of(data, sizeof(data));

	while (!enough) {
		wrong += current(data, sizeof(data), NULL) != want;
		passes++;
	}
	return NULL;
}

static void replaced(void **state)
{
	struct fay_host *host = open_host();
	struct fay_loaded *old = load(host, "checksum.fay");
	pthread_t thread;

	current = entry(old, "adler32");
	assert_int_equal(pthread_create(&thread, NULL, call_current, NULL), 0);
	for (unsigned round = 0; round < 200; round++) {
		struct fay_loaded *fresh = load(host, "checksum.fay");
		unsigned long before;

		current = entry(fresh, "adler32");
		before = passes;
		while (passes < before + 2) /* the call that was under way has returned */
			sched_yield();
		fay_host_unload(old);
		old = fresh;
	}
	enough = true;
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
	fay_host_unload(old);
	fay_host_close(host);
}

/* ---- what is not loaded ---- */

static void refused(const struct fay_host *host, const uint8_t *image, size_t size,
		    const char *rule)
{
	struct fay_error error = { 0 };
	struct fay_loaded *loaded;

	assert_int_equal(fay_host_load(host, image, size, &loaded, &error), FAY_E_REFUSED);
	assert_null(loaded);
	if (rule && strncmp(error.message, rule, strlen(rule)) != 0)
		fail_msg("not %s, but %s", rule, error.message);
}

static void not_loaded(void **state)
{
	static const char other[] = "region packet passed 65535 aligned 1 read constant\n"
				    "parameter packet start packet\nparameter size size packet 0\n";
	struct fay_host *host = open_host(), *another;
	struct fay_error error;
	size_t size, plain_size;
	uint8_t *image = read_file("udp_port.fay", &size);
	uint8_t *plain = read_file("udp_port.so", &plain_size);

	refused(host, (const uint8_t *)"no image", 8, "IMG-ELF");
	refused(host, image, size / 2, NULL);
	refused(host, plain, plain_size, "IMG-TABLE"); /* of no interface yet */
	assert_int_equal(fay_host_open(other, sizeof(other) - 1, &another, &error), FAY_OK);
	refused(another, image, size, "IMG-TABLE");
	assert_int_equal(fay_host_bind(host, "log", (fay_host_function)abort, &error), FAY_E_USAGE);
	fay_host_close(another);
	fay_host_close(host);
	free(image);
	free(plain);
}

/* ---- what a host says of its memory ---- */

#define PAGE 4096u
#define NOT(what, ...) not_provided(__VA_ARGS__, "the " what)

static void not_provided(struct fay_host *host, const char *region, const void *memory, size_t size,
			 const char *message)
{
	struct fay_error error = { 0 };

	assert_int_equal(fay_host_provide(host, region, memory, size, &error), FAY_E_USAGE);
	assert_string_equal(error.message, message);
}

static void provided(void **state)
{
	static const char text[] = "region table fixed 8192 aligned 64 read constant\n"
				   "region out passed 4096 aligned 1 read write\n"
				   "region own local 64 aligned 8 read write\n"
				   "parameter table start table\nparameter out start out\n"
				   "parameter size size out 0\nparameter own start own\n";
	uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fay_error error = { 0 };
	struct fay_loaded *loaded;
	struct fay_host *host;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 3 * PAGE, PAGE), 0);
	assert_int_equal(fay_host_open(text, sizeof(text) - 1, &host, &error), FAY_OK);
	NOT("interface has no region 'tables'", host, "tables", pages, 2 * PAGE);
	NOT("interface has no region ''", host, "", pages, 2 * PAGE);
	NOT("region 'own' is local: instances are its memory", host, "own", pages, 2 * PAGE);
	NOT("region 'table' has more bytes than its memory", host, "table", pages, 2 * PAGE - 1);
	NOT("region 'table' has more bytes than its memory", host, "table", pages, 0);
	NOT("region 'table' begins at a multiple that its memory does not", host, "table",
	    pages + 8, 2 * PAGE);
	NOT("region 'table' is read, and not all of its memory is mapped to be", host, "table",
	    pages + 2 * PAGE, 2 * PAGE);
	NOT("region 'table' is read, and not all of its memory is mapped to be", host, "table",
	    NULL, 2 * PAGE);
	NOT("region 'table' lies below 2^63, and 4 GiB behind a start that is passed, too", host,
	    "table", pages, SIZE_MAX);
	NOT("region 'out' has more bytes than its memory", host, "out", pages, PAGE - 1);
	NOT("region 'out' lies below 2^63, and 4 GiB behind a start that is passed, too", host,
	    "out", (void *)(INT64_MAX - UINT32_MAX + UINT64_C(1)), PAGE);
	NOT("region 'out' is written, and not all of its memory is mapped to be", host, "out",
	    pages + 2 * PAGE, PAGE);
	assert_int_equal(fay_host_provide(host, "table", pages, 2 * PAGE, &error), FAY_OK);
	assert_int_equal(mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	NOT("region 'out' overlaps the memory of another region", host, "out", pages + PAGE, PAGE);
	assert_int_equal(fay_host_provide(host, "out", pages + 2 * PAGE, PAGE, &error), FAY_OK);
	/* what could be mapped or not at a load is looked at then */
	assert_int_equal(fay_host_load(host, "", 0, &loaded, &error), FAY_E_REFUSED);
	munmap(pages + PAGE, PAGE);
	assert_int_equal(fay_host_load(host, "", 0, &loaded, &error), FAY_E_USAGE);
	assert_string_equal(error.message, "the region 'table' is read, and not all of its memory "
					   "is mapped to be");
	fay_host_close(host);
	munmap(pages, 3 * PAGE);
}

/* Of the example's interface, and one that is called there. */
static void provided_and_called(void **state)
{
	static uint8_t packet[65536];
	struct fay_host *host = open_host();
	struct fay_error error = { 0 };
	struct fay_loaded *sums;

	not_provided(host, "packet", packet, sizeof(packet) - 1,
		     "the region 'packet' has more bytes than its memory");
	assert_int_equal(fay_host_provide(host, "packet", packet, sizeof(packet), &error), FAY_OK);
	sums = load(host, "checksum.fay");
	assert_int_equal(entry(sums, "adler32")(packet, sizeof(packet), NULL),
			 adler_of(packet, sizeof(packet)));
	fay_host_unload(sums);
	fay_host_close(host);
}

/* Damaged images are refused, or do what they did: in bytes that mean nothing. */
static void damaged(void **state)
{
	struct fay_host *host = open_host();
	size_t size;
	uint8_t *image = read_file("udp_port.fay", &size);
	uint64_t random = 7;
	unsigned loads = 0;

	for (unsigned round = 0; round < 3000; round++) {
		size_t at = xorshift(&random) % size;
		uint8_t was = image[at];
		struct fay_loaded *loaded;

		image[at] ^= (uint8_t)(1u << xorshift(&random) % 8);
		if (!fay_host_load(host, image, size, &loaded, NULL)) {
			loads++;
			fay_host_unload(loaded);
		}
		image[at] = was;
	}
	assert_in_range(loads, 1, 2900);
	fay_host_close(host);
	free(image);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),        cmocka_unit_test(results_of_rust),
		cmocka_unit_test(nothing_behind), cmocka_unit_test(replaced),
		cmocka_unit_test(sealed),         cmocka_unit_test(two_threads),
		cmocka_unit_test(not_loaded),     cmocka_unit_test(damaged),
		cmocka_unit_test(provided),       cmocka_unit_test(provided_and_called),
	};

	if (argc != 2)
		return 2;
	directory = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
