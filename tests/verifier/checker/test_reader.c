/* SPDX-License-Identifier: MIT */
/*
 * A reader that lies: the checker gets images with something wrong in what a reader says of them.
 *
 *     test_reader ROUNDS FILE|DIRECTORY...
 *
 * Each lie by itself must be refused by the checker, not by the reader. Then fields are changed at
 * random, so many times an image: what check_read() still admits must be right by holds(), which
 * was written apart from it, and no byte outside of the image may be touched: that lies between
 * pages without access, at both of their edges in turn.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/xorshift.h"
#include "verifier/image/policy.h"
#include "verifier/reader/reader.h"
#include "verifier/rules/rules.h"

#define FILE_MOST ((size_t)1 << 20)
#define PAGE 4096u

static uint64_t seed = 88172645463325252u;
static unsigned long images, lies, told, changed, admitted, failures;
static uint8_t *area; /* FILE_MOST bytes between two pages without access */
static void *memory;

static uint64_t any(uint64_t n)
{
	return (xorshift(&seed) >> 16) % n;
}

/* ---- what must hold ---- */

typedef unsigned __int128 wide;

/* Byte for byte: all three in the span, none twice. */
static bool apart(const struct check_subject *s)
{
	const struct check_bytes *run[] = { &s->text, &s->rodata, &s->got };
	bool fine = s->span <= FAY_IMAGE_MAX_SPAN && s->base % PAGE == 0 && !(s->base >> 46);
	uint8_t *taken = calloc(1, fine ? s->span + 1 : 1);

	for (unsigned i = 0; i < 3 && fine; i++) {
		fine = !run[i]->size ||
		       (run[i]->start >= s->base &&
			(wide)run[i]->start + run[i]->size <= (wide)s->base + s->span);
		for (uint64_t k = 0; fine && k < run[i]->size; k++)
			fine = !taken[run[i]->start - s->base + k]++;
	}
	free(taken);
	return fine;
}

static bool inside(const uint8_t *file, size_t size, const struct check_bytes *b)
{
	return !b->size || (b->bytes >= file && b->bytes <= file + size &&
			    b->size <= (size_t)(file + size - b->bytes));
}

static bool holds(const uint8_t *file, size_t size, const struct check_subject *s)
{
	const struct check_bytes *all[] = { &s->text,        &s->rodata,  &s->got,
					    &s->certificate, &s->hash,    &s->probes,
					    &s->states,      &s->columns, &s->strings };

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!inside(file, size, all[i]))
			return false;
	if (!s->text.size || !apart(s) || s->local_size > FAY_IMAGE_MAX_LOCAL ||
	    s->global_size > FAY_IMAGE_MAX_GLOBAL || s->probes.size / 32 != s->probe_count ||
	    s->states.size / sizeof(struct fay_image_state) != s->state_count ||
	    s->columns.size / sizeof(struct fay_image_column) != s->column_count ||
	    s->slot_count > FAY_IMAGE_MAX_HELPERS)
		return false;
	for (uint32_t i = 0; i < s->slot_count; i++) {
		uint64_t at = s->slots[i].address;

		if (at < s->got.start || (wide)at + 8 > (wide)s->got.start + s->got.size ||
		    at & 7 || s->slots[i].helper >= FAY_HELPER_COUNT)
			return false;
		for (uint32_t k = i + 1; k < s->slot_count; k++)
			if (s->slots[k].address == at)
				return false;
	}
	for (uint32_t i = 0; i < s->probe_count; i++) {
		struct check_probe p = check_probe(s, i);

		if (!p.pattern || p.code < s->text.start ||
		    p.code >= s->text.start + s->text.size || p.kind > 31)
			return false;
	}
	for (uint32_t i = 0; i < s->state_count; i++) {
		struct fay_image_state of = check_state(s, i);
		uint32_t region = of.scope == FAY_SCOPE_LOCAL ? s->local_size : s->global_size;
		wide end = (wide)of.offset +
			   (of.kind == FAY_STATE_STREAM ? 0 : (wide)of.rows * of.row_size);

		if (end + (of.kind == FAY_STATE_TABLE ? 16 : 0) > region || of.row_size > 4096)
			return false;
	}
	return true;
}

