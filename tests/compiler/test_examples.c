/* SPDX-License-Identifier: MIT */
/*
 * Every example probe: compiled twice (the bytes must be the same), verified, mapped and run, and
 * its state compared with what the source says. The inputs include those that the guards are there
 * for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define BIAS (UINT64_C(1) << 63)

static struct fay_buffer image;

static void open_example(const char *name, struct loaded *l)
{
	struct fay_compile_options options = { .size = sizeof(options) };
	struct fay_buffer again;
	struct fay_error error = { 0 };
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.c", FAY_EXAMPLES, name);
	fay_buffer_init(&image);
	fay_buffer_init(&again);
	if (fay_compile_source(path, &options, &image, &error))
		fail_msg("%s: %s", name, error.message);
	assert_int_equal(fay_compile_source(path, &options, &again, &error), 0);
	assert_int_equal(image.size, again.size);
	assert_memory_equal(image.data, again.data, image.size);
	fay_buffer_deinit(&again);
	image_verify(name, &image);
	image_load(&image, l);
}

static void close_example(struct loaded *l)
{
	image_unload(l);
	fay_buffer_deinit(&image);
}

static uint64_t word(struct loaded *l, const char *state, unsigned index)
{
	return ((uint64_t *)image_state(l, state))[index];
}

static void test_count(void **unused)
{
	struct loaded l;

	open_example("count", &l);
	assert_string_equal(image_string(&l.probes[0].pattern), "libc!read");
	assert_int_equal(l.probes[0].kind, FAY_PROBE_ENTRY);
	assert_int_equal(l.slots, 0);
	for (int i = 0; i < 1000; i++)
		image_call(&l, 0);
	assert_int_equal(word(&l, "reads", 0), 1000);
	close_example(&l);
}

static void test_histogram(void **unused)
{
	static const struct {
		int64_t value;
		unsigned bucket;
	} cases[] = { { 0, 0 }, { -1, 0 }, { INT64_MIN, 0 }, { 1, 1 },         { 2, 2 },
		      { 3, 2 }, { 4, 3 },  { 1024, 11 },     { INT64_MAX, 63 } };
	struct loaded l;

	open_example("histogram", &l);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t before = word(&l, "sizes", cases[i].bucket);

		l.event->arg[2] = (uint64_t)cases[i].value;
		image_call(&l, 0);
		assert_int_equal(word(&l, "sizes", cases[i].bucket), before + 1);
	}
	close_example(&l);
}

static void test_linear(void **unused)
{
	static const struct {
		int64_t value;
		unsigned bucket;
	} cases[] = { { -5, 0 },
		      { 0, 1 },
		      { 511, 1 },
		      { 512, 2 },
		      { 512 * 32 - 1, 32 },
		      { 512 * 32, 33 },
		      { INT64_MAX, 33 },
		      { INT64_MIN, 0 } };
	struct loaded l;

	open_example("linear", &l);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t before = word(&l, "sizes", cases[i].bucket);

		l.event->arg[2] = (uint64_t)cases[i].value;
		image_call(&l, 0);
		assert_int_equal(word(&l, "sizes", cases[i].bucket), before + 1);
	}
	assert_int_equal(l.columns[0].param[1], 512);
	close_example(&l);
}

static void test_extremes(void **unused)
{
	static const int64_t values[] = { 7, -3, 1000, 12, INT64_MAX, INT64_MIN };
	struct loaded l;
	uint64_t sum = 0;

	open_example("extremes", &l);
	for (int i = 0; i < 4; i++) {
		l.event->arg[0] = (uint64_t)values[i];
		sum += (uint64_t)values[i];
		image_call(&l, 0);
	}
	assert_int_equal(word(&l, "sizes", 0), 4);
	assert_int_equal(word(&l, "sizes", 1), sum);
	assert_int_equal((int64_t)(~word(&l, "sizes", 2) ^ BIAS), -3);
	assert_int_equal((int64_t)(word(&l, "sizes", 3) ^ BIAS), 1000);
	assert_int_equal(word(&l, "sizes", 4), sum);
	assert_int_equal(word(&l, "sizes", 5), 4);
	for (int i = 4; i < 6; i++) {
		l.event->arg[0] = (uint64_t)values[i];
		image_call(&l, 0);
	}
	assert_int_equal((int64_t)(~word(&l, "sizes", 2) ^ BIAS), INT64_MIN);
	assert_int_equal((int64_t)(word(&l, "sizes", 3) ^ BIAS), INT64_MAX);
	close_example(&l);
}

/* Value of the first value column, over the table and what was flushed, for one first key word. */
static uint64_t total(struct loaded *l, const char *table, uint64_t key)
{
	const struct fay_image_state *s = image_state_info(l, table);
	const uint8_t *rows = l->local + s->offset + sizeof(struct fay_table_header);
	uint64_t sum = 0, used = 0;

	for (uint32_t r = 0; r < s->rows; r++) {
		const uint64_t *row = (const void *)(rows + (size_t)r * s->row_size);

		used += !!row[0];
		if (row[0] && row[1] == key)
			sum += row[l->columns[s->first_column + s->keys].offset / 8];
	}
	assert_int_equal(used, ((const struct fay_table_header *)(l->local + s->offset))->used);
	for (unsigned i = 0; i < helper_log.flushed_rows; i++)
		if (helper_log.rows[i].key == key)
			sum += helper_log.rows[i].value;
	return sum;
}

