/* SPDX-License-Identifier: MIT */
/*
 * The checker's parser and policy against the verifier's (verifier/image, prove_policy.c), which
 * were written apart from them: the same verdict, the same rule, the same facts.
 *
 *     test_parse MUTATIONS FILE|DIRECTORY...     and so many changed copies of each image
 *
 * FILE.pol beside FILE.fay, if there is one, is a struct fay_policy that is tried as well. What the
 * two are meant to do differently is counted and told: symbols that lie outside the file, which are
 * only names in messages, refuse an image there; brackets in a policy's pattern with escapes or
 * brackets in them match nothing here; .fay.certificate means nothing there.
 */
#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "test_parse.h"
#include "tests/xorshift.h"
#include "verifier/prover/prove_parts.h"

static uint64_t seed = 88172645463325252u;
static unsigned long compared, accepted, policies, symbols, careful, differences, refusals[99];

static size_t below(size_t n)
{
	return n ? (size_t)(xorshift(&seed) >> 16) % n : 0;
}

void differ(const char *name, const char *what, unsigned there, unsigned here)
{
	differences++;
	if (differences < 20)
		printf("%s: %s: %s there, %s here\n", name, what, fay_rule_id(there),
		       fay_rule_id(here));
}

/* ---- facts ---- */

static bool same_range(struct fay_range there, struct check_bytes here)
{
	return there.size == here.size && (!there.size || there.start == here.start);
}

static const char *other_column(const struct fay_image *there, const struct check_subject *here)
{
	if (there->schema.column_count != here->column_count)
		return "number of columns";
	for (uint32_t i = 0; i < here->column_count; i++) {
		struct fay_image_column c = fay_read_column(here, i);
		const struct fay_schema_column *t = &there->schema.columns[i];

		if (strcmp(fay_read_name(here, &here->columns, i * sizeof(c), c.name), t->name) ||
		    c.type != t->type || c.merge != t->merge || c.offset != t->offset ||
		    c.size != t->size || c.param[0] != t->param[0] || c.param[1] != t->param[1])
			return "column";
	}
	return NULL;
}

/* NULL: the same. */
static const char *other_fact(const struct fay_image *there, const struct check_subject *here,
			      const uint8_t *file, size_t size)
{
	const struct fay_layout *layout = &there->layout;

	if (!same_range(there->text, here->text) || !same_range(there->rodata, here->rodata) ||
	    !same_range(there->got, here->got))
		return "ranges";
	if (there->layout_base != here->base || layout->size != here->span)
		return "layout";
	if (memcmp(layout->bytes + (here->text.start - here->base), here->text.bytes,
		   here->text.size) ||
	    (here->rodata.size && memcmp(layout->bytes + (here->rodata.start - here->base),
					 here->rodata.bytes, here->rodata.size)))
		return "bytes";
	if (here->text.bytes < file || here->text.bytes + here->text.size > file + size)
		return "not in the file";
	if (there->header.local_size != here->local_size ||
	    there->header.global_size != here->global_size)
		return "sizes";
	if (layout->slot_count != here->slot_count)
		return "number of slots";
	for (uint32_t i = 0; i < here->slot_count; i++)
		if (here->base + layout->slots[i].offset != here->slots[i].address ||
		    layout->slots[i].helper != here->slots[i].helper)
			return "slot";
	if (there->probe_count != here->probe_count)
		return "number of probes";
	for (uint32_t i = 0; i < here->probe_count; i++) {
		struct check_probe probe = check_probe(here, i);

		if (strcmp(probe.pattern, there->probes[i].pattern) ||
		    probe.kind != there->probes[i].kind ||
		    probe.parameter != there->probes[i].parameter ||
		    probe.code != here->base + there->probes[i].code_offset)
			return "probe";
	}
	if (there->schema.state_count != here->state_count)
		return "number of states";
	for (uint32_t i = 0; i < here->state_count; i++) {
		struct fay_image_state s = check_state(here, i);
		const struct fay_schema_state *t = &there->schema.states[i];

		if (strcmp(fay_read_name(here, &here->states, i * sizeof(s), s.name), t->name) ||
		    s.kind != t->kind || s.scope != t->scope || s.offset != t->offset ||
		    s.size != t->size || s.rows != t->rows || s.row_size != t->row_size ||
		    s.first_column != t->first_column || s.keys != t->keys || s.values != t->values)
			return "state";
	}
	return other_column(there, here);
}

