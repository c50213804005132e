/* SPDX-License-Identifier: MIT */
/*
 * What libfay_extension rests on, with the examples that `built` left in the directory that is
 * named: certificates that lie about sizes, texts and interfaces that are none, changed interfaces
 * and code. By hand more: test_interface DIRECTORY ROUNDS.
 */
#include "extensions.h"
#include "verifier/host/host.h"
#include "verifier/prover/certify/certify.h"

static unsigned rounds = 150; /* of changed code */

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
	assert_int_equal(fay_read_extension(image, size, interface, &s).rule, FAY_RULE_NONE);
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
	static const int64_t most[] = { 1, JOIN_RANGE, SIZE, 0, 65535 };
	static const int64_t narrow[] = { 1, JOIN_RANGE, SIZE, 200, 0 };
	static const int64_t other_region[] = { 1, JOIN_RANGE, SIZE + 1, 0, 65536 };
	static const int64_t far_region[] = { 1, JOIN_RANGE, LOCATION_COUNTS - 1, 0, 65536 };
	static const int64_t is_size[] = { 1, JOIN_FORM, RSI, 64, 0, 1, JOIN_MOST, 2 };
	static const int64_t is_more[] = { 1, JOIN_FORM, RSI, 64, 2, 1, JOIN_MOST, 2 };
	static const int64_t is_twice[] = { 1, JOIN_FORM, RSI, 64, 0, 1, JOIN_MOST, 4 };
	static const int64_t is_other[] = { 1, JOIN_FORM, RSI, 64, 0, 1, JOIN_MOST + 1, 2 };
	static const int64_t is_new[] = { 1, JOIN_FORM, RSI, 64, 0, 1, 0, 2 };
	static const int64_t number[] = { 1, JOIN_NUMBER, RSI, 64, 200, 65436 };
	size_t size, text_size;
	char message[256], *text = (char *)read_file("packets.host", &text_size);
	uint8_t *image = read_file("udp_port.fay", &size);
	struct fay_interface interface;
	struct check_subject s;

	assert_true(fay_host_compile(text, text_size, &interface, NULL, message, sizeof(message)));
	assert_int_equal(fay_read_extension(image, size, &interface, &s).rule, FAY_RULE_NONE);
	memcpy(image + (s.text.bytes - image) + (check_probe(&s, 0).code - s.text.start), liar,
	       sizeof(liar));
	assert_int_equal(check_probe(&s, 0).code, s.text.start);
#define TOLD(list) told(&interface, image, size, list, sizeof(list) / sizeof((list)[0]))
	assert_int_equal(TOLD(nothing), FAY_RULE_MEM_BOUNDS);
	assert_int_equal(TOLD(true_range), FAY_RULE_MEM_BOUNDS);
	assert_int_equal(TOLD(least), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(least_by_register), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(most), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(narrow), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(other_region), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(far_region), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(number), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(is_size), FAY_RULE_MEM_BOUNDS);
	assert_int_equal(TOLD(is_more), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(is_twice), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(is_other), FAY_RULE_CRT_JOIN);
	assert_int_equal(TOLD(is_new), FAY_RULE_CRT_JOIN);
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
		{ "limit stack 4294967296", "1:13: the number is out of range" },
		{ "speculation free", "1:13: confined is wanted" },
		{ "speculation confined twice", "1:22: something follows" },
		{ "region a fixed 8 aligned 8 read\nends a", "2:1: what a helper ends belongs" },
		{ "helper h cost 1\nends a", "2:6: no region of this name was declared" },
		{ "region a local 8 aligned 8 read\nhelper h cost 1\nends a",
		  "3:6: local state ends with its instance only" },
		{ "region a fixed 8 aligned 8 read\nhelper h cost 1\nends a a",
		  "3:8: something follows" },
		{ "region a fixed 8 aligned 8 read\nhelper h cost 1\nends a\nresult 0 1\n"
		  "argument number 0 1",
		  "5:1: an argument belongs behind its helper" },
		{ "regions", "1:1: no declaration begins so" },
	};
	struct fay_interface interface;
	char message[256];

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		bool ok = fay_host_compile(all[i].text, strlen(all[i].text), &interface, NULL,
					   message, sizeof(message));

		if (ok || !strstr(message, all[i].message))
			fail_msg("%s: %s, not %s", all[i].text, ok ? "accepted" : message,
				 all[i].message);
		assert_false(fay_read_interface(&interface));
	}
	assert_false(fay_host_compile("a\0b", 3, &interface, NULL, message, sizeof(message)));
	assert_true(fay_host_compile("# nothing", 9, &interface, NULL, message, sizeof(message)));
}