static void test_by_size(void **unused)
{
	struct loaded l;

	open_example("by_size", &l);
	for (uint64_t i = 0; i < 3000; i++) {
		l.event->arg[2] = i % 300 * 1024 + i % 1024;
		image_call(&l, 0);
	}
	assert_int_equal(helper_log.flushes, 0);
	for (uint64_t k = 0; k < 300; k++)
		assert_int_equal(total(&l, "by_size", k), 10);
	close_example(&l);
}

/* More keys than rows: nothing is lost, whatever is flushed in between. */
static void test_table_overflow(void **unused)
{
	struct loaded l;

	open_example("by_thread", &l);
	for (uint64_t i = 0; i < 6000; i++) {
		l.event->tid = (uint32_t)(i % 3000);
		l.event->arg[2] = i;
		image_call(&l, 0);
	}
	assert_true(helper_log.flushes >= 2);
	for (uint64_t k = 0; k < 3000; k++)
		assert_int_equal(total(&l, "by_thread", k), 2);
	/* No room: the event is dropped whole, the table stays as it is. */
	helper_log.flush_result = 1;
	for (uint64_t i = 0; i < 6000; i++) {
		l.event->tid = (uint32_t)(100000 + i);
		image_call(&l, 0);
	}
	assert_true(((struct fay_table_header *)image_state(&l, "by_thread"))->used <= 896);
	assert_int_equal(total(&l, "by_thread", 2999), 2);
	close_example(&l);
}

static void test_by_name(void **unused)
{
	const struct fay_image_state *s;
	struct loaded l;
	unsigned found = 0;

	open_example("by_name", &l);
	for (unsigned i = 0; i < 600; i++) {
		memset(l.event->comm, 0, sizeof(l.event->comm));
		snprintf(l.event->comm, sizeof(l.event->comm), "worker-%u", i % 20);
		l.event->cpu = i % 3;
		l.event->arg[2] = 100;
		image_call(&l, 0);
	}
	s = image_state_info(&l, "by_name");
	for (uint32_t r = 0; r < s->rows; r++) {
		const uint64_t *row =
			(const void *)(l.local + s->offset + 16 + (size_t)r * s->row_size);

		if (!row[0])
			continue;
		found++;
		assert_memory_equal(&row[1], "worker-", 7);
		assert_true(row[3] < 3);
		assert_int_equal(row[4], 10);
		assert_int_equal(row[5 + 7], 10);
	}
	assert_int_equal(found, 60);
	close_example(&l);
}

static void test_comm_filter(void **unused)
{
	struct loaded l;

	open_example("comm_filter", &l);
	strcpy(l.event->comm, "redis-server");
	image_call(&l, 0);
	strcpy(l.event->comm, "redis-serverX");
	image_call(&l, 0);
	strcpy(l.event->comm, "redis");
	image_call(&l, 0);
	assert_int_equal(word(&l, "theirs", 0), 1);
	assert_int_equal(word(&l, "others", 0), 2);
	close_example(&l);
}

