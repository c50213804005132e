/* SPDX-License-Identifier: MIT */
/*
 * Damages the code of accepted images and runs on the CPU whatever the verifier still accepts.
 *
 *	fuzz_native SECONDS SEED IMAGE...
 *
 * Each IMAGE (the corpus's legal neighbours, compilers' output) first runs as it is. Then, until
 * the time is over: one image, one to three changes (a bit flipped; a byte replaced by a telling
 * number; two neighbouring instructions exchanged; an instruction copied over another; a register
 * or an operation in ModRM or REX changed; a displacement or immediate moved a little),
 * fay_verify(), and if that accepts, four runs in native.c. A broken promise is kept as
 * fuzz_native-SEED.fay and ends the program with status 1.
 *
 * Limits: the shape of the images; what random damage finds. SEED fixes everything but how far the
 * time lets it go.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native.h"
#include "soundness.h"
#include "verifier/image/image.h"
#include "verifier/isa/isa.h"

#define IMAGES_MAX 1024
#define FILE_MAX (1u << 20)

struct subject {
	const char *name;
	uint8_t *file;
	size_t size, code_at, code_size; /* of .text in the file */
};

static struct subject subjects[IMAGES_MAX];
static unsigned subject_count;
static struct soundness_random dice;
static uint64_t steps;

static uint64_t below(uint64_t limit)
{
	return soundness_below(&dice, limit);
}

static void make_policy(struct fay_policy *policy)
{
	fay_policy_default(policy);
	policy->solver_ms = 50;
	policy->total_ms = 2000;
}

/* Verifies, and runs if accepted. *accepted says which; NULL or a broken promise. */
static const char *try_image(const void *file, size_t size, uint64_t seed, bool *accepted)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	const char *wrong = NULL;

	make_policy(&policy);
	fay_verify(file, size, &policy, &verdict);
	*accepted = verdict.outcome == FAY_ACCEPTED;
	if (*accepted)
		wrong = native_check(file, size, &verdict, seed, 4, &steps);
	fay_verdict_deinit(&verdict);
	return wrong;
}

static void read_subject(const char *path)
{
	struct fay_arena *arena = fay_arena_create((size_t)32 << 20);
	struct subject *s = &subjects[subject_count];
	FILE *stream = fopen(path, "rb");
	struct fay_image image;
	const uint8_t *found;

	*s = (struct subject){ .name = path, .file = malloc(FILE_MAX) };
	s->size = stream && s->file ? fread(s->file, 1, FILE_MAX, stream) : 0;
	if (stream)
		fclose(stream);
	if (fay_image_parse(arena, s->file, s->size, &image).rule == FAY_RULE_NONE) {
		found = memmem(s->file, s->size,
			       image.layout.bytes + (image.text.start - image.layout_base),
			       image.text.size);
		if (found) {
			s->code_at = (size_t)(found - s->file);
			s->code_size = image.text.size;
			subject_count++;
		}
	}
	if (!s->code_size)
		free(s->file);
	fay_arena_destroy(arena);
}

/* The starts of the code's instructions, as a linear sweep finds them. */
static unsigned sweep(const uint8_t *code, size_t size, uint32_t *starts, unsigned room)
{
	struct fay_arena *arena = fay_arena_create(1 << 20);
	unsigned count = 0;
	struct fay_insn insn;

	for (size_t at = 0; at < size && count + 1 < room; at += insn.length) {
		if (fay_decode(arena, code + at, size - at, at, &insn).rule != FAY_RULE_NONE)
			break;
		starts[count++] = (uint32_t)at;
		starts[count] = (uint32_t)(at + insn.length);
	}
	fay_arena_destroy(arena);
	return count;
}

