/* SPDX-License-Identifier: MIT */
/*
 * Bad input at scale: images that are huge, cut off, contradictory or made to cost much. Each must
 * get a clear outcome, within the memory that docs/verifier.md states, and never be accepted unless
 * it is as good as it looks.
 *
 *	test_scale IMAGE [NAME]      IMAGE: an accepted one, to be cut and contradicted
 *
 * Each case runs in a child of its own, whose peak of memory is asserted; its time is printed only
 * (total_ms of the default policy bounds it). A case says which rules are right; LIM-TIME is always
 * allowed for one that is refused, since machines differ.
 */
#include <elf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fay/verify.h"

#define MEMORY_MAX_KIB (2048l * 1024)
#define PAGE 4096u

/* ---- an image around code ---- */

struct builder {
	uint8_t *code;
	size_t size, room;
	uint32_t probes;
	int32_t *rodata; /* words of .rodata, or NULL */
	uint32_t words;
};

static void emit(struct builder *b, const void *bytes, size_t size)
{
	if (b->size + size > b->room) {
		b->room = 2 * (b->size + size) + 4096;
		b->code = realloc(b->code, b->room);
		if (!b->code)
			abort();
	}
	memcpy(b->code + b->size, bytes, size);
	b->size += size;
}
#define EMIT(b, ...)                                                                               \
	emit(b, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void emit32(struct builder *b, int64_t value)
{
	emit(b, &(int32_t){ (int32_t)value }, 4);
}

enum { S_NULL, S_TEXT, S_IMAGE, S_PROBES, S_STRINGS, S_NAMES, S_RODATA, S_COUNT };
static const char section_names[] =
	"\0.text\0.fay.image\0.fay.probes\0.fay.strings\0.shstrtab\0.rodata";
#define RODATA_FROM_TEXT 0x100000 /* where .rodata is put, if there is one */

/* The file, in memory that is kept until the process ends. */
static uint8_t *finish(struct builder *b, size_t *file_size)
{
	static const char strings[] = "\0libc!read";
	size_t text = PAGE, tables = text + (b->size + PAGE - 1) / PAGE * PAGE, image = tables,
	       probes = image + 64;
	size_t text_strings = probes + 32 * b->probes, names = text_strings + sizeof(strings);
	size_t rodata = (names + sizeof(section_names) + PAGE - 1) / PAGE * PAGE,
	       headers = (rodata + 4 * (size_t)b->words + 7) / 8 * 8;
	uint8_t *f = calloc(1, headers + S_COUNT * sizeof(Elf64_Shdr));
	Elf64_Ehdr *eh = (void *)f;
	Elf64_Phdr *ph = (void *)(f + sizeof(*eh));
	Elf64_Shdr *sh = (void *)(f + headers);

	if (!f)
		abort();
	*file_size = headers + S_COUNT * sizeof(*sh);
	*eh = (Elf64_Ehdr){ .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(*eh),
			    .e_shoff = headers,
			    .e_ehsize = sizeof(*eh),
			    .e_phentsize = sizeof(*ph),
			    .e_phnum = b->words ? 3 : 2,
			    .e_shentsize = sizeof(*sh),
			    .e_shnum = S_COUNT,
			    .e_shstrndx = S_NAMES };
	ph[0] = (Elf64_Phdr){ PT_LOAD, PF_R | PF_X, text, text, text, b->size, b->size, PAGE };
	ph[1] = (Elf64_Phdr){ PT_LOAD, PF_R,           tables,         tables,
			      tables,  names - tables, names - tables, PAGE };
	ph[2] = (Elf64_Phdr){ PT_LOAD,
			      PF_R,
			      rodata,
			      text + RODATA_FROM_TEXT,
			      text + RODATA_FROM_TEXT,
			      4 * (size_t)b->words,
			      4 * (size_t)b->words,
			      PAGE };
	if (b->words) {
		sh[S_RODATA] = (Elf64_Shdr){ 53,        SHT_PROGBITS,
					     SHF_ALLOC, text + RODATA_FROM_TEXT,
					     rodata,    4 * (size_t)b->words,
					     0,         0,
					     4,         0 };
		memcpy(f + rodata, b->rodata, 4 * (size_t)b->words);
	}
	sh[S_TEXT] = (Elf64_Shdr){
		1, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, text, b->size, 0, 0, 1, 0
	};
	sh[S_IMAGE] = (Elf64_Shdr){ 7, SHT_PROGBITS, SHF_ALLOC, image, image, 64, 0, 0, 1, 0 };
	sh[S_PROBES] =
		(Elf64_Shdr){ 18, SHT_PROGBITS, SHF_ALLOC, probes, probes, 32 * b->probes, 0, 0, 1,
			      0 };
	sh[S_STRINGS] = (Elf64_Shdr){
		30, SHT_PROGBITS, SHF_ALLOC, text_strings, text_strings, sizeof(strings), 0, 0, 1, 0
	};
	sh[S_NAMES] =
		(Elf64_Shdr){ 43, SHT_STRTAB, 0, 0, names, sizeof(section_names), 0, 0, 1, 0 };
	memcpy(f + text, b->code, b->size);
	memcpy(f + image, FAY_IMAGE_MAGIC, 8);
	memcpy(f + image + 8, &(uint32_t){ FAY_IMAGE_VERSION }, 4);
	memcpy(f + image + 16, &(uint32_t){ 64 }, 4);
	memcpy(f + image + 24, &b->probes, 4);
	for (uint32_t i = 0; i < b->probes; i++) {
		size_t at = probes + 32 * i;

		memcpy(f + at, &(int32_t){ (int32_t)(text_strings + 1 - at) }, 4);
		memcpy(f + at + 4, &(uint32_t){ FAY_PROBE_ENTRY }, 4);
		memcpy(f + at + 8, &(int32_t){ (int32_t)(text - (at + 8)) }, 4);
	}
	memcpy(f + text_strings, strings, sizeof(strings));
	memcpy(f + names, section_names, sizeof(section_names));
	return f;
}

/* ---- the cases ---- */

static const char *image_path;

static uint8_t *read_image(size_t *size, size_t room)
{
	FILE *stream = fopen(image_path, "rb");
	uint8_t *bytes = calloc(1, room);

	if (!stream || !bytes) {
		perror(image_path);
		exit(4);
	}
	*size = fread(bytes, 1, room, stream);
	fclose(stream);
	return bytes;
}

static uint8_t *valid(size_t *size)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0xff, 0x06, 0xc3); /* incq (%rsi); ret */
	return finish(&b, size);
}

