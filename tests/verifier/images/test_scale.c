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
#include "image_builder.h"

#define MEMORY_MAX_KIB (2048l * 1024)

struct scale_case {
	const char *name;
	uint8_t *(*make)(size_t *size, const struct scale_case *c);
	const char *rules; /* "accepted", or the rules that may refuse it */
	uint32_t count;    /* of what the name says */
	uint32_t calls;    /* of each function */
	uint32_t mask;     /* of a table's index */
	uint32_t places;   /* that a table's entries lead to */
	bool scattered;    /* the entries are of all sorts */
	uint32_t total_ms; /* 0: as the default policy has it */
};

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

static uint8_t *valid(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0xff, 0x06, 0xc3); /* incq (%rsi); ret */
	return builder_finish(&b, size);
}

static uint8_t *repeated(size_t *size, const uint8_t *unit, size_t unit_size, unsigned count)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0x83, 0x3f, 0x01); /* cmpq $1, (%rdi) */
	for (unsigned i = 0; i < count; i++)
		builder_emit(&b, unit, unit_size);
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

static uint8_t *padded(size_t *size, const struct scale_case *c)
{
	uint8_t *bytes = read_image(size, c->count);

	*size = c->count;
	return bytes;
}

static uint8_t *nops(size_t *size, const struct scale_case *c)
{
	return repeated(size, (const uint8_t[]){ 0x90 }, 1, c->count);
}

static uint8_t *blocks(size_t *size, const struct scale_case *c)
{
	return repeated(size, (const uint8_t[]){ 0x74, 0x00 }, 2, c->count);
}

/* A frame of 8 KiB makes each state large. */
static uint8_t *large_states(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x48, 0x81, 0xec);
	builder_emit32(&b, 8176);
	EMIT(&b, 0x48, 0x83, 0x3f, 0x01);
	for (unsigned i = 0; i < c->count; i++)
		EMIT(&b, 0x74, 0x00);
	EMIT(&b, 0x48, 0x81, 0xc4);
	builder_emit32(&b, 8176);
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

/* 1: xor %eax,%eax at each level; then as many latches. */
static uint8_t *nested_loops(size_t *size, const struct scale_case *c)
{
	uint32_t *heads = calloc(c->count, sizeof(*heads));
	struct builder b = { .probes = 1 };

	for (unsigned i = 0; heads && i < c->count; i++) {
		heads[i] = (uint32_t)b.size;
		EMIT(&b, 0x48, 0xff, 0x06); /* incq (%rsi) */
	}
	for (unsigned i = c->count; heads && i-- > 0;) {
		EMIT(&b, 0x48, 0x83, 0x3f, 0x01, 0x0f, 0x84); /* cmpq $1, (%rdi); je head */
		builder_emit32(&b, (int64_t)heads[i] - (int64_t)(b.size + 4));
	}
	free(heads);
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

/* As many loops, each left at its first end: accepted, and their costs are to be added up in less
 * than the cube of their number. */
static uint8_t *nested_once(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x31, 0xc0); /* xor %eax, %eax */
	for (unsigned i = 0; i < c->count; i++)
		EMIT(&b, 0x90);
	for (unsigned i = c->count; i-- > 0;) {
		EMIT(&b, 0x0f, 0x85); /* jne to the i-th */
		builder_emit32(&b, 2 + (int64_t)i - (int64_t)(b.size + 4));
	}
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

/* Each function calls the next. */
static uint8_t *call_chain(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1 };
	unsigned bytes = 5 * c->calls + 1;

	for (unsigned i = 0; i < c->count; i++) {
		for (unsigned k = 0; i + 1 < c->count && k < c->calls; k++) {
			EMIT(&b, 0xe8);
			builder_emit32(&b, (int64_t)(i + 1) * bytes - (int64_t)(b.size + 4));
		}
		EMIT(&b, 0xc3);
	}
	return builder_finish(&b, size);
}

static uint8_t *probes(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = c->count };

	EMIT(&b, 0x48, 0xff, 0x06, 0xc3);
	return builder_finish(&b, size);
}
/* 1,024 probes of a few instructions each, which have 20,000 blocks that no execution comes to:
 * most of the work is the graphs. */
static uint8_t *probes_with_dead_code(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1024 };

	EMIT(&b, 0x31, 0xc0, 0x75, 0x01, 0xc3); /* xor %eax, %eax; jne 1f; ret */
	for (unsigned i = 0; i < 20000; i++)
		EMIT(&b, 0x74, 0x00);
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