/* ---- policies ---- */

/* A glob that is near to `pattern`: pieces of it become signs. */
static void near_glob(char *glob, size_t room, const char *pattern)
{
	static const char *const signs[] = {
		"*",    "?",    "**",   "*?",    "[a-z]", "[!x]", "\\",
		"[]a]", "[^-]", "[a[]", "[\\a]", "[a-",   "!",    "/"
	};
	size_t used = 0;

	while (*pattern && used + 8 < room) {
		size_t choice = below(3 * sizeof(signs) / sizeof(*signs));

		if (choice < sizeof(signs) / sizeof(*signs))
			used += (size_t)sprintf(glob + used, "%s", signs[choice]);
		else
			glob[used++] = *pattern;
		pattern += choice ? 1 : 1 + below(strlen(pattern));
	}
	glob[used] = 0;
}

/* A bracket with a bracket or a backslash in it, or behind it. */
static bool doubtful(const struct fay_policy *policy)
{
	for (uint32_t k = 0; k < policy->pattern_count; k++) {
		const char *bracket = strchr(policy->patterns[k], '[');

		if (bracket && strpbrk(bracket + 1, "[\\"))
			return true;
	}
	return false;
}

static void compare_policy(const char *name, const struct fay_image *image,
			   const struct check_subject *subject, const struct fay_policy *policy)
{
	struct fay_run *run = calloc(1, sizeof(*run));
	enum fay_rule there, here = check_policy(subject, policy).rule;

	run->arena = fay_arena_create((size_t)1 << 20);
	run->policy = policy;
	run->image = *image;
	there = fay_policy_image(run, NULL).rule;
	policies++;
	if (there != here && here == FAY_RULE_POL_TRACEPOINT && doubtful(policy))
		careful++;
	else if (there != here)
		differ(name, policy->patterns[0], there, here);
	fay_arena_destroy(run->arena);
	free(run);
}

static void compare_policies(const char *name, const struct fay_image *image,
			     const struct check_subject *subject, const struct fay_policy *own)
{
	struct fay_policy policy;

	fay_policy_default(&policy);
	compare_policy(name, image, subject, &policy);
	if (own)
		compare_policy(name, image, subject, own);
	policy.max_local = below(2) ? below(image->header.local_size + 9) : policy.max_local;
	policy.max_global = below(2) ? below(image->header.global_size + 9) : policy.max_global;
	policy.allow_kinds = below(2) ? (uint32_t)xorshift(&seed) : policy.allow_kinds;
	compare_policy(name, image, subject, &policy);
	fay_policy_default(&policy);
	for (unsigned round = 0; round < 4; round++) {
		policy.pattern_count = 1 + (uint32_t)below(3);
		for (uint32_t k = 0; k < policy.pattern_count; k++)
			near_glob(policy.patterns[k], sizeof(policy.patterns[k]),
				  image->probes[below(image->probe_count)].pattern);
		compare_policy(name, image, subject, &policy);
	}
}