static uint8_t *repeated(size_t *size, const uint8_t *unit, size_t unit_size, unsigned count)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0x83, 0x3f, 0x01); /* cmpq $1, (%rdi) */
	for (unsigned i = 0; i < count; i++)
		emit(&b, unit, unit_size);
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

static uint8_t *hundred_megabytes(size_t *size)
{
	uint8_t *bytes = read_image(size, 100u << 20);

	*size = 100u << 20;
	return bytes;
}

static uint8_t *megabyte_of_nops(size_t *size)
{
	return repeated(size, (const uint8_t[]){ 0x90 }, 1, 900000);
}
static uint8_t *three_million_nops(size_t *size)
{
	return repeated(size, (const uint8_t[]){ 0x90 }, 1, 3000000);
}
static uint8_t *large_text(size_t *size)
{
	return repeated(size, (const uint8_t[]){ 0x90 }, 1, 17u << 20);
}
static uint8_t *million_blocks(size_t *size)
{
	return repeated(size, (const uint8_t[]){ 0x74, 0x00 }, 2, 1000000);
}
static uint8_t *many_blocks(size_t *size)
{
	return repeated(size, (const uint8_t[]){ 0x74, 0x00 }, 2, 200000);
}

/* A frame of 8 KiB makes each state large. */
static uint8_t *large_states(size_t *size)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0x81, 0xec);
	emit32(&b, 8176);
	EMIT(&b, 0x48, 0x83, 0x3f, 0x01);
	for (unsigned i = 0; i < 100000; i++)
		EMIT(&b, 0x74, 0x00);
	EMIT(&b, 0x48, 0x81, 0xc4);
	emit32(&b, 8176);
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

