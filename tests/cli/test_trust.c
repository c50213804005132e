/* SPDX-License-Identifier: MIT */
/* Whose signatures count, where who asks is one of them, as on an agent; and that no change to a
 * log goes unnoticed, whatever byte it is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trust/trust.h"

#define PEOPLE 3u
#define ENTRIES 12u
#define WRITERS 4u
#define EACH 10u

static char folder[] = "/dev/shm/fay-trust-XXXXXX", path[64], head_path[64], copy[64],
	    copy_head[64];

/* ---- signatures ---- */

static struct fay_keys keys[PEOPLE];
static struct fay_trust_signer signers[PEOPLE];
static struct fay_trust_store store = { .asked = true, .signers = signers };
static const char image[] = "an image", other[] = "another one";
static const char *beyond; /* what the scope does not include */

static const char *outside(const void *accepted, const struct fay_policy *scope)
{
	return scope->pattern_count ? beyond : NULL;
}

static struct fay_trust_signatures sign(const char *what, size_t size, unsigned who)
{
	static const uint8_t standard[FAY_TRUST_DIGEST];
	struct fay_trust_signatures signatures;
	struct fay_error error;
	char name[80];
	snprintf(name, sizeof(name), "%s/image", folder);
	for (unsigned i = 0; i < PEOPLE; i++)
		if (who >> i & 1)
			assert_int_equal(
				fay_trust_sign(name, what, size, standard, &keys[i], &error), 0);
	assert_int_equal(fay_trust_signatures_read(name, &signatures, &error), 0);
	strcat(name, ".sig");
	unlink(name);
	return signatures;
}

/* What comes of it where so many are required; `asker` PEOPLE: nobody. */
static int judge(unsigned required, const struct fay_trust_signatures *signatures, unsigned asker,
		 char by[FAY_TRUST_NAMES], struct fay_error *error)
{
	static const uint8_t standard[FAY_TRUST_DIGEST];
	struct fay_trust_case asked = { .name = "it",
					.policy = standard,
					.image = image,
					.size = sizeof(image),
					.signatures = signatures,
					.asker = asker < PEOPLE ? keys[asker].public : NULL,
					.outside = outside };
	store.required = required;
	return fay_trust_judge(&store, &asked, by, error);
}

static void expect(unsigned required, const struct fay_trust_signatures *signatures, unsigned asker,
		   const char *why)
{
	struct fay_error error = { 0 };
	char by[FAY_TRUST_NAMES];
	int result = judge(required, signatures, asker, by, &error);
	if (why && !strstr(error.message, why))
		fail_msg("no '%s' in: %s", why, error.message);
	assert_int_equal(result, why ? FAY_E_REFUSED : FAY_OK);
}

static void who_counts(void **state)
{
	struct fay_trust_signatures none = { 0 }, ann = sign(image, sizeof(image), 1),
				    both = sign(image, sizeof(image), 3),
				    forged = sign(other, sizeof(other), 1);
	for (unsigned i = 0; i < PEOPLE; i++) {
		snprintf(signers[i].name, sizeof(signers[i].name), "signer%u", i);
		memcpy(signers[i].key, keys[i].public, FAY_KEY_BYTES);
	}
	store.count = 2; /* the third is unknown */
	expect(0, &none, PEOPLE, NULL);
	expect(1, &none, PEOPLE, "0 of 1 signatures");
	expect(1, &ann, PEOPLE, NULL);
	expect(2, &ann, PEOPLE, "1 of 2 signatures");
	expect(2, &both, PEOPLE, NULL);
	expect(1, &forged, PEOPLE, "signer0: the signature is not of this image, or forged");
	expect(1, &none, 1, NULL);
	expect(1, &none, 2, "who asks is an unknown signer");
	expect(2, &ann, 1, NULL);
	expect(2, &ann, 0, "1 of 2 signatures"); /* one signer, once */
	expect(3, &both, 1, "2 of 3 signatures");
	expect(1, &forged, 1, "or forged"); /* enough count, and somebody tampered with it */
	signers[1].revoked = true;
	expect(1, &none, 1, "signer1: the key is revoked");
	expect(2, &both, PEOPLE, "signer1: the key is revoked");
	signers[1].revoked = false;
	strcpy(signers[1].until, "2020-01-01");
	expect(1, &none, 1, "signer1: trusted no longer than 2020-01-01");
	*signers[1].until = 0;
	signers[1].scope.pattern_count = 1;
	beyond = "libc!write";
	expect(1, &none, 1, "signer1: not trusted to trace libc!write");
	signers[1].scope.pattern_count = 0;
	both.at[0].policy[0] ^= 1; /* which the signature is of, too */
	expect(2, &both, PEOPLE, "or forged");
}