/* Makes an image of this interface, whatever its hash was, with a certificate; NULL: none. */
static uint8_t *certified(const struct fay_interface *interface, const uint8_t *image, size_t size,
			  size_t *certified_size)
{
	struct fay_bytes certificate = { 0 }, out = { 0 };
	uint8_t *copy = malloc(size);
	struct check_refusal why;
	struct fay_policy policy;
	struct check_subject s;
	char facts[1024];
	bool ok;

	assert_non_null(copy);
	memcpy(copy, image, size);
	if (fay_read_extension(copy, size, interface, &s).rule != FAY_RULE_NONE) {
		free(copy);
		return NULL;
	}
	fay_sha256((const uint8_t *)interface, sizeof(*interface), copy + (s.hash.bytes - copy));
	fay_host_policy(interface, &policy);
	ok = fay_certify_extension(interface, copy, size, &policy, &certificate, &why, facts,
				   sizeof(facts)) &&
	     fay_certificate_attach(copy, size, &certificate, &out);
	free(certificate.at);
	free(copy);
	*certified_size = out.size;
	if (!ok)
		free(out.at);
	return ok ? out.at : NULL;
}

/* An interface that confines speculation is not checked by a policy that does not. */
static void confined(void **state)
{
	size_t text_size, size;
	char message[256], *text = (char *)read_file("packets.host", &text_size);
	uint8_t *image = read_file("udp_port.fay", &size);
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	void *memory = malloc(check_room(size));
	struct check_result result = { 0 };
	struct fay_interface interface;
	struct fay_policy policy;

	assert_true(facts && memory);
	assert_true(fay_host_compile(text, text_size, &interface, NULL, message, sizeof(message)));
	assert_int_equal(fay_read_extension(image, size, &interface, &result.subject).rule,
			 FAY_RULE_NONE);
	fay_host_policy(&interface, &policy);
	check_parts(image, size, NULL, 0, &policy, memory, check_room(size), facts, &result);
	assert_int_equal(result.refusal.rule, FAY_RULE_NONE);
	interface.confined = 1;
	assert_true(fay_read_interface(&interface));
	check_parts(image, size, NULL, 0, &policy, memory, check_room(size), facts, &result);
	assert_int_equal(result.refusal.rule, FAY_RULE_SPC_BRANCH);
	fay_host_policy(&interface, &policy);
	assert_true(policy.speculation_confined);
	free(memory);
	free(facts);
	free(image);
	free(text);
	interface.confined = 2;
	assert_false(fay_read_interface(&interface));
}

/*
 * Code with some bits changed, certified anew where that can be, keeps to a packet that ends with a
 * page, in front of one that is not accessible, and to local state that does.
 */