static void test_open_path(void **unused)
{
	static char etc[64] = "/etc/passwd", tmp[64] = "/tmp/x", full[64];
	struct loaded l;

	memset(full, 'a', sizeof(full));
	open_example("open_path", &l);
	l.event->arg[0] = (uintptr_t)etc;
	image_call(&l, 0);
	l.event->arg[0] = (uintptr_t)tmp;
	image_call(&l, 0);
	l.event->arg[0] = (uintptr_t)full;
	image_call(&l, 0);
	l.event->arg[0] = 8;
	image_call(&l, 0);
	assert_int_equal(word(&l, "below_etc", 0), 1);
	assert_int_equal(word(&l, "unreadable", 0), 1);
	assert_int_equal(word(&l, "lengths", 4), 1); /* 11 */
	assert_int_equal(word(&l, "lengths", 3), 1); /* 6 */
	assert_int_equal(word(&l, "lengths", 7), 1); /* 64 */
	close_example(&l);
}

static void test_checksum(void **unused)
{
	struct loaded l;
	uint32_t low = 0, high = 0;

	open_example("checksum", &l);
	for (unsigned i = 0; i < 6; i++) {
		l.event->arg[i] = 0x123456789u * (i + 1);
		low = (low + (uint32_t)(l.event->arg[i] & 0xffff)) % 65535;
		high = (high + low) % 65535;
	}
	for (int i = 0; i < 5; i++)
		image_call(&l, 0);
	assert_int_equal(word(&l, "repeated", 0), 4);
	assert_int_equal(word(&l, "last", 0), (uint64_t)high << 16 | low);
	close_example(&l);
}

static void test_lookup_table(void **unused)
{
	struct loaded l;

	open_example("lookup_table", &l);
	assert_true(l.rodata_size >= 16);
	l.event->arg[1] = 0xfff0f00112345678u;
	image_call(&l, 0);
	assert_int_equal(word(&l, "flags", 0), 1);
	assert_int_equal(word(&l, "flags", 1), __builtin_popcount(0x12345678));
	close_example(&l);
}

static void seek(struct loaded *l, uint64_t offset, uint64_t whence, uint64_t result)
{
	l->event->arg[1] = offset;
	l->event->arg[2] = whence;
	image_call(l, 0);
	l->event->retval = result;
	image_call(l, 1);
}

static void test_handlers(void **unused)
{
	struct loaded l;

	open_example("handlers", &l);
	seek(&l, 0, 0, 0);
	seek(&l, 0, 0, 0);
	seek(&l, 5, 0, 5);
	seek(&l, 40, 1, 45);
	seek(&l, 1000, 1, UINT64_MAX);
	seek(&l, 0, 2, 4711);
	seek(&l, 0, 3, UINT64_MAX);
	seek(&l, 0, UINT64_MAX, 9);
	assert_int_equal(word(&l, "seeks", 0), 2);
	assert_int_equal(word(&l, "seeks", 1), 40);
	assert_int_equal(word(&l, "seeks", 2), 4711 ^ BIAS);
	assert_int_equal(word(&l, "seeks", 3), 2);
	close_example(&l);
}

static void test_index_guard(void **unused)
{
	static const uint64_t weight[10] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89 };
	static const uint64_t hostile[] = {
		10, 11, 1u << 20, UINT64_MAX, UINT64_C(1) << 62, UINT64_C(1) << 63
	};
	uint64_t sum = 0;
	struct loaded l;

	open_example("index_guard", &l);
	for (uint64_t i = 0; i < 10; i++) {
		l.event->arg[2] = i;
		image_call(&l, 0);
		sum += weight[i];
	}
	assert_int_equal(word(&l, "weights", 0), sum);
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		l.event->arg[2] = hostile[i];
		image_call(&l, 0);
		sum += 89;
		assert_int_equal(word(&l, "weights", 0), sum);
	}
	close_example(&l);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void test_sorting(void **unused)
{
	struct loaded l;
	uint64_t v[6], expected[65] = { 0 }, x = 88172645463325252u;

	open_example("sorting", &l);
	for (int round = 0; round < 500; round++) {
		for (int i = 0; i < 6; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			v[i] = l.event->arg[i] = x >> (x & 63);
		}
		image_call(&l, 0);
		qsort(v, 6, sizeof(*v), compare);
		x += 1;
		v[0] = v[2] / 2 + v[3] / 2;
		expected[(int64_t)v[0] <= 0 ? 0 : 64 - __builtin_clzll(v[0])]++;
	}
	assert_memory_equal(image_state(&l, "medians"), expected, sizeof(expected));
	close_example(&l);
}