/* ---- lies ---- */

static void fail(const char *name, const char *what, unsigned rule)
{
	if (failures++ < 20)
		printf("FAIL %s: %s: %s\n", name, what, fay_rule_id(rule));
}

static enum fay_rule ask(const uint8_t *file, size_t size, const struct check_subject *s)
{
	static struct fay_probe_facts facts[FAY_IMAGE_MAX_PROBES];
	static struct check_result result;
	static struct fay_policy policy;

	fay_policy_default(&policy);
	memset(&result, 0xa5, sizeof(result));
	result.subject = *s;
	check_parts(file, size, NULL, 0, &policy, memory, check_room(size), facts, &result);
	return result.refusal.rule;
}

#define LIE(may, ...)                                                                              \
	do {                                                                                       \
		struct check_subject t = *s;                                                       \
		lies++;                                                                            \
		if (may) {                                                                         \
			enum fay_rule rule;                                                        \
			__VA_ARGS__;                                                               \
			told++;                                                                    \
			rule = ask(file, size, &t);                                                \
			if (rule != FAY_RULE_IMG_LAYOUT && rule != FAY_RULE_IMG_TABLE)             \
				fail(name, #__VA_ARGS__, rule);                                    \
		}                                                                                  \
	} while (0)

static void lie_places(const char *name, const uint8_t *file, size_t size,
		       const struct check_subject *s)
{
	LIE(true, t.text.bytes = file + size - t.text.size + 1);
	LIE(true, t.text.bytes = file - 1);
	LIE(true, t.text.size = size - (size_t)(t.text.bytes - file) + 1);
	LIE(true, t.text.size = UINT64_MAX);
	LIE(true, t.text.size = 0);
	LIE(true, t.text.start = t.base + t.span - t.text.size + 1);
	LIE(true, t.text.start = t.base - 1);
	LIE(true, t.text.start = 0 - t.text.size);
	LIE(s->rodata.size, t.rodata.start = t.text.start + t.text.size - 1);
	LIE(s->rodata.size, t.rodata.start = t.text.start - t.rodata.size + 1);
	LIE(s->rodata.size, t.rodata.bytes = file + size);
	LIE(!s->rodata.size, t.rodata.start = 4096);
	LIE(true, t.rodata = (struct check_bytes){ t.text.start, 1, file });
	LIE(true, t.rodata = (struct check_bytes){ t.text.start + t.text.size - 1, 1, file });
	LIE(t.text.size > 2, t.rodata = (struct check_bytes){ t.text.start + 1, 1, file });
	LIE(s->got.size, t.got.start = t.text.start);
	LIE(s->got.size, t.got.bytes = file - 8);
	LIE(true, t.certificate = (struct check_bytes){ 0, 1, file + size });
	LIE(true, t.hash = (struct check_bytes){ 0, 32, file + size - 31 });
	LIE(true, t.strings.bytes = file + size - t.strings.size + 1);
	LIE(true, t.base += 1);
	LIE(true, t.base = t.text.start + t.text.size);
	LIE(true, t.base |= (uint64_t)1 << 46);
	LIE(true, t.span = t.text.start - t.base + t.text.size - 1);
	LIE(true, t.span = FAY_IMAGE_MAX_SPAN + 1);
	LIE(true, t.span = UINT64_MAX);
}

static void lie_tables(const char *name, const uint8_t *file, size_t size,
		       const struct check_subject *s)
{
	uint32_t last = s->slot_count - 1;

	LIE(true, t.local_size += 4);
	LIE(true, t.local_size = FAY_IMAGE_MAX_LOCAL + 8);
	LIE(true, t.global_size += 1);
	LIE(true, t.global_size = FAY_IMAGE_MAX_GLOBAL + 8);
	LIE(s->state_count && s->local_size, t.local_size = t.global_size = 0);
	LIE(true, t.probe_count += 1);
	LIE(true, t.probe_count = 0; t.probes.size = 0; t.probes.start = 0);
	LIE(true, t.state_count += 1);
	LIE(true, t.column_count += 1);
	LIE(true, t.probes.bytes = file + size - t.probes.size + 1);
	LIE(s->states.size, t.states.bytes = file + size - t.states.size + 1);
	LIE(s->columns.size, t.columns.bytes = file + size - t.columns.size + 1);
	LIE(true, t.probes.start += t.text.size);
	LIE(true, t.probes.start -= t.text.size);
	LIE(*check_probe(s, 0).pattern, t.strings.start += t.strings.size);
	LIE(true, t.strings.size = 0; t.strings.start = 0);
	LIE(s->slot_count, t.slots[last].address += 1);
	LIE(s->slot_count, t.slots[last].address = t.got.start - 8);
	LIE(s->slot_count, t.slots[last].address = t.got.start + t.got.size);
	LIE(s->slot_count, t.slots[last].address = t.text.start & ~7ull);
	LIE(s->slot_count, t.slots[last].helper = FAY_HELPER_COUNT);
	LIE(s->slot_count, t.slots[t.slot_count++] = t.slots[last]);
	LIE(s->slot_count, t.slot_count = FAY_IMAGE_MAX_HELPERS + 1);
	LIE(s->slot_count, t.got.size = 0; t.got.start = 0);
}

#define LIE_STATE(may, ...)                                                                        \
	LIE(may, {                                                                                 \
		to = was;                                                                          \
		__VA_ARGS__;                                                                       \
		memcpy(at, &to, sizeof(to));                                                       \
	});                                                                                        \
	memcpy(at, &was, sizeof(was))

/* What the file itself says of a state, a table's if there is one; more probes than facts have room
 * for. */
static void lie_entries(const char *name, uint8_t *file, size_t size, const struct check_subject *s)
{
	bool any_state = s->state_count != 0;
	struct fay_image_state was = { 0 }, to;
	uint8_t *at = (uint8_t *)&was;
	struct fay_image_probe probe = { .kind = FAY_PROBE_BEGIN };

	for (uint32_t i = 0; i < s->state_count && (!i || was.kind == FAY_STATE_CELL); i++) {
		was = check_state(s, i);
		at = file + (s->states.bytes - file) + i * sizeof(was);
	}
	LIE_STATE(any_state, to.kind = FAY_STATE_STREAM + 1);
	LIE_STATE(any_state, to.kind = 0);
	LIE_STATE(any_state, to.scope = FAY_SCOPE_GLOBAL + FAY_SCOPE_LOCAL + 1);
	LIE_STATE(any_state, to.scope = FAY_SCOPE_GLOBAL + FAY_SCOPE_LOCAL + 1;
		  t.global_size = t.local_size = 65536);
	LIE_STATE(any_state && was.kind != FAY_STATE_CELL, to.scope = FAY_SCOPE_GLOBAL;
		  t.global_size = FAY_IMAGE_MAX_GLOBAL);
	LIE_STATE(any_state && was.kind == FAY_STATE_CELL, to.scope = FAY_SCOPE_GLOBAL;
		  t.global_size = 0);
	LIE_STATE(any_state && was.kind == FAY_STATE_CELL, to.row_size = to.size = 4104;
		  to.offset = 0; t.local_size = t.global_size = 65536);
	LIE_STATE(any_state, to.rows = 0);
	LIE_STATE(any_state, to.rows = 3);
	LIE_STATE(any_state, to.rows = 1u << 31);
	LIE_STATE(any_state, to.row_size = 0; to.size = was.kind == FAY_STATE_TABLE ? 16 : 0);
	LIE_STATE(any_state, to.row_size += 4);
	LIE_STATE(any_state, to.row_size = 4104);
	LIE_STATE(any_state, to.size += 8);
	LIE_STATE(any_state, to.offset += 4);
	LIE_STATE(any_state,
		  to.offset = was.scope == FAY_SCOPE_LOCAL ? s->local_size : s->global_size;
		  to.offset += was.kind == FAY_STATE_STREAM ? 8 : 0);
	LIE_STATE(any_state, to.offset = UINT32_MAX - 7);
	LIE(FAY_IMAGE_MAX_PROBES * sizeof(probe) < FILE_MOST - size && file == area, {
		uint64_t count = FAY_IMAGE_MAX_PROBES + 1;

		t.probe_count = (uint32_t)count;
		t.probes = (struct check_bytes){ 0, count * sizeof(probe), file + size };
		for (uint64_t i = 0; i < count; i++) {
			probe.code = (fay_rel32)(t.text.start - i * sizeof(probe) -
						 offsetof(struct fay_image_probe, code));
			memcpy(file + size + i * sizeof(probe), &probe, sizeof(probe));
		}
		size = FILE_MOST;
	});
}

/* One of the words of the subject behind the pointer to the interface. */
static void change(struct check_subject *t, const uint8_t *file, size_t size)
{
	static const uint64_t values[] = { 0,    1,        7,          8,     4095,
					   4096, 1u << 24, 1ull << 46, ~7ull, ~0ull };
	struct check_bytes *parts[] = { &t->text,   &t->rodata, &t->got,     &t->certificate,
					&t->probes, &t->states, &t->columns, &t->strings };
	struct check_bytes *part = parts[any(8)];
	uint32_t *counts[] = { &t->local_size,  &t->global_size, &t->slot_count,
			       &t->probe_count, &t->state_count, &t->column_count };
	uint32_t *count = counts[any(6)];
	uint64_t value = any(3) ? values[any(10)] : xorshift(&seed);
	uint64_t by = any(2) ? any(64) : 0 - any(64);

	switch (any(8)) {
	case 0: part->start = any(2) ? value : part->start + by; break;
	case 1: part->size = any(2) ? value : part->size + by; break;
	case 2: part->bytes = any(4) ? file + any(size) : (const uint8_t *)(uintptr_t)value; break;
	case 3: *count = any(2) ? (uint32_t)value : *count + (uint32_t)by; break;
	case 4: t->base = any(2) ? value : t->base + (by << 12); break;
	case 5: t->span = any(2) ? value : t->span + by; break;
	case 6: t->slots[any(4)].address += any(2) ? by : value; break;
	default: t->slots[any(4)].helper = (uint32_t)value;
	}
}

static void change_some(const char *name, const uint8_t *file, size_t size,
			const struct check_subject *s, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		struct check_subject t = *s;

		for (uint64_t n = 1 + any(3); n; n--)
			change(&t, file, size);
		changed++;
		if (check_read(file, size, &t).rule == FAY_RULE_NONE) {
			admitted++;
			if (!holds(file, size, &t))
				fail(name, "admitted, and does not hold", i);
		}
		ask(file, size, &t);
	}
}