static void damage(uint8_t *code, size_t size)
{
	static const uint8_t telling[] = { 0,    1,    7,    8,    0x7f, 0x80, 0xff, 0xf8,
					   0x40, 0x48, 0x66, 0xf0, 0xc3, 0x90, 0x0f, 0xc0 };
	static uint32_t starts[4096];
	unsigned count = sweep(code, size, starts, 4096);
	unsigned which = count > 1 ? (unsigned)below(count - 1) : 0;
	uint32_t at = count ? starts[which] : 0, length = count ? starts[which + 1] - at : 1, next;
	uint8_t copy[32];

	switch (count > 1 ? below(7) : 0) {
	case 0: code[below(size)] ^= (uint8_t)(1u << below(8)); break;
	case 1: code[at + below(length)] = telling[below(sizeof(telling))]; break;
	case 2: /* exchange with the next one */
		next = starts[which + 2] - starts[which + 1];
		memcpy(copy, code + at, length);
		memmove(code + at, code + at + length, next);
		memcpy(code + at + next, copy, length);
		break;
	case 3: /* copy another over it, the rest no-operations */
		next = (uint32_t)below(count - 1);
		if (starts[next + 1] - starts[next] > length)
			break;
		memcpy(copy, code + starts[next], starts[next + 1] - starts[next]);
		memset(code + at, 0x90, length);
		memcpy(code + at, copy, starts[next + 1] - starts[next]);
		break;
	case 4: /* a register or an operation */
		code[at + (length > 2 ? 2 : length - 1)] ^=
			(uint8_t)(below(8) << (below(2) ? 3 : 0));
		break;
	case 5: /* a number's last byte */
		code[at + length - 1] = (uint8_t)(code[at + length - 1] + below(17) - 8);
		break;
	default: /* a 4-byte number's first */
		if (length >= 5)
			code[at + length - 4] = (uint8_t)(code[at + length - 4] + below(17) - 8);
		break;
	}
}

static int fail(const char *name, uint64_t seed, const char *wrong, const void *file, size_t size)
{
	char path[64];
	FILE *stream;

	printf("UNSOUND %s, seed %llu: %s\n", name, (unsigned long long)seed, wrong);
	snprintf(path, sizeof(path), "fuzz_native-%llu.fay", (unsigned long long)seed);
	stream = fopen(path, "wb");
	if (stream) {
		fwrite(file, 1, size, stream);
		fclose(stream);
		printf("     kept as %s\n", path);
	}
	return 1;
}

int main(int argc, char **argv)
{
	static uint8_t file[FILE_MAX];
	unsigned long tried = 0, accepted = 0, whole = 0;
	uint64_t seed;
	time_t end;
	bool ok;

	if (argc < 4 || native_init()) {
		fprintf(stderr, "usage: fuzz_native SECONDS SEED IMAGE...\n");
		return 2;
	}
	seed = strtoull(argv[2], NULL, 0);
	for (int i = 3; i < argc && subject_count < IMAGES_MAX; i++)
		read_subject(argv[i]);
	for (unsigned i = 0; i < subject_count; i++) {
		const char *wrong = try_image(subjects[i].file, subjects[i].size, seed, &ok);

		whole += ok;
		if (wrong)
			return fail(subjects[i].name, seed, wrong, subjects[i].file,
				    subjects[i].size);
	}
	if (!whole) {
		printf("FAIL none of %u images is accepted as it is\n", subject_count);
		return 1;
	}
	end = time(NULL) + strtol(argv[1], NULL, 0);
	for (; time(NULL) < end; tried++, seed++) {
		const struct subject *s;
		const char *wrong;

		dice.state = seed;
		s = &subjects[below(subject_count)];
		memcpy(file, s->file, s->size);
		for (uint64_t changes = 1 + below(3); changes; changes--)
			damage(file + s->code_at, s->code_size);
		wrong = try_image(file, s->size, seed, &ok);
		accepted += ok;
		if (wrong)
			return fail(s->name, seed, wrong, file, s->size);
	}
	printf("%lu of %u images run as they are; %lu damaged, %lu still accepted and run; %llu "
	       "instructions on the CPU\n",
	       whole, subject_count, tried, accepted, (unsigned long long)steps);
	if (tried >= 200 && accepted * 50 < tried) {
		printf("FAIL fewer than 2 %% are accepted: nothing is tested\n");
		return 1;
	}
	return 0;
}