/* As many open questions for the solver: 5000 accesses at an unbounded index. */
static uint8_t *open_questions(size_t *size, const struct scale_case *c)
{
	/* mov (%rdi),%rax; incq (%rsi,%rax,8) */
	static const uint8_t unit[] = { 0x48, 0x8b, 0x07, 0x48, 0xff, 0x04, 0xc6 };

	return repeated(size, unit, sizeof(unit), c->count);
}

/* jmp *(table,%rax,8) with a table of a million entries: 8 MB of code bytes that nobody has
 * read-only. */
static uint8_t *million_entry_table(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1 };

	EMIT(&b, 0x8b, 0x07, 0x3d); /* mov (%rdi),%eax; cmp $1000000,%eax */
	builder_emit32(&b, c->count);
	EMIT(&b, 0x73, 0x0b);       /* jae ret */
	EMIT(&b, 0x48, 0x8d, 0x0d); /* lea table(%rip),%rcx */
	builder_emit32(&b, 5);
	EMIT(&b, 0xff, 0x24, 0xc1, 0xc3, 0xcc); /* jmp *(%rcx,%rax,8); ret */
	for (unsigned i = 0; i < c->count; i++)
		builder_emit(&b, &(uint64_t){ PAGE + 21 }, 8);
	return builder_finish(&b, size);
}

/* A switch over a table in .rodata, each entry of which leads to a return. */
static uint8_t *switch_over(size_t *size, const struct scale_case *c)
{
	struct builder b = { .probes = 1, .words = c->count, .rodata = calloc(c->count, 4) };
	uint32_t table = RODATA_FROM_TEXT, code;

	EMIT(&b, 0x8b, 0x07, 0x25); /* mov (%rdi),%eax; and $mask,%eax */
	builder_emit32(&b, (int32_t)c->mask);
	EMIT(&b, 0x48, 0x8d, 0x0d); /* lea table(%rip),%rcx */
	builder_emit32(&b, (int64_t)table - (int64_t)(b.size + 4));
	/* movslq (%rcx,%rax,4),%rax; add %rcx,%rax; jmp *%rax */
	EMIT(&b, 0x48, 0x63, 0x04, 0x81, 0x48, 0x01, 0xc8, 0xff, 0xe0);
	code = (uint32_t)b.size;
	for (uint32_t i = 0; i < c->places; i++)
		EMIT(&b, 0xc3);
	for (uint32_t i = 0; b.rodata && i < c->count; i++)
		b.rodata[i] =
			(int32_t)(code + (c->scattered ? i * 2654435761u >> 8 : i % c->places) -
				  table);
	return builder_finish(&b, size);
}

/* Forty questions, each of which asks the solver for the factors of a number: the first that it
 * does not answer in time is a refusal. */
static uint8_t *hard_questions(size_t *size, const struct scale_case *c)
{
	/* mov (%rdi),%rax; mov %eax,%eax; mov 8(%rdi),%rcx; mov %ecx,%ecx; imul %rcx,%rax; movabs
	 * $n,%rdx...; cmp; jne; incq 0x100000(%rsi) */
	static const uint8_t unit[] = { 0x8b, 0x07, 0x8b, 0x4f, 0x08, 0x48, 0x0f, 0xaf,
					0xc1, 0x48, 0xba, 0xd1, 0x8f, 0x65, 0x1f, 0x9d,
					0x35, 0x3b, 0x0d, 0x48, 0x39, 0xd0, 0x75, 0x07,
					0x48, 0xff, 0x86, 0x00, 0x00, 0x10, 0x00 };

	return repeated(size, unit, sizeof(unit), c->count);
}

/*
 * One way has states as large as a frame makes them, the other asks of an index that went through a
 * table of 256 bytes 4,090 times: what both take must be bounded together, since the states are
 * kept while the solver is asked.
 */
