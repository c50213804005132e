/* SPDX-License-Identifier: MIT */
/*
 * Strings that probes read whole, run in this process by LLVM's JIT: what they compare, and the
 * texts that come beside their rows, against the string functions of the C library. The memory that
 * they read from has pages that are not there. FAY_SEED sets the seed (printed).
 */
#include "running.h"
#include "tests/query/reference/trees.h"

#define PAGE 4096u
#define PAGES 6u /* of which the last is not there, nor what follows */
#define BASE UINT64_C(0x7f0000000000)

static char memory[PAGES * PAGE];
static unsigned reads, bytes_read;
/* If not NULL, called after each read. */
static void (*after_read)(void);

/* As the kernel does: all of it, or nothing. */
static int64_t read_memory(void *to, uint64_t size, uint64_t address)
{
	uint64_t at = address - BASE;
	reads++;
	bytes_read += (unsigned)size;
	assert_true(size <= PAGE);
	if (at >= (PAGES - 1) * PAGE || size > (PAGES - 1) * PAGE - at) {
		memset(to, 0, size);
		return -1;
	}
	memcpy(to, memory + at, size);
	if (after_read)
		after_read();
	return 0;
}

static unsigned random_length(void)
{
	switch (below(5)) {
	case 0: return below(18);
	case 1: return 250 + below(12);
	case 2: return 4088 + below(14);
	case 3: return below(300);
	default: return below(5000);
	}
}

/* A string somewhere, often at the end of what is there; its address. What is expected of it, cut,
 * is in `expected`. */
static char expected[FAY_TEXT_MAX + 1];
static uint64_t place_string(const char *part)
{
	unsigned length = random_length(), room = (PAGES - 1) * PAGE - length - 1;
	char *text = memory + (below(2) ? room : below(room));
	memset(memory, 'q', sizeof(memory));
	for (unsigned i = 0; i < length; i++)
		text[i] = (char)('a' + below(3));
	size_t size = strlen(part);
	for (unsigned times = below(3); times && size <= length; times--)
		memcpy(text + (below(3) ? below(length - (unsigned)size + 1) : length - size), part,
		       size);
	if (size <= length && !below(3))
		memcpy(text, part, size);
	text[length] = 0;
	if (!below(8)) /* nothing ends it */
		text[length] = 'z';
	size_t there = strnlen(text, (size_t)(memory + (PAGES - 1) * PAGE - text));
	if (there > FAY_TEXT_MAX)
		there = FAY_TEXT_MAX;
	memcpy(expected, text, there);
	expected[there] = 0;
	return BASE + (uint64_t)(text - memory);
}

static const char *const parts[] = {
	"",
	"b",
	"abc",
	"aabbcc",
	"aaaabbbb",
	"aaaabbbbc",
	"fourteen bytes",
	"fifteen bytes..",
	"sixteen bytes...",
	"a part of some forty bytes, more or less",
	"just sixty-four bytes, as many as can be looked for in a string."
};

static bool holds(const char *operation, const char *part)
{
	size_t length = strlen(expected), size = strlen(part);
	if (!strcmp(operation, "=="))
		return !strcmp(expected, part);
	if (!strcmp(operation, "!="))
		return strcmp(expected, part) != 0;
	if (!strcmp(operation, "StartsWith"))
		return !strncmp(expected, part, size);
	if (!strcmp(operation, "EndsWith"))
		return size <= length && !strcmp(expected + length - size, part);
	return strstr(expected, part) != NULL;
}

static void compare(const char *operation, const char *part)
{
	struct running r;
	struct fay_event event = { 0 };
	char text[256];
	int64_t count = 0;
	bool method = *operation >= 'A';
	snprintf(text, sizeof(text),
		 "cluster.Function(\"a!b\").Count(x => x.Arg(0).Text%s%s%s\"%s\"%s)",
		 method ? "." : " ", operation, method ? "(" : " ", part, method ? ")" : "");
	start_with_texts(&r, text);
	for (unsigned i = 0; i < 120; i++) {
		event.arg[0] = place_string(part);
		r.probe(&event, r.local, NULL);
		count += holds(operation, part);
		if (word(r.local, 0) != count)
			fail_msg("%s: %s", text, expected);
	}
	stop(&r);
}

static void comparisons(void **state)
{
	static const char *const operations[] = { "==", "!=", "StartsWith", "EndsWith",
						  "Contains" };
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++)
			compare(operations[i], parts[p]);
}

/* --- rows --- */

static struct fay_texts *texts;
static unsigned text_rows;
static uint8_t last_row[64];
static uint32_t text_state;

static void take(uint64_t state, const uint8_t *row)
{
	if (state == text_state) {
		text_rows++;
		fay_texts_take(texts, row);
	} else {
		memcpy(last_row, row, 24);
	}
}