/* 1: xor %eax,%eax at each level; then as many latches. */
static uint8_t *nested_loops(size_t *size)
{
	enum { DEPTH = 20000 };
	static uint32_t heads[DEPTH];
	struct builder b = { .probes = 1 };

	for (unsigned i = 0; i < DEPTH; i++) {
		heads[i] = (uint32_t)b.size;
		EMIT(&b, 0x48, 0xff, 0x06); /* incq (%rsi) */
	}
	for (unsigned i = DEPTH; i-- > 0;) {
		EMIT(&b, 0x48, 0x83, 0x3f, 0x01, 0x0f, 0x84); /* cmpq $1, (%rdi); je head */
		emit32(&b, (int64_t)heads[i] - (int64_t)(b.size + 4));
	}
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

/* As many loops, each left at its first end: accepted, and their costs are to be added up in less
 * than the cube of their number. */
static uint8_t *nested_once(size_t *size)
{
	enum { DEPTH = 5000 };
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x31, 0xc0); /* xor %eax, %eax */
	for (unsigned i = 0; i < DEPTH; i++)
		EMIT(&b, 0x90);
	for (unsigned i = DEPTH; i-- > 0;) {
		EMIT(&b, 0x0f, 0x85); /* jne to the i-th */
		emit32(&b, 2 + (int64_t)i - (int64_t)(b.size + 4));
	}
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

/* `count` functions, each of which calls the next `calls` times. */
static uint8_t *call_chain(size_t *size, unsigned count, unsigned calls)
{
	struct builder b = { .probes = 1 };
	unsigned bytes = 5 * calls + 1;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned k = 0; i + 1 < count && k < calls; k++) {
			EMIT(&b, 0xe8);
			emit32(&b, (int64_t)(i + 1) * bytes - (int64_t)(b.size + 4));
		}
		EMIT(&b, 0xc3);
	}
	return finish(&b, size);
}

static uint8_t *deep_calls(size_t *size)
{
	return call_chain(size, 100000, 1);
}
static uint8_t *nine_functions(size_t *size)
{
	return call_chain(size, 9, 1);
}
static uint8_t *ten_functions(size_t *size)
{
	return call_chain(size, 10, 1);
}
static uint8_t *call_tree(size_t *size)
{
	return call_chain(size, 9, 8);
} /* 8^8 paths */

static uint8_t *probes(size_t *size, unsigned count)
{
	struct builder b = { .probes = count };

	EMIT(&b, 0x48, 0xff, 0x06, 0xc3);
	return finish(&b, size);
}
static uint8_t *most_probes(size_t *size)
{
	return probes(size, 1024);
}
/* 1,024 probes of a few instructions each, which have 20,000 blocks that no execution comes to:
 * most of the work is the graphs. */
static uint8_t *probes_with_dead_code(size_t *size)
{
	struct builder b = { .probes = 1024 };

	EMIT(&b, 0x31, 0xc0, 0x75, 0x01, 0xc3); /* xor %eax, %eax; jne 1f; ret */
	for (unsigned i = 0; i < 20000; i++)
		EMIT(&b, 0x74, 0x00);
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

static uint8_t *too_many_probes(size_t *size)
{
	return probes(size, 1025);
}
static uint8_t *thousands_of_probes(size_t *size)
{
	return probes(size, 100000);
}

/* As many open questions for the solver: 5000 accesses at an unbounded index. */
static uint8_t *open_questions(size_t *size)
{
	/* mov (%rdi),%rax; incq (%rsi,%rax,8) */
	static const uint8_t unit[] = { 0x48, 0x8b, 0x07, 0x48, 0xff, 0x04, 0xc6 };

	return repeated(size, unit, sizeof(unit), 5000);
}

/* jmp *(table,%rax,8) with a table of a million entries: 8 MB of code bytes that nobody has
 * read-only. */
static uint8_t *million_entry_table(size_t *size)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x8b, 0x07, 0x3d); /* mov (%rdi),%eax; cmp $1000000,%eax */
	emit32(&b, 1000000);
	EMIT(&b, 0x73, 0x0b);       /* jae ret */
	EMIT(&b, 0x48, 0x8d, 0x0d); /* lea table(%rip),%rcx */
	emit32(&b, 5);
	EMIT(&b, 0xff, 0x24, 0xc1, 0xc3, 0xcc); /* jmp *(%rcx,%rax,8); ret */
	for (unsigned i = 0; i < 1000000; i++)
		emit(&b, &(uint64_t){ PAGE + 21 }, 8);
	return finish(&b, size);
}

/*
 * A switch over a table of `entries` in .rodata, the index masked to `mask`: each entry leads to
 * one of `places` returns. With `scattered` the entries are of all sorts.
 */