/* ---- files ---- */

static void try_file(const char *path, unsigned rounds)
{
	FILE *from = fopen(path, "re");
	uint8_t *bytes = malloc(FILE_MOST), *file;
	size_t size = from ? fread(bytes, 1, FILE_MOST, from) : 0;
	struct check_subject s;

	for (unsigned edge = 0; size && edge < 2; edge++) {
		file = edge ? area : area + FILE_MOST - size;
		memcpy(file, bytes, size);
		if (fay_read_image(file, size, &s).rule != FAY_RULE_NONE)
			continue;
		images++;
		if (check_read(file, size, &s).rule != FAY_RULE_NONE || !holds(file, size, &s))
			fail(path, "what was read does not hold", FAY_RULE_NONE);
		lie_places(path, file, size, &s);
		lie_tables(path, file, size, &s);
		lie_entries(path, file, size, &s);
		change_some(path, file, size, &s, rounds);
	}
	if (from)
		fclose(from);
	free(bytes);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 0;

	area = mmap(NULL, FILE_MOST + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memory = malloc(check_room(FILE_MOST));
	if (area == MAP_FAILED || !memory ||
	    mprotect(area += PAGE, FILE_MOST, PROT_READ | PROT_WRITE))
		return 2;
	for (int i = 2; i < argc; i++) {
		DIR *directory = opendir(argv[i]);
		struct dirent *entry;
		char path[4096];

		if (!directory)
			try_file(argv[i], rounds);
		while (directory && (entry = readdir(directory))) {
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (strstr(entry->d_name, ".fay"))
				try_file(path, rounds);
		}
		if (directory)
			closedir(directory);
	}
	printf("%lu images, %lu of %lu lies told, %lu changed of which %lu admitted, %lu "
	       "failures\n",
	       images, told, lies, changed, admitted, failures);
	return failures || !images || told < 30 * images;
}