static uint8_t *states_and_tables(size_t *size, const struct scale_case *c)
{
	static int32_t words[64];
	struct builder b = { .probes = 1, .rodata = words, .words = 64 };
	size_t hole;

	for (unsigned i = 0; i < sizeof(words); i++)
		((uint8_t *)words)[i] = (uint8_t)(i * 167 + 13);
	EMIT(&b, 0x48, 0x83, 0x7f, 0x18, 0x00, 0x0f, 0x85); /* cmpq $0, 24(%rdi); jne */
	hole = b.size;
	builder_emit32(&b, 0);
	EMIT(&b, 0x0f, 0xb6, 0x07, 0x4c, 0x8d, 0x05); /* movzbl (%rdi), %eax; lea table, %r8 */
	builder_emit32(&b, RODATA_FROM_TEXT - (int64_t)(b.size + 4));
	for (unsigned i = 0; i < 4090; i++)
		EMIT(&b, 0x41, 0x0f, 0xb6, 0x04, 0x00); /* movzbl (%r8,%rax), %eax */
	/* mov 8(%rdi), %rcx; imul %rax, %rcx; imul %rcx, %rcx; incb (%rsi,%rcx); ret */
	EMIT(&b, 0x48, 0x8b, 0x4f, 0x08, 0x48, 0x0f, 0xaf, 0xc8, 0x48, 0x0f, 0xaf, 0xc9, 0xfe, 0x04,
	     0x0e, 0xc3);
	memcpy(b.code + hole, &(int32_t){ (int32_t)(b.size - hole - 4) }, 4);
	EMIT(&b, 0x48, 0x81, 0xec);
	builder_emit32(&b, 4072);
	for (unsigned i = 0; i < 8800; i++)
		EMIT(&b, 0x48, 0x83, 0x7f, 0x10, 0x00, 0x74, 0x00); /* cmpq $0, 16(%rdi); je on */
	EMIT(&b, 0x48, 0x81, 0xc4);
	builder_emit32(&b, 4072);
	EMIT(&b, 0xc3);
	return builder_finish(&b, size);
}

static const struct scale_case cases[] = {
	{ "the builder's own image", valid, "accepted", .count = 1 },
	{ "a file of 100 MB", padded, "IMG-LIMIT", .count = 100u << 20 },
	{ "17 MB of code", nops, "IMG-LIMIT", .count = 17u << 20 },
	{ "900,000 instructions", nops, "accepted", .count = 900000 },
	{ "3 million instructions", nops, "LIM-RESOURCE", .count = 3000000 },
	{ "200,000 blocks", blocks, "accepted", .count = 200000 },
	{ "a million blocks", blocks, "LIM-RESOURCE", .count = 1000000 },
	{ "100,000 blocks with 8 KiB of stack", large_states, "LIM-RESOURCE", .count = 100000 },
	{ "20,000 loops, one within the other, in 5 s", nested_loops, "TRM-LOOP LIM-RESOURCE",
	  .count = 20000, .total_ms = 5000 },
	{ "5,000 loops within one another, left at once", nested_once, "accepted", .count = 5000 },
	{ "calls 8 deep", call_chain, "accepted", .count = 9, .calls = 1 },
	{ "calls 9 deep", call_chain, "LIM-RESOURCE", .count = 10, .calls = 1 },
	{ "calls 100,000 deep", call_chain, "LIM-RESOURCE", .count = 100000, .calls = 1 },
	{ "8^8 ways through calls", call_chain, "LIM-RESOURCE", .count = 9, .calls = 8 },
	{ "1,024 probes", probes, "accepted", .count = 1024 },
	{ "1,024 probes with much dead code, in 0.2 s", probes_with_dead_code, "LIM-TIME",
	  .total_ms = 200 },
	{ "1,025 probes", probes, "IMG-LIMIT", .count = 1025 },
	{ "100,000 probes", probes, "IMG-LIMIT", .count = 100000 },
	{ "5,000 open questions", open_questions, "LIM-RESOURCE", .count = 5000 },
	{ "a switch of 4,096 places", switch_over, "accepted", .count = 4096, .mask = 4095,
	  .places = 4096 },
	{ "a million entries of which 4,096 are reached", switch_over, "accepted", .count = 1000000,
	  .mask = 4095, .places = 16 },
	{ "a jump table of a million entries", switch_over, "CFI-INDIRECT", .count = 1000000,
	  .mask = (1u << 19) - 1, .places = 16 },
	{ "an index beyond a million entries", switch_over, "CFI-INDIRECT MEM-BOUNDS",
	  .count = 1000000, .mask = (1u << 20) - 1, .places = 16 },
	{ "a million entries that lead anywhere", switch_over, "CFI-INDIRECT", .count = 1000000,
	  .mask = 4095, .places = 16, .scattered = true },
	{ "forty questions that no solver answers", hard_questions, "MEM-BOUNDS", .count = 40 },
	{ "a jump table of a million entries in the code", million_entry_table,
	  "CFI-INDIRECT MEM-REGION MEM-PERMISSION INS-UNSUPPORTED", .count = 1000000 },
	{ "8,800 large states and a table 4,090 times", states_and_tables,
	  "MEM-BOUNDS LIM-RESOURCE", .total_ms = 120000 },
};

static int judge(const struct scale_case *c)
{
	struct fay_verdict v;
	size_t size;
	uint8_t *bytes = c->make(&size, c);
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