static uint8_t *switch_over(size_t *size, uint32_t entries, uint32_t mask, uint32_t places,
			    bool scattered)
{
	struct builder b = { .probes = 1, .words = entries, .rodata = calloc(entries, 4) };
	uint32_t table = RODATA_FROM_TEXT, code;

	EMIT(&b, 0x8b, 0x07, 0x25); /* mov (%rdi),%eax; and $mask,%eax */
	emit32(&b, (int32_t)mask);
	EMIT(&b, 0x48, 0x8d, 0x0d); /* lea table(%rip),%rcx */
	emit32(&b, (int64_t)table - (int64_t)(b.size + 4));
	/* movslq (%rcx,%rax,4),%rax; add %rcx,%rax; jmp *%rax */
	EMIT(&b, 0x48, 0x63, 0x04, 0x81, 0x48, 0x01, 0xc8, 0xff, 0xe0);
	code = (uint32_t)b.size;
	for (uint32_t i = 0; i < places; i++)
		EMIT(&b, 0xc3);
	for (uint32_t i = 0; b.rodata && i < entries; i++)
		b.rodata[i] =
			(int32_t)(code + (scattered ? i * 2654435761u >> 8 : i % places) - table);
	return finish(&b, size);
}

static uint8_t *table_of_4096(size_t *size)
{
	return switch_over(size, 4096, 4095, 4096, false);
}
static uint8_t *table_of_a_million(size_t *size)
{
	return switch_over(size, 1000000, (1u << 19) - 1, 16, false);
}
static uint8_t *few_of_a_million(size_t *size)
{
	return switch_over(size, 1000000, 4095, 16, false);
}
static uint8_t *wild_table(size_t *size)
{
	return switch_over(size, 1000000, 4095, 16, true);
}
static uint8_t *table_beyond(size_t *size)
{
	return switch_over(size, 1000000, (1u << 20) - 1, 16, false);
}

/* Forty questions, each of which asks the solver for the factors of a number: the first that it
 * does not answer in time is a refusal. */
static uint8_t *hard_questions(size_t *size)
{
	/* mov (%rdi),%rax; mov %eax,%eax; mov 8(%rdi),%rcx; mov %ecx,%ecx; imul %rcx,%rax; movabs
	 * $n,%rdx...; cmp; jne; incq 0x100000(%rsi) */
	static const uint8_t unit[] = { 0x8b, 0x07, 0x8b, 0x4f, 0x08, 0x48, 0x0f, 0xaf,
					0xc1, 0x48, 0xba, 0xd1, 0x8f, 0x65, 0x1f, 0x9d,
					0x35, 0x3b, 0x0d, 0x48, 0x39, 0xd0, 0x75, 0x07,
					0x48, 0xff, 0x86, 0x00, 0x00, 0x10, 0x00 };

	return repeated(size, unit, sizeof(unit), 40);
}

/*
 * One way has states as large as a frame makes them, the other asks of an index that went through a
 * table of 256 bytes 4,090 times: what both take must be bounded together, since the states are
 * kept while the solver is asked.
 */
static uint8_t *states_and_tables(size_t *size)
{
	static int32_t words[64];
	struct builder b = { .probes = 1, .rodata = words, .words = 64 };
	size_t hole;

	for (unsigned i = 0; i < sizeof(words); i++)
		((uint8_t *)words)[i] = (uint8_t)(i * 167 + 13);
	EMIT(&b, 0x48, 0x83, 0x7f, 0x18, 0x00, 0x0f, 0x85); /* cmpq $0, 24(%rdi); jne */
	hole = b.size;
	emit32(&b, 0);
	EMIT(&b, 0x0f, 0xb6, 0x07, 0x4c, 0x8d, 0x05); /* movzbl (%rdi), %eax; lea table, %r8 */
	emit32(&b, RODATA_FROM_TEXT - (int64_t)(b.size + 4));
	for (unsigned i = 0; i < 4090; i++)
		EMIT(&b, 0x41, 0x0f, 0xb6, 0x04, 0x00); /* movzbl (%r8,%rax), %eax */
	/* mov 8(%rdi), %rcx; imul %rax, %rcx; imul %rcx, %rcx; incb (%rsi,%rcx); ret */
	EMIT(&b, 0x48, 0x8b, 0x4f, 0x08, 0x48, 0x0f, 0xaf, 0xc8, 0x48, 0x0f, 0xaf, 0xc9, 0xfe, 0x04,
	     0x0e, 0xc3);
	memcpy(b.code + hole, &(int32_t){ (int32_t)(b.size - hole - 4) }, 4);
	EMIT(&b, 0x48, 0x81, 0xec);
	emit32(&b, 4072);
	for (unsigned i = 0; i < 8800; i++)
		EMIT(&b, 0x48, 0x83, 0x7f, 0x10, 0x00, 0x74, 0x00); /* cmpq $0, 16(%rdi); je on */
	EMIT(&b, 0x48, 0x81, 0xc4);
	emit32(&b, 4072);
	EMIT(&b, 0xc3);
	return finish(&b, size);
}

