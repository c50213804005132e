/* SPDX-License-Identifier: MIT */
/*
 * libfay_extension and what it rests on, on the examples as gcc made them (by `built`, in the
 * directory that is named): results, limits, memory that cannot be written, two threads, damaged
 * images; certificates that lie about sizes; texts and interfaces that are none.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "../xorshift.h"
#include "fay/host/host.h"
#include "verifier/host/host.h"
#include "verifier/prover/certify/certify.h"

#define CALLS 500000u /* of each of two threads */

static const char *directory;

static uint8_t *read_file(const char *folder, const char *name, size_t *size)
{
	static uint8_t bytes[1 << 20];
	char path[512];
	uint8_t *copy;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s is not there", path);
	*size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	copy = malloc(*size);
	assert_non_null(copy);
	return memcpy(copy, bytes, *size);
}

static struct fay_host *open_host(void)
{
	struct fay_error error;
	struct fay_host *host;
	size_t size;
	char *text = (char *)read_file(directory, "packets.host", &size);

	if (fay_host_open(text, size, &host, &error))
		fail_msg("%s", error.message);
	free(text);
	return host;
}

static struct fay_loaded *load(const struct fay_host *host, const char *name)
{
	struct fay_loaded *loaded;
	struct fay_error error;
	size_t size;
	uint8_t *image = read_file(directory, name, &size);

	if (fay_host_load(host, image, size, &loaded, &error))
		fail_msg("%s: %s", name, error.message);
	memset(image, 0, size); /* it was copied */
	free(image);
	return loaded;
}

typedef uint64_t packet_function(const uint8_t *data, uint64_t size, void *state);