static void signatures_in_messages(void **state)
{
	struct fay_trust_signatures both = sign(image, sizeof(image), 3), taken, swapped = both;
	struct fay_error error;
	assert_int_equal(fay_trust_signatures_take((const uint8_t *)both.at, 2, &taken, &error), 0);
	assert_memory_equal(&taken.at, &both.at, 2 * sizeof(both.at[0]));
	assert_int_equal(fay_trust_signatures_take((const uint8_t *)both.at, 0, &taken, &error), 0);
	assert_int_equal(taken.count, 0);
	swapped.at[0] = both.at[1];
	swapped.at[1] = both.at[0];
	assert_int_equal(fay_trust_signatures_take((const uint8_t *)swapped.at, 2, &taken, &error),
			 FAY_E_REFUSED);
	swapped.at[1] = swapped.at[0];
	assert_int_equal(fay_trust_signatures_take((const uint8_t *)swapped.at, 2, &taken, &error),
			 FAY_E_REFUSED);
}

/* ---- the log ---- */

static void add(const char *text)
{
	struct fay_log_entry entry = { .event = "accepted", .text = text };
	struct fay_error error;
	if (fay_log_add(path, &entry, &error))
		fail_msg("%s", error.message);
}

static void put(const char *name, const void *bytes, size_t size)
{
	FILE *file = fopen(name, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static size_t get(const char *name, char *bytes, size_t room)
{
	FILE *file = fopen(name, "re");
	assert_non_null(file);
	size_t size = fread(bytes, 1, room, file);
	fclose(file);
	return size;
}

static int verify(const char *name, uint64_t *number)
{
	struct fay_log_reader reader = { .checks = true };
	struct fay_log_state state = { 0 };
	struct fay_error error;
	int result = fay_log_read(name, &reader, &state, &error);
	*number = state.number;
	return result;
}

static void each_change_is_noticed(void **state)
{
	static char log[16384], changed[16384], head[256];
	uint64_t number;
	for (unsigned i = 0; i < ENTRIES; i++)
		add(i % 2 ? "query \\ of\nsomebody" : "probe \xc3\xa4");
	assert_int_equal(verify(path, &number), FAY_OK);
	assert_int_equal(number, ENTRIES);
	size_t size = get(path, log, sizeof(log)), head_size = get(head_path, head, sizeof(head));
	assert_true(size < sizeof(log));
	put(copy_head, head, head_size);
	for (size_t i = 0; i < size; i++) {
		memcpy(changed, log, size);
		changed[i] ^= 1 << i % 8;
		put(copy, changed, size);
		if (verify(copy, &number) != FAY_E_REFUSED)
			fail_msg("another byte at %zu is not noticed", i);
	}
	for (size_t cut = 0; cut < size; cut++) {
		put(copy, log, cut);
		if (verify(copy, &number) != FAY_E_REFUSED)
			fail_msg("a log of %zu bytes is not noticed", cut);
		put(copy, log + cut + 1, size - cut - 1);
		if (verify(copy, &number) != FAY_E_REFUSED)
			fail_msg("a log without its first %zu bytes is not noticed", cut + 1);
	}
	put(copy, log, size);
	for (size_t i = 0; i < head_size; i++) {
		head[i] ^= 1;
		put(copy_head, head, head_size);
		if (verify(copy, &number) != FAY_E_REFUSED)
			fail_msg("another byte at %zu of FILE.head is not noticed", i);
		head[i] ^= 1;
	}
}

static void writers_take_turns(void **state)
{
	uint64_t before, after;
	assert_int_equal(verify(path, &before), FAY_OK);
	for (unsigned i = 0; i < WRITERS; i++) {
		pid_t child = fork();
		assert_true(child >= 0);
		if (child)
			continue;
		for (unsigned k = 0; k < EACH; k++) {
			struct fay_log_entry entry = { .event = "install", .text = "process" };
			struct fay_error error;
			if (fay_log_add(path, &entry, &error))
				_exit(1);
		}
		_exit(0);
	}
	for (unsigned i = 0; i < WRITERS; i++) {
		int status;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(verify(path, &after), FAY_OK);
	assert_int_equal(after, before + (uint64_t)WRITERS * EACH);
}

static int set_up(void **state)
{
	struct fay_error error;
	if (fay_keys_init(&error) || !mkdtemp(folder))
		return -1;
	for (unsigned i = 0; i < PEOPLE; i++)
		fay_keys_make(&keys[i]);
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(head_path, sizeof(head_path), "%s/log.head", folder);
	snprintf(copy, sizeof(copy), "%s/copy", folder);
	snprintf(copy_head, sizeof(copy_head), "%s/copy.head", folder);
	return 0;
}

static int tear_down(void **state)
{
	const char *const files[] = { path, head_path, copy, copy_head };
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(files[i]);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(who_counts),
					    cmocka_unit_test(signatures_in_messages),
					    cmocka_unit_test(each_change_is_noticed),
					    cmocka_unit_test(writers_take_turns) };
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