static const struct scale_case {
	const char *name;
	uint8_t *(*make)(size_t *size);
	const char *rules; /* "accepted", or the rules that may refuse it */
	uint32_t total_ms; /* 0: as the default policy has it */
} cases[] = {
	{ "the builder's own image", valid, "accepted", 0 },
	{ "a file of 100 MB", hundred_megabytes, "IMG-LIMIT", 0 },
	{ "17 MB of code", large_text, "IMG-LIMIT", 0 },
	{ "900,000 instructions", megabyte_of_nops, "accepted", 0 },
	{ "3 million instructions", three_million_nops, "LIM-RESOURCE", 0 },
	{ "200,000 blocks", many_blocks, "accepted", 0 },
	{ "a million blocks", million_blocks, "LIM-RESOURCE", 0 },
	{ "100,000 blocks with 8 KiB of stack", large_states, "LIM-RESOURCE", 0 },
	{ "20,000 loops, one within the other", nested_loops, "TRM-LOOP LIM-RESOURCE", 0 },
	{ "5,000 loops within one another, left at once", nested_once, "accepted", 0 },
	{ "calls 8 deep", nine_functions, "accepted", 0 },
	{ "calls 9 deep", ten_functions, "LIM-RESOURCE", 0 },
	{ "calls 100,000 deep", deep_calls, "LIM-RESOURCE", 0 },
	{ "8^8 ways through calls", call_tree, "LIM-RESOURCE", 0 },
	{ "1,024 probes", most_probes, "accepted", 0 },
	{ "1,024 probes with much dead code, in 0.2 s", probes_with_dead_code, "LIM-TIME", 200 },
	{ "1,025 probes", too_many_probes, "IMG-LIMIT", 0 },
	{ "100,000 probes", thousands_of_probes, "IMG-LIMIT", 0 },
	{ "5,000 open questions", open_questions, "LIM-RESOURCE", 0 },
	{ "a switch of 4,096 places", table_of_4096, "accepted", 0 },
	{ "a million entries of which 4,096 are reached", few_of_a_million, "accepted", 0 },
	{ "a jump table of a million entries", table_of_a_million, "CFI-INDIRECT", 0 },
	{ "an index beyond a million entries", table_beyond, "CFI-INDIRECT MEM-BOUNDS", 0 },
	{ "a million entries that lead anywhere", wild_table, "CFI-INDIRECT", 0 },
	{ "forty questions that no solver answers", hard_questions, "MEM-BOUNDS", 0 },
	{ "a jump table of a million entries in the code", million_entry_table,
	  "CFI-INDIRECT MEM-REGION MEM-PERMISSION INS-UNSUPPORTED", 0 },
	{ "8,800 large states and a table 4,090 times", states_and_tables,
	  "MEM-BOUNDS LIM-RESOURCE", 120000 },
};

static int judge(const struct scale_case *c)
{
	struct fay_verdict v;
	size_t size;
	uint8_t *bytes = c->make(&size);
	struct fay_policy policy;
	const char *got;
	bool ok;

	fay_policy_default(&policy);
	if (c->total_ms)
		policy.total_ms = c->total_ms;
	fay_verify(bytes, size, &policy, &v);
	got = v.outcome == FAY_ACCEPTED ? "accepted" : fay_rule_id(v.rejection.rule);
	ok = strstr(c->rules, got) || (v.outcome != FAY_ACCEPTED && strcmp(c->rules, "accepted") &&
				       v.rejection.rule == FAY_RULE_LIM_TIME);
	printf("%s %-46s %-14s %6.2f s  ", ok ? "ok  " : "FAIL", c->name, got,
	       (double)v.nanoseconds / 1e9);
	if (!ok)
		printf("expected %s; %s ", c->rules,
		       v.outcome == FAY_ACCEPTED ? "" : v.rejection.what);
	fflush(stdout);
	fay_verdict_deinit(&v);
	return !ok;
}