static packet_function *entry(const struct fay_loaded *loaded, const char *name)
{
	packet_function *f = (packet_function *)fay_loaded_entry(loaded, name);

	assert_non_null(f);
	return f;
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
	uint8_t *image = read_file(directory, "udp_port.fay", &size);
	uint8_t *plain = read_file(directory, "udp_port.so", &plain_size);

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

/* Damaged images are refused, or do what they did: in bytes that mean nothing. */
static void damaged(void **state)
{
	struct fay_host *host = open_host();
	size_t size;
	uint8_t *image = read_file(directory, "udp_port.fay", &size);
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

/* ---- certificates that lie ---- */

/* In the place of udp_port's code: jmp to the next; movzbl 99(%rdi), %eax; ret. */
static const uint8_t liar[] = { 0xeb, 0x00, 0x0f, 0xb6, 0x47, 0x63, 0xc3 };

static void put(struct fay_bytes *to, const int64_t *numbers, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		fay_bytes_number(to, (uint64_t)numbers[i]);
}

static enum fay_rule told(const struct fay_interface *interface, const uint8_t *image, size_t size,
			  const int64_t *list, unsigned count)
{
	/* two nodes: 1 instruction, to the next; 2 instructions, a join */
	static const int64_t first[] = { 2, 4, 0, 4, 2 }, second[] = { 2 << 2 | 1, 4, 0 };
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	void *memory = malloc(check_room(size));
	struct fay_bytes certificate = { 0 };
	struct check_result result;
	struct check_subject s;
	struct fay_policy policy;

	assert_true(facts && memory);
	assert_int_equal(check_parse_extension(image, size, interface, &s).rule, FAY_RULE_NONE);
	fay_certificate_begin(&s, false, &certificate);
	put(&certificate, first, 5);
	put(&certificate, second, 3);
	put(&certificate, list, count);
	fay_host_policy(interface, &policy);
	check_extension(interface, image, size, certificate.at, certificate.size, &policy, memory,
			check_room(size), facts, &result);
	free(certificate.at);
	free(memory);
	free(facts);
	return result.refusal.rule;
}

static void lies(void **state)
{
	enum { SIZE = LOCATION_SIZES, RSI = 6 };
	/* 2n is the signed number n, 2n - 1 is -n */
	static const int64_t nothing[] = { 0 };
	static const int64_t true_range[] = { 1, JOIN_RANGE, SIZE, 0, 65536 };
	static const int64_t least[] = { 1, JOIN_RANGE, SIZE, 200, 65436 };
	static const int64_t least_by_register[] = { 1, JOIN_RANGE, RSI, 200, 65436 };
	static const int64_t narrow[] = { 1, JOIN_RANGE, SIZE, 200, 0 };
	static const int64_t other_region[] = { 1, JOIN_RANGE, SIZE + 1, 0, 65536 };
	static const int64_t far_region[] = { 1, JOIN_RANGE, LOCATION_COUNTS - 1, 0, 65536 };
	static const int64_t number[] = { 1, JOIN_NUMBER, RSI, 64, 200, 65436 };
	size_t size, text_size;
	char message[256], *text = (char *)read_file(directory, "packets.host", &text_size);
	uint8_t *image = read_file(directory, "udp_port.fay", &size);
	struct fay_interface interface;
	struct check_subject s;

	assert_true(fay_host_compile(text, text_size, &interface, message, sizeof(message)));
	assert_int_equal(check_parse_extension(image, size, &interface, &s).rule, FAY_RULE_NONE);
	memcpy(image + (s.text.bytes - image) + (check_probe(&s, 0).code - s.text.start), liar,
	       sizeof(liar));
	assert_int_equal(check_probe(&s, 0).code, s.text.start);
#define TOLD(list) told(&interface, image, size, list, sizeof(list) / sizeof((list)[0]))
	assert_int_equal(TOLD(nothing), FAY_RULE_MEM_BOUNDS);
	assert_int_equal(TOLD(true_range), FAY_RULE_MEM_BOUNDS);
	assert_int_equal(TOLD(least), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(least_by_register), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(narrow), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(other_region), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(far_region), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(number), FAY_RULE_CRT_JOIN);
	free(image);
	free(text);
}

/* ---- texts and interfaces ---- */

static void texts(void **state)
{
	static const struct {
		const char *text, *message;
	} all[] = {
		{ "region", "1:7: a name is missing" },
		{ "\nregion a fixed 8 aligned 8 read\nregion a fixed 8 aligned 8 read\n",
		  "3:8: the name is taken" },
		{ "region a large 8 aligned 8 read", "1:10: fixed, passed or local is wanted" },
		{ "region a fixed 8 aligned 8 read reed", "1:33: read, write, filled or constant" },
		{ "region a fixed -8 aligned 8 read", "1:16: the number is out of range" },
		{ "region a fixed 1073741825 aligned 8 read", "1:16: the number is out of range" },
		{ "region a fixed 99999999999999999999 aligned 8 read",
		  "1:16: the number has more than 64 bits" },
		{ "region a fixed 8 aligned 3 read", "the declarations do not fit" },
		{ "region a fixed 0 aligned 8 read", "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 write", "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 read filled", "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 read write constant", "the declarations do not fit" },
		{ "region a passed 8 aligned 8 read", "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 read\nparameter n size a 0",
		  "the declarations do not fit" },
		{ "region a passed 8 aligned 8 read\nparameter n size a 0\nparameter m size a 0",
		  "the declarations do not fit" },
		{ "region a passed 8 aligned 8 read\nparameter n size a 8",
		  "the declarations do not fit" },
		{ "region a local 8 aligned 8 read\nregion b local 8 aligned 8 read",
		  "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 read\nfield a 4 8 read", "the declarations do not" },
		{ "region a fixed 8 aligned 8 read\nfield a 0 8 read\nfield a 4 4 read",
		  "the declarations do not fit" },
		{ "region a fixed 8 aligned 8 read\nfield a 0 8 read write",
		  "the declarations do not fit" },
		{ "parameter a start b", "1:19: no region of this name was declared" },
		{ "parameter a number 5 4", "1:22: the greatest number is less" },
		{ "parameter a pointer 4", "1:13: what it is, is not known" },
		{ "parameter a number 0 1 2", "1:24: something follows" },
		{ "argument number 0 1", "1:1: an argument belongs behind its helper" },
		{ "helper h cost 1\nargument read by 0", "2:18: the first argument is 1" },
		{ "helper h cost 1\nargument read by 1", "the declarations do not fit" },
		{ "helper h cost 1\nargument read by 2\nargument number -1 4",
		  "the declarations do not fit" },
		{ "helper h cost 1\nargument write 0", "the declarations do not fit" },
		{ "helper h cost 1\nhelper h cost 1", "the declarations do not fit" },
		{ "helper h cost 1048577", "1:15: the number is out of range" },
		{ "helper a-b cost 1", "1:8: a name has letters, digits and _ only" },
		{ "helper h cost 1\nresult 0 1\nargument number 0 1", "3:1: an argument belongs" },
		{ "result 0 1\nresult 0 1", "2:1: there is a result already" },
		{ "limit stack 0", "1:13: a limit is above 0" },
		{ "limit time 1", "1:7: instructions or stack is wanted" },
		{ "regions", "1:1: no declaration begins so" },
	};
	struct fay_interface interface;
	char message[256];

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool ok = fay_host_compile(all[i].text, strlen(all[i].text), &interface, message,
					   sizeof(message));

		if (ok || !strstr(message, all[i].message))
			fail_msg("%s: %s, not %s", all[i].text, ok ? "accepted" : message,
				 all[i].message);
		assert_false(check_interface(&interface));
	}
	assert_false(fay_host_compile("a\0b", 3, &interface, message, sizeof(message)));
	assert_true(fay_host_compile("# nothing", 9, &interface, message, sizeof(message)));
}

/* Of changed bytes, the checker takes what is one still, and no index of those leads astray. */
static void changed_interfaces(void **state)
{
	size_t text_size, size;
	char message[256], *text = (char *)read_file(directory, "cases.host", &text_size);
	uint8_t *image = read_file(directory, "udp_port.fay", &size);
	struct fay_interface honest, changed;
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	void *memory = malloc(check_room(size));
	struct fay_policy policy;
	struct check_result result;
	unsigned right = 0;
	uint64_t random = 3;

	assert_true(facts && memory);
	if (!fay_host_compile(text, text_size, &honest, message, sizeof(message)))
		fail_msg("cases.host:%s", message);
	assert_true(check_interface(&honest));
	assert_true(check_interface(&check_probe_interface) == false); /* it has states */
	for (unsigned round = 0; round < 200000; round++) {
		uint8_t *bytes = (uint8_t *)&changed;

		changed = honest;
		for (unsigned n = 1 + xorshift(&random) % 3; n; n--) {
			size_t at = xorshift(&random) % (round % 2 ? 900 : sizeof(changed));

			bytes[at] = (uint8_t)(round % 3 ? bytes[at] ^ 1u << xorshift(&random) % 8
							: xorshift(&random));
		}
		right += check_interface(&changed);
		if (round % 64)
			continue;
		fay_host_policy(&changed, &policy);
		check_extension(&changed, image, size, NULL, 0, &policy, memory, check_room(size),
				facts, &result);
		assert_int_equal(result.refusal.rule, FAY_RULE_IMG_TABLE); /* of another host */
	}
	assert_in_range(right, 100, 150000);
	free(memory);
	free(facts);
	free(image);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results),
		cmocka_unit_test(nothing_behind),
		cmocka_unit_test(sealed),
		cmocka_unit_test(two_threads),
		cmocka_unit_test(not_loaded),
		cmocka_unit_test(damaged),
		cmocka_unit_test(lies),
		cmocka_unit_test(texts),
		cmocka_unit_test(changed_interfaces),
	};

	if (argc != 2)
		return 2;
	directory = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