/* Pairs of globs of few letters, as the pattern of an image's only probe and of the policy. */
static void compare_globs(unsigned long count)
{
	static const char *const pieces[] = { "a",    "b",     "a",   "-",       "*", "*",
					      "?",    "!",     "/",   "[",       "]", "[ab]",
					      "[!a]", "[a-b]", "\\a", "\xc3\xa9" };
	static struct fay_policy policy = { .pattern_count = 1, .max_local = 8, .allow_kinds = 2 };
	struct fay_probe_facts facts = { .kind = FAY_PROBE_ENTRY };
	struct fay_image image = { .probe_count = 1, .probes = &facts };
	struct fay_image_probe probe = { .kind = FAY_PROBE_ENTRY, .pattern = 4096 };
	char text[128], *globs[] = { text, policy.patterns[0] };
	struct check_subject subject = { .probe_count = 1,
					 .probes = { 0, sizeof(probe), (const uint8_t *)&probe },
					 .strings = { 4096, sizeof(text), (const uint8_t *)text } };

	facts.pattern = text;
	while (count--) {
		for (unsigned side = 0; side < 2; side++) {
			*globs[side] = 0;
			for (size_t n = below(7); n; n--)
				strcat(globs[side], pieces[below(sizeof(pieces) / sizeof(*pieces) -
								 (below(2) ? 7 : 0))]);
		}
		compare_policy(text, &image, &subject, &policy);
	}
}

/* ---- one file ---- */

enum fay_rule compare(const char *name, const uint8_t *bytes, size_t size,
		      const struct fay_policy *own, bool policy)
{
	/* Elsewhere in memory, not aligned and of its exact size, so that a sanitizer sees all. */
	uint8_t *memory = malloc(size + 1), *file = memory + 1;
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct fay_image image;
	struct fay_refusal there;
	struct check_refusal here;
	struct check_subject subject;
	const char *other = NULL;

	memcpy(file, bytes, size);
	memset(&subject, 0xa5, sizeof(subject));
	there = fay_image_parse(arena, bytes, size, &image);
	here = fay_read_image(file, size, &subject);
	compared++;
	accepted += here.rule == FAY_RULE_NONE;
	refusals[here.rule]++;
	if (there.rule != here.rule) {
		if (there.rule == FAY_RULE_IMG_ELF && !strncmp(there.what, "the symbol table", 16))
			symbols++;
		else
			differ(name, there.what ? there.what : "accepted", there.rule, here.rule);
	} else if (here.rule == FAY_RULE_NONE) {
		other = other_fact(&image, &subject, file, size);
		if (other)
			differ(name, other, 0, 0);
		else if (policy)
			compare_policies(name, &image, &subject, own);
	} else if (!here.what || (here.place > size && here.place)) {
		differ(name, "place", there.rule, here.rule);
	}
	fay_arena_destroy(arena);
	free(memory);
	return here.rule;
}

/* ---- mutations ---- */

struct region {
	uint64_t start, size;
};

static size_t regions(const uint8_t *file, size_t size, struct region *found, size_t room)
{
	const Elf64_Ehdr *h = (const void *)file;
	size_t count = 0;

	if (size < sizeof(*h) || h->e_shoff > size ||
	    h->e_shnum * sizeof(Elf64_Shdr) > size - h->e_shoff)
		return 0;
	found[count++] = (struct region){ 0, sizeof(*h) };
	found[count++] = (struct region){ h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr) };
	found[count++] = (struct region){ h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr) };
	found[count++] = found[1];
	found[count++] = found[2];
	for (unsigned i = 1; i < h->e_shnum && count < room; i++) {
		Elf64_Shdr s;

		memcpy(&s, file + h->e_shoff + i * sizeof(s), sizeof(s));
		if (!(s.sh_flags & SHF_EXECINSTR) && s.sh_type != SHT_SYMTAB && s.sh_size)
			found[count++] = (struct region){ s.sh_offset, s.sh_size };
	}
	return count;
}

