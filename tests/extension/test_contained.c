/* SPDX-License-Identifier: MIT */
/*
 * Hosts that break what they promise, as far as that can be borne: regions that overlap, two
 * threads in one instance, calls from within calls. An extension then computes something else, and
 * touches nothing that is not its own: pages around its memory can't be accessed.
 */
#include <pthread.h>

#include "extensions.h"

#define CALLS 20000u
#define PAGE 4096u
#define DEEP 50u

typedef uint64_t again_function(const uint8_t *text, uint64_t size, uint8_t *copy, uint64_t room,
				uint64_t *state);

static again_function *again;
static const struct fay_loaded *loaded_again;
static unsigned deep; /* how often the helper still calls the extension */

static uint64_t nested(uint64_t number)
{
	uint8_t text[16], copy[16];
	uint64_t *state;

	if (!deep)
		return number;
	deep--;
	memset(text, (int)number, sizeof(text));
	state = fay_loaded_instance(loaded_again);
	assert_int_equal(again(text, sizeof(text), copy, 0, state), 16);
	assert_int_equal(state[0], 16);
	fay_instance_release(state);
	return 4096;
}

static struct fay_loaded *load_again(void)
{
	struct fay_error error = { 0 };
	struct fay_loaded *loaded;
	struct fay_host *host;
	size_t size;
	void *file = read_file("again.host", &size);

	assert_int_equal(fay_host_open(file, size, &host, &error), FAY_OK);
	free(file);
	assert_int_equal(fay_host_bind(host, "nested", (fay_host_function)nested, &error), FAY_OK);
	file = read_file("again.fay", &size);
	if (fay_host_load(host, file, size, &loaded, &error))
		fail_msg("%s", error.message);
	free(file);
	fay_host_close(host);
	again = (again_function *)fay_loaded_entry(loaded, "again");
	assert_non_null(again);
	return loaded;
}

/* A page between two that cannot be accessed. */
static uint8_t *guarded(void)
{
	uint8_t *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	return pages + PAGE;
}

static void overlapping(void **state)
{
	struct fay_loaded *loaded = load_again();
	uint8_t *page = guarded();
	uint64_t random = 3, *own = (uint64_t *)page;

	for (unsigned round = 0; round < CALLS; round++) {
		size_t size = xorshift(&random) % 200, room = xorshift(&random) % 200;
		uint8_t *text = page + PAGE - size, *copy = page + PAGE - room;

		/* the three of them at either end, over each other */
		own = (uint64_t *)(xorshift(&random) % 2 ? page : page + PAGE - 64);
		if (xorshift(&random) % 2)
			text = page;
		if (xorshift(&random) % 2)
			copy = page;
		for (unsigned i = 0; i < 64; i++)
			((uint8_t *)own)[i] = (uint8_t)xorshift(&random);
		again(text, size, copy, room, own);
	}
	munmap(page - PAGE, 3 * PAGE);
	fay_host_unload(loaded);
}

static void from_within(void **state)
{
	struct fay_loaded *loaded = load_again();
	uint64_t *own = fay_loaded_instance(loaded);
	uint8_t text[32] = "once more", copy[32];

	loaded_again = loaded;
	deep = DEEP;
	assert_int_equal(again(text, sizeof(text), copy, sizeof(copy), own), 32);
	assert_int_equal(deep, 0);
	assert_memory_equal(text, copy, sizeof(text));
	assert_int_equal(own[0], 32);
	assert_int_equal(own[1], 0);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(own[2 + i], 1);
	fay_instance_release(own);
	fay_host_unload(loaded);
}

struct shared {
	uint8_t *text;
	uint64_t *own;
};

static void *call_often(void *of)
{
	struct shared *s = of;

	for (unsigned i = 0; i < CALLS; i++)
		again(s->text, 64, s->text, 64, s->own);
	return NULL;
}

static void two_in_one_instance(void **state)
{
	struct fay_loaded *loaded = load_again();
	uint8_t *page = guarded(), *text = guarded();
	struct shared s = { text + PAGE - 64, (uint64_t *)(page + PAGE - 64) };
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &s), 0);
	/* and this one writes what they count by */
	for (unsigned i = 0; i < CALLS; i++)
		((volatile uint64_t *)s.own)[1] = UINT64_MAX - i;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_in_range(s.own[0], 64 * CALLS, 2 * 64 * CALLS);
	munmap(page - PAGE, 3 * PAGE);
	munmap(text - PAGE, 3 * PAGE);
	fay_host_unload(loaded);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlapping),
		cmocka_unit_test(from_within),
		cmocka_unit_test(two_in_one_instance),
	};

	directory = argc == 2 ? argv[1] : ".";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