static void test_hash_sample(void **unused)
{
	uint64_t sampled = 0;
	struct loaded l;

	open_example("hash_sample", &l);
	for (uint64_t n = 0; n < 2000; n++) {
		uint64_t hash = 0xcbf29ce484222325u;

		for (unsigned i = 0; i < 3; i++) {
			l.event->arg[i] = n * (i + 1) * 0x9e3779b97f4a7c15u;
			for (unsigned k = 0; k < 64; k += 8)
				hash = (hash ^ (l.event->arg[i] >> k & 0xff)) * 0x100000001b3u;
		}
		sampled += !(hash >> 60);
		image_call(&l, 0);
	}
	assert_int_equal(word(&l, "all", 0), 2000);
	assert_int_equal(word(&l, "sampled", 0), sampled);
	assert_true(sampled > 0);
	close_example(&l);
}

static void test_latency(void **unused)
{
	struct loaded l;

	open_example("latency", &l);
	assert_int_equal(l.header->probe_count, 2);
	assert_int_equal(l.probes[1].kind, FAY_PROBE_RETURN);
	image_call(&l, 1); /* a return without its entry */
	l.event->time = 1000000;
	image_call(&l, 0);
	l.event->time = 1000700;
	image_call(&l, 1);
	image_call(&l, 1);
	assert_int_equal(word(&l, "nanoseconds", 10), 1);
	assert_int_equal(word(&l, "nanoseconds", 0), 0);
	close_example(&l);
}

static void test_opens(void **unused)
{
	static char path[64] = "/etc/passwd";
	struct loaded l;

	open_example("opens", &l);
	l.event->time = 42;
	l.event->tid = 7;
	l.event->arg[0] = (uintptr_t)path;
	image_call(&l, 0);
	assert_int_equal(helper_log.emits, 1);
	assert_int_equal(((uint64_t *)helper_log.emitted)[0], 42);
	assert_int_equal(((uint64_t *)helper_log.emitted)[1], 7);
	assert_string_equal((char *)helper_log.emitted + 16, path);
	close_example(&l);
}

static void test_shared(void **unused)
{
	struct loaded l;

	open_example("shared", &l);
	assert_int_equal(l.header->local_size, 0);
	l.event->arg[2] = 100;
	l.event->arg[1] = 7;
	image_call(&l, 0);
	assert_int_equal(word(&l, "per_item", 0), 14);
	l.event->arg[1] = 0; /* x / 0 is x */
	image_call(&l, 0);
	assert_int_equal(word(&l, "per_item", 0), 114);
	assert_int_equal(word(&l, "calls", 0), 2);
	close_example(&l);
}

static void test_collatz(void **unused)
{
	struct loaded l;

	open_example("collatz", &l);
	l.event->arg[0] = 27; /* 111 steps */
	image_call(&l, 0);
	assert_int_equal(word(&l, "steps", 7), 1);
	l.event->arg[0] = 837799; /* 524 steps */
	image_call(&l, 0);
	assert_int_equal(word(&l, "steps", 10), 1);
	l.event->arg[0] = 1;
	image_call(&l, 0);
	assert_int_equal(word(&l, "steps", 0), 1);
	l.event->arg[0] = 63728127; /* 949 steps */
	image_call(&l, 0);
	assert_int_equal(word(&l, "steps", 10), 2);
	l.event->arg[0] = 75128138247; /* 1228 steps: out of fuel, nothing recorded */
	image_call(&l, 0);
	assert_int_equal(word(&l, "steps", 11), 0);
	close_example(&l);
}

static void test_recent(void **unused)
{
	struct loaded l;

	open_example("recent", &l);
	for (uint64_t i = 0; i < 40; i++) {
		l.event->arg[1] = i < 20 ? i : i - 5;
		image_call(&l, 0);
	}
	assert_int_equal(word(&l, "calls", 0), 40);
	assert_int_equal(word(&l, "seen_before", 0), 5);
	close_example(&l);
}

static void test_lines(void **unused)
{
	struct fay_compile_options options = { .size = sizeof(options), .debug_lines = 1 };
	struct fay_error error = { 0 };
	struct loaded l;

	fay_buffer_init(&image);
	assert_int_equal(fay_compile_source(FAY_EXAMPLES "/open_path.c", &options, &image, &error),
			 0);
	image_verify("open_path -g", &image);
	image_load(&image, &l);
	assert_true(l.line_count > 5);
	for (size_t i = 0; i < l.line_count; i++) {
		assert_true(l.lines[i].code_offset < l.text_size);
		assert_true(l.lines[i].line >= 1);
		if (i)
			assert_true(l.lines[i].code_offset > l.lines[i - 1].code_offset);
	}
	assert_non_null(strstr(image_string(&l.lines[0].file), "open_path.c"));
	close_example(&l);
}