static void changed_code(void **state)
{
	static const char *const names[] = { "udp_port", "classes", "adler32" };
	static const char *const files[] = { "udp_port.so", "classes.so", "checksum.so" };
	uint8_t *pages = mmap(NULL, 4 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fay_host *host = open_host();
	size_t text_size, size, made_size;
	char message[256], *text = (char *)read_file("packets.host", &text_size);
	struct fay_interface interface;
	struct check_subject s;
	uint64_t random = 11;
	unsigned ran = 0;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages, 4096, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(pages + 8192, 4096, PROT_READ | PROT_WRITE), 0);
	assert_true(fay_host_compile(text, text_size, &interface, NULL, message, sizeof(message)));
	for (unsigned round = 0; round < rounds; round++) {
		uint8_t *image = read_file(files[round % 3], &size), *made;
		uint8_t *local = pages + 4096 - (round % 3 == 1 ? 32 : 0);
		struct fay_loaded *loaded;

		assert_int_equal(fay_read_extension(image, size, &interface, &s).rule,
				 FAY_RULE_NONE);
		for (unsigned n = 1 + xorshift(&random) % 2; n; n--)
			image[(size_t)(s.text.bytes - image) + xorshift(&random) % s.text.size] ^=
				(uint8_t)(1u << xorshift(&random) % 8);
		made = certified(&interface, image, size, &made_size);
		free(image);
		if (!made || fay_host_load(host, made, made_size, &loaded, NULL)) {
			free(made);
			continue;
		}
		for (unsigned call = 0; call < 200; call++) {
			size_t length = xorshift(&random) % 80;
			uint8_t *data = pages + 12288 - length;

			for (size_t i = 0; i < length; i++)
				data[i] = (uint8_t)xorshift(&random);
			if (length > 23 && call % 2) {
				memcpy(data + 12, "\x08\x00\x45", 3);
				data[23] = 17;
			}
			entry(loaded, names[round % 3])(data, length, local);
		}
		ran++;
		fay_host_unload(loaded);
		free(made);
	}
	assert_in_range(ran, rounds / 100, rounds);
	print_message("%u of %u changed ones ran\n", ran, rounds);
	munmap(pages, 4 * 4096);
	fay_host_close(host);
	free(text);
}

/* Of changed bytes, the checker takes what is one still, and no index of those leads astray. */
static void changed_interfaces(void **state)
{
	size_t text_size, size, made_size;
	char message[256], *text = (char *)read_file("cases.host", &text_size);
	uint8_t *image = read_file("udp_port.fay", &size);
	struct fay_interface honest, changed;
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	void *memory = malloc(check_room(size));
	struct fay_policy policy;
	struct check_result result;
	struct check_subject s;
	unsigned right = 0;
	uint8_t *hash;
	uint64_t random = 3;

	assert_true(facts && memory);
	if (!fay_host_compile(text, text_size, &honest, NULL, message, sizeof(message)))
		fail_msg("cases.host:%s", message);
	assert_true(fay_read_interface(&honest));
	assert_false(fay_read_interface(&check_probe_interface)); /* it has states */
	assert_int_equal(fay_read_extension(image, size, &honest, &s).rule, FAY_RULE_NONE);
	hash = image + (s.hash.bytes - image);
	for (unsigned round = 0; round < 200000; round++) {
		uint8_t *bytes = (uint8_t *)&changed;

		changed = honest;
		for (unsigned n = 1 + xorshift(&random) % 3; n; n--) {
			size_t at = xorshift(&random) % (round % 2 ? 900 : sizeof(changed));

			bytes[at] = (uint8_t)(round % 3 ? bytes[at] ^ 1u << xorshift(&random) % 8
							: xorshift(&random));
		}
		if (fay_read_interface(&changed) && right++ < rounds)
			free(certified(&changed, image, size, &made_size));
		if (round % 64)
			continue;
		if (!fay_read_interface(&changed)) /* else it is of another host */
			fay_sha256((const uint8_t *)&changed, sizeof(changed), hash);
		fay_host_policy(&changed, &policy);
		check_extension(&changed, image, size, NULL, 0, &policy, memory, check_room(size),
				facts, &result);
		assert_int_equal(result.refusal.rule, FAY_RULE_IMG_TABLE);
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
		cmocka_unit_test(lies),         cmocka_unit_test(texts),
		cmocka_unit_test(confined),     cmocka_unit_test(changed_interfaces),
		cmocka_unit_test(changed_code),
	};

	if (argc != 2 && argc != 3)
		return 2;
	if (argc == 3)
		rounds = (unsigned)atoi(argv[2]);
	directory = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