static void start_rows(struct running *r, const char *text)
{
	struct fay_error error;
	start_with_texts(r, text);
	assert_int_equal(fay_texts_create(r->plan->text_key, FAY_TEXTS_LIMIT, &texts, &error), 0);
	text_state = r->plan->text_state;
	on_emit = take;
	text_rows = 0;
}

static void stop_rows(struct running *r)
{
	on_emit = NULL;
	fay_texts_destroy(texts);
	stop(r);
}

static void row_says(const char *what)
{
	struct fay_text_bytes text = fay_text_of(texts, last_row);
	assert_false(text.lost);
	assert_int_equal(text.length, strlen(what));
	assert_memory_equal(text.bytes, what, text.length);
}

/* Each row's string is what the program had, and is cut where it says so. */
static void rows(void **state)
{
	struct running r;
	struct fay_event event = { 0 };
	start_rows(&r, "from e in cluster.Function(\"a!b\") select new { t = e.Arg(0).Text, n = "
		       "e.Arg(0).Text.Length }");
	for (unsigned i = 0; i < 3000; i++) {
		event.arg[0] = place_string("");
		bool goes_on = strlen(expected) == FAY_TEXT_MAX &&
			       memory[event.arg[0] - BASE + FAY_TEXT_MAX] &&
			       event.arg[0] - BASE + FAY_TEXT_MAX < (PAGES - 1) * PAGE;
		r.probe(&event, r.local, NULL);
		row_says(expected);
		assert_int_equal(fay_text_of(texts, last_row).cut, goes_on);
		assert_int_equal(word(last_row, 16), strlen(expected));
	}
	event.arg[0] = 0;
	r.probe(&event, r.local, NULL);
	row_says("");
	stop_rows(&r);
}

/* A text is sent once; one for which there was no room is sent later. */
static void sent_once(void **state)
{
	struct running r;
	struct fay_event event = { .arg = { BASE } };
	start_rows(&r, "from e in cluster.Function(\"a!b\") select new { t = e.Arg(0).Text }");
	strcpy(memory, "a string that has more than fifteen bytes");
	no_room = true;
	for (unsigned i = 0; i < 5; i++)
		r.probe(&event, r.local, NULL);
	assert_true(fay_text_of(texts, last_row).lost);
	assert_int_equal(word(r.local, r.plan->spec.states[r.plan->text_state + 1].offset), 5);
	no_room = false;
	for (unsigned i = 0; i < 5; i++)
		r.probe(&event, r.local, NULL);
	row_says(memory);
	assert_int_equal(text_rows, 1);
	stop_rows(&r);
}

/* A string that is short, or of which nothing more is asked, is read with one call. */
static void reads_little(void **state)
{
	struct running r;
	struct fay_event event = { .arg = { BASE + 100 } };
	start_with_texts(&r, "cluster.Function(\"a!b\").Count(x => x.Arg(0).Text == \"short\" || "
			     "x.Arg(0).Text.StartsWith(\"fifteen bytes..\"))");
	memset(memory, 'x', sizeof(memory));
	reads = bytes_read = 0;
	r.probe(&event, r.local, NULL);
	assert_int_equal(reads, 1);
	assert_int_equal(bytes_read, 16);
	stop(&r);
	start_rows(&r, "from e in cluster.Function(\"a!b\") select new { t = e.Arg(0).Text, "
		       "e.Arg(0).Text.Length }");
	strcpy(memory + 100, "short");
	reads = bytes_read = 0;
	r.probe(&event, r.local, NULL);
	assert_int_equal(reads, 1);
	assert_int_equal(bytes_read, 256);
	row_says("short");
	stop_rows(&r);
}

static void change(void)
{
	for (unsigned i = 0; i < 600; i++)
		memory[i] = (char)('a' + below(26));
	memory[below(600)] = 0;
}

/* What a row says, and its text, are of one copy, however often the string changes. */
static void changing(void **state)
{
	struct running r;
	struct fay_event event = { .arg = { BASE } };
	start_rows(&r, "from e in cluster.Function(\"a!b\") select new { t = e.Arg(0).Text, n = "
		       "e.Arg(0).Text.Length }");
	memset(memory, 'x', sizeof(memory));
	after_read = change;
	for (unsigned i = 0; i < 1000; i++) {
		r.probe(&event, r.local, NULL);
		assert_false(fay_text_of(texts, last_row).lost);
		assert_int_equal(fay_text_of(texts, last_row).length, word(last_row, 16));
	}
	after_read = NULL;
	stop_rows(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comparisons), cmocka_unit_test(rows),
		cmocka_unit_test(sent_once),   cmocka_unit_test(reads_little),
		cmocka_unit_test(changing),
	};
	on_try_read = read_memory;
	return cmocka_run_group_tests(tests, seed_and_prepare_jit, NULL);
}