static void test_words(void **unused)
{
	static const struct {
		char text[64];
		unsigned get, set, user, repeated;
	} steps[] = {
		{ "GET user:1", 1, 0, 1, 0 },     { "SET user:1 x", 1, 1, 2, 0 },
		{ "GET user:1", 2, 1, 2 + 1, 1 }, { "set a", 2, 1, 3, 1 },
		{ "GETuser", 2, 1, 3, 1 },        { "", 2, 1, 3, 1 },
	};
	struct loaded l;
	uint64_t lengths = 0;

	open_example("words", &l);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		l.event->arg[1] = (uintptr_t)steps[i].text;
		image_call(&l, 0);
		assert_int_equal(word(&l, "words", 0), steps[i].get);
		assert_int_equal(word(&l, "words", 1), steps[i].set);
		assert_int_equal(word(&l, "words", 2), steps[i].user);
		assert_int_equal(word(&l, "words", 3), steps[i].repeated);
		lengths = total(&l, "by_length", strlen(steps[i].text));
		assert_true(lengths >= 1);
	}
	assert_int_equal(total(&l, "by_length", 10), 2); /* GET user:1, twice */
	close_example(&l);
}

static char *read_file(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
	fclose(f);
	return text;
}

/* -S: each guard has a comment that says why it is there and for which line. */
static void test_assembly(void **unused)
{
	char path[] = "/tmp/fay-assembly-XXXXXX";
	int fd = mkstemp(path);
	char *sorting[] = { "fay cc", FAY_EXAMPLES "/index_guard.c", "-S", "-o", path, NULL };
	char *collatz[] = { "fay cc", FAY_EXAMPLES "/collatz.c", "-S", "-o", path, NULL };
	char *text;

	close(fd);
	assert_int_equal(fay_cc_main(5, sorting), 0);
	text = read_file(path);
	assert_non_null(strstr(text, "# guard for index_guard.c:"));
	assert_non_null(strstr(text, "/index_guard.c:12\n"));
	assert_null(strstr(text, ".loc"));
	assert_null(strstr(text, ".debug_info"));
	free(text);
	assert_int_equal(fay_cc_main(5, collatz), 0);
	text = read_file(path);
	assert_non_null(strstr(text, "rounds of the loop"));
	free(text);
	unlink(path);
}

/* The bytes depend on the source alone: not on the folder, the time, the process. */
static void test_reproducible(void **unused)
{
	static const char *const names[] = { "latency", "by_thread", "sketches", "sorting" };
	char folder[] = "/tmp/fay-reproducible-XXXXXX", command[2048];

	assert_non_null(mkdtemp(folder));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		for (int lines = 0; lines < 2; lines++) {
			snprintf(command, sizeof(command),
				 "cd %s && mkdir -p one two/deeper && cp " FAY_EXAMPLES
				 "/%s.c one/p.c && sleep 0.01 && cp one/p.c two/deeper/p.c && "
				 "(cd one && " FAY_CC " p.c %s -o a.fay) && (cd two/deeper && "
				 "TZ=Asia/Tokyo LANG=C " FAY_CC " p.c %s -o b.fay) && "
				 "cmp one/a.fay two/deeper/b.fay",
				 folder, names[i], lines ? "-g" : "", lines ? "-g" : "");
			assert_int_equal(system(command), 0);
		}
	}
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),        cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_linear),       cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_by_size),      cmocka_unit_test(test_table_overflow),
		cmocka_unit_test(test_by_name),      cmocka_unit_test(test_comm_filter),
		cmocka_unit_test(test_open_path),    cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_lookup_table), cmocka_unit_test(test_handlers),
		cmocka_unit_test(test_index_guard),  cmocka_unit_test(test_sorting),
		cmocka_unit_test(test_hash_sample),  cmocka_unit_test(test_latency),
		cmocka_unit_test(test_opens),        cmocka_unit_test(test_shared),
		cmocka_unit_test(test_collatz),      cmocka_unit_test(test_recent),
		cmocka_unit_test(test_lines),        cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_reproducible), cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("compiler examples", tests, NULL, NULL);
}