static void mutate(uint8_t *file, size_t size, const struct region *places, size_t count)
{
	static const uint64_t values[] = { 0,          1,
					   2,          3,
					   4,          5,
					   6,          7,
					   8,          9,
					   10,         11,
					   15,         16,
					   17,         24,
					   32,         64,
					   255,        256,
					   257,        512,
					   520,        1024,
					   1025,       3840,
					   3904,       4095,
					   4096,       4104,
					   8192,       8193,
					   65536,      65544,
					   131072,     1u << 20,
					   1u << 22,   (1u << 22) + 8,
					   1u << 24,   1u << 31,
					   1 - 1u,     ~0u - 7,
					   INT64_MIN,  1ull << 46,
					   ~7ull,      ~0ull,
					   0x6ffffef5, 0x70000001 };
	static const unsigned widths[] = { 1, 2, 4, 4, 8, 8 };
	struct region region = places[below(count)];
	unsigned width = widths[below(6)];
	uint64_t at, value = 0, from;

	if (region.start >= size || region.size > size - region.start || region.size < 8)
		region = (struct region){ 0, size };
	at = region.start + below(region.size / width) * width;
	if (at + width > size)
		return;
	memcpy(&value, file + at, width);
	switch (below(6)) {
	case 0: value ^= 1ull << below(8 * width); break;
	case 1: value += values[below(20)]; break;
	case 2: value -= values[below(20)]; break;
	case 3: /* what stands elsewhere in the region */
		from = region.start + below(region.size / width) * width;
		memcpy(&value, file + from, width);
		break;
	default: value = values[below(sizeof(values) / sizeof(*values))];
	}
	memcpy(file + at, &value, width);
}

static void compare_mutants(const char *name, const uint8_t *bytes, size_t size, unsigned count)
{
	struct region places[300];
	size_t place_count = regions(bytes, size, places, 300);
	uint8_t *copy = malloc(size);

	for (unsigned i = 0; place_count && i < count; i++) {
		size_t cut = below(20) ? size : below(size);

		memcpy(copy, bytes, size);
		for (size_t n = 1 + below(3) * below(2); n; n--)
			mutate(copy, cut, places, place_count);
		compare(name, copy, cut, NULL, i % 8 == 0);
	}
	free(copy);
}

/* ---- files and directories ---- */

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	struct stat status;
	uint8_t *bytes;

	if (!file || fstat(fileno(file), &status) || !S_ISREG(status.st_mode)) {
		if (file)
			fclose(file);
		return NULL;
	}
	*size = (size_t)status.st_size;
	bytes = malloc(*size + 1);
	if (fread(bytes, 1, *size, file) != *size) {
		fprintf(stderr, "%s: cannot read\n", path);
		exit(2);
	}
	fclose(file);
	return bytes;
}

static unsigned long compare_file(const char *path, unsigned mutations)
{
	char beside[4096];
	size_t size, own_size = 0;
	uint8_t *bytes = read_file(path, &size), *own;
	enum fay_rule rule;

	if (!bytes)
		return 0;
	snprintf(beside, sizeof(beside), "%.*s.pol", (int)strlen(path) - 4, path);
	own = read_file(beside, &own_size);
	rule = compare(path, bytes, size,
		       own_size == sizeof(struct fay_policy) ? (void *)own : NULL, true);
	if (mutations && size < ((size_t)1 << 20) && rule == FAY_RULE_NONE) {
		compare_mutants(path, bytes, size, mutations);
		compare_made(path, bytes, size);
		compare_certificates(path, bytes, size);
	}
	free(bytes);
	free(own);
	return 1;
}

int main(int argc, char **argv)
{
	unsigned mutations = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	unsigned long files = 0;

	for (int i = 2; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		struct dirent *entry;
		char path[4096];

		if (!directory)
			files += compare_file(argv[i], mutations);
		while (directory && (entry = readdir(directory))) {
			size_t length = strlen(entry->d_name);

			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (length > 4 && !strcmp(entry->d_name + length - 4, ".fay"))
				files += compare_file(path, mutations);
		}
		if (directory)
			closedir(directory);
	}
	compare_globs(100000);
	printf("%lu files, %lu compared, %lu accepted, %lu policies; symbols outside %lu, doubtful "
	       "brackets %lu; %lu differences\n",
	       files, compared, accepted, policies, symbols, careful, differences);
	for (unsigned rule = 1; rule < FAY_RULE_COUNT; rule++)
		if (refusals[rule])
			printf("  %s %lu\n", fay_rule_id(rule), refusals[rule]);
	return !files || differences ? 1 : 0;
}