/* Every shorter file is refused, and none of them for a reason that only the whole has. */
static int cut_off(void)
{
	size_t size;
	uint8_t *bytes = read_image(&size, 1 << 20);
	unsigned bad = 0;

	for (size_t keep = 0; keep < size && !bad; keep++) {
		struct fay_verdict v;
		/* its end is the end of the allocation: sanitizers see a read past it */
		uint8_t *copy = malloc(keep ? keep : 1);

		memcpy(copy, bytes, keep);
		fay_verify(copy, keep, NULL, &v);
		bad += v.outcome != FAY_MALFORMED;
		if (bad)
			printf("FAIL cut off after %zu bytes: %s ", keep,
			       v.outcome == FAY_ACCEPTED ? "accepted" : v.rejection.what);
		fay_verdict_deinit(&v);
		free(copy);
	}
	if (!bad)
		printf("ok   %-46s refused        ", "every shorter file");
	return (int)bad;
}

/* Fields of the headers get telling values: what is still accepted must be the same code. */
static int contradicted(void)
{
	static const uint64_t telling[] = {
		0, 1, 2, 3, 0x40, 0x1000, 0x7fffffff, 0xffffffff, 0xfffffffffffff000, UINT64_MAX
	};
	size_t size;
	uint8_t *bytes = read_image(&size, 1 << 20), *copy = malloc(size), sha[32];
	const Elf64_Ehdr *eh = (const void *)bytes;
	uint64_t seed = 1;
	unsigned bad = 0, accepted = 0;
	struct fay_verdict v;

	fay_verify(bytes, size, NULL, &v);
	memcpy(sha, v.layout.sha256, 32);
	fay_verdict_deinit(&v);
	for (unsigned i = 0; i < 20000 && !bad; i++) {
		memcpy(copy, bytes, size);
		for (unsigned k = 0; k < 1 + i % 3; k++) {
			size_t area = seed >> 40 & 1, at, width = (size_t)1 << (seed >> 44 & 3);

			seed = seed * 6364136223846793005u + 1442695040888963407u;
			at = area ? seed % (64 + (size_t)eh->e_phnum * 56)
				  : eh->e_shoff + seed / 7 % ((size_t)eh->e_shnum * 64);
			if (at + width <= size)
				memcpy(copy + at, &telling[seed >> 33 & 7], width);
		}
		fay_verify(copy, size, NULL, &v);
		accepted += v.outcome == FAY_ACCEPTED;
		bad += v.outcome == FAY_ACCEPTED && memcmp(sha, v.layout.sha256, 32);
		fay_verdict_deinit(&v);
	}
	printf("%s %-46s %u of 20000 accepted, all with the same code  ", bad ? "FAIL" : "ok  ",
	       "headers contradicted", accepted);
	return (int)bad;
}

/* Runs it in a child; asserts its memory. */
static int in_child(const struct scale_case *c, int (*other)(void))
{
	struct rusage usage;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int result = c ? judge(c) : other();

		fflush(stdout);
		_exit(result);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 1;
	printf("%5ld MiB\n", usage.ru_maxrss / 1024);
	if (WIFSIGNALED(status))
		printf("FAIL the verifier died of signal %d (%s)\n", WTERMSIG(status),
		       c ? c->name : "headers");
	if (usage.ru_maxrss > MEMORY_MAX_KIB)
		printf("FAIL more than %ld MiB\n", MEMORY_MAX_KIB / 1024);
	return !WIFEXITED(status) || WEXITSTATUS(status) || usage.ru_maxrss > MEMORY_MAX_KIB;
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 ? argv[2] : "";
	int failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: test_scale IMAGE [NAME]\n");
		return 2;
	}
	image_path = argv[1];
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (strstr(cases[i].name, only))
			failed |= in_child(&cases[i], NULL);
	if (!*only) {
		failed |= in_child(NULL, cut_off);
		failed |= in_child(NULL, contradicted);
	}
	return failed;
}
