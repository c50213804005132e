/* SPDX-License-Identifier: MIT */
/*
 * The decoder and its two witnesses: golden cases (decode.cases), real compiled code, random bytes.
 *
 * On compiled code and on random bytes the property is the one the verifier rests on: whatever our
 * decoder admits, Zydis and Capstone read the same way. On compiled code it is also checked that
 * our decoder finds every instruction boundary that Zydis finds.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/xorshift.h"
#include "verifier/explain/explain.h"
#include "verifier/prover/decoders/agree.h"

#define ARENA_BYTES ((size_t)256 << 20)

static struct fay_agree *agree;

static size_t parse_hex(const char *text, uint8_t *bytes, size_t max)
{
	size_t count = 0;
	unsigned byte;
	int used;

	while (count < max && sscanf(text, " %2x%n", &byte, &used) == 1) {
		bytes[count++] = (uint8_t)byte;
		text += used;
	}
	return count;
}

static void golden_case(unsigned number, const char *hex, const char *expected)
{
	struct fay_arena *arena = fay_arena_create(1 << 20);
	struct fay_insn insn;
	uint8_t bytes[32];
	char got[64];
	size_t size = parse_hex(hex, bytes, sizeof(bytes));
	struct fay_refusal refusal = fay_decode(arena, bytes, size, 0x1000, &insn);

	if (refusal.rule != FAY_RULE_NONE)
		snprintf(got, sizeof(got), "%s", fay_rule_id(refusal.rule));
	else
		snprintf(got, sizeof(got), "%s %u", fay_op_table[insn.op].name, insn.width);
	if (strcmp(got, expected) != 0)
		fail_msg("decode.cases:%u: %s: expected %s, got %s (%s)", number, hex, expected,
			 got, refusal.what ? refusal.what : "");
	if (refusal.rule == FAY_RULE_NONE) {
		if (insn.length != size)
			fail_msg("decode.cases:%u: %s: length %u", number, hex, insn.length);
		refusal = fay_agree_check(agree, arena, bytes, size, &insn);
		if (refusal.rule != FAY_RULE_NONE)
			fail_msg("decode.cases:%u: %s: %s", number, hex, refusal.what);
	}
	fay_arena_destroy(arena);
}

static void test_golden(void **state)
{
	FILE *file = fopen(DECODE_CASES, "r");
	char line[256];
	unsigned number = 0, cases = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char *bar = strchr(line, '|');

		number++;
		if (line[0] == '#' || !bar)
			continue;
		*bar = '\0';
		bar[1 + strcspn(bar + 1, "\n")] = '\0';
		golden_case(number, line, bar + 2);
		cases++;
	}
	fclose(file);
	assert_true(cases > 250);
}

struct counts {
	uint64_t seen, decoded, refused;
};

/* Checks one place; `length` is Zydis's. */
static void check_at(const uint8_t *bytes, size_t size, uint64_t address, int length,
		     struct fay_arena *arena, struct counts *counts)
{
	struct fay_insn insn;
	struct fay_refusal refusal = fay_decode(arena, bytes, size, address, &insn);

	counts->seen++;
	if (refusal.rule != FAY_RULE_NONE) {
		counts->refused++;
		return;
	}
	counts->decoded++;
	refusal = fay_agree_check(agree, arena, bytes, size, &insn);
	if (refusal.rule != FAY_RULE_NONE || insn.length != length) {
		char text[128] = "";

		fay_disassemble(bytes, size, address, false, text, sizeof(text));
		for (int i = 0; i < 15 && (size_t)i < size; i++)
			print_message("%02x ", bytes[i]);
		print_message("\n");
		fail_msg("%#lx: %s (Zydis: %s, %d bytes)", (unsigned long)address,
			 refusal.what ? refusal.what : "length", text, length);
	}
}

static void sweep_text(const uint8_t *text, size_t size, uint64_t address, struct counts *counts)
{
	struct fay_arena *arena = fay_arena_create(ARENA_BYTES);

	for (size_t at = 0; at < size;) {
		char line[128];
		int length = fay_disassemble(text + at, size - at, address + at, false, line,
					     sizeof(line));

		if (length)
			check_at(text + at, size - at, address + at, length, arena, counts);
		at += length ? (size_t)length : 1;
		if (counts->seen % 100000 == 0) {
			fay_arena_destroy(arena);
			arena = fay_arena_create(ARENA_BYTES);
		}
	}
	fay_arena_destroy(arena);
}

static bool sweep_file(const char *path, struct counts *counts)
{
	int fd = open(path, O_RDONLY);
	struct stat stat;
	const uint8_t *file;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	const char *names;

	if (fd < 0 || fstat(fd, &stat) != 0)
		return false;
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	assert_true(file != MAP_FAILED);
	header = (const void *)file;
	sections = (const void *)(file + header->e_shoff);
	names = (const char *)file + sections[header->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < header->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, ".text") == 0)
			sweep_text(file + sections[i].sh_offset, sections[i].sh_size,
				   sections[i].sh_addr, counts);
	}
	munmap((void *)file, (size_t)stat.st_size);
	return true;
}

/* Code that others compiled: this program, the C library, a shell. */
static void test_real_text(void **state)
{
	static const char *const paths[] = { "/proc/self/exe", "/bin/dash", "/bin/bash" };
	struct counts counts = { 0 };

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		sweep_file(paths[i], &counts);
	print_message("real code: %lu instructions, %lu decoded, %lu refused\n",
		      (unsigned long)counts.seen, (unsigned long)counts.decoded,
		      (unsigned long)counts.refused);
	assert_true(counts.seen > 10000);
	assert_true(counts.decoded * 10 > counts.seen * 7);
}

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t next_random(void)
{
	return xorshift(&random_state);
}

/* Random bytes behind a random opcode: half of them with a plausible prefix. */
static void test_random_bytes(void **state)
{
	static const uint8_t starts[] = { 0x48, 0x0f, 0x66, 0xf0, 0xf3, 0x41, 0x44, 0x40 };
	struct fay_arena *arena = fay_arena_create(ARENA_BYTES);
	struct counts counts = { 0 };

	for (unsigned i = 0; i < 1000000; i++) {
		uint8_t bytes[16];
		uint64_t words[2] = { next_random(), next_random() };
		unsigned choice = (unsigned)(next_random() >> 32);
		size_t size = 16;
		char line[128];
		struct fay_insn insn;

		memcpy(bytes, words, 16);
		if (choice & 1)
			bytes[0] = starts[choice >> 1 & 7];
		if ((choice & 0x30) == 0)
			bytes[1] = 0x0f;
		if ((choice & 0xf00) == 0)
			size = 1 + (choice >> 12) % 8;
		if (fay_decode(arena, bytes, size, 0x400000, &insn).rule == FAY_RULE_NONE)
			check_at(bytes, size, 0x400000,
				 fay_disassemble(bytes, size, 0x400000, false, line, sizeof(line)),
				 arena, &counts);
		if (i % 50000 == 0) {
			fay_arena_destroy(arena);
			arena = fay_arena_create(ARENA_BYTES);
		}
	}
	fay_arena_destroy(arena);
	print_message("random bytes: %lu of 1000000 decoded, all agreed\n",
		      (unsigned long)counts.decoded);
	assert_true(counts.decoded > 100000);
}

/* The witnesses notice when our reading is wrong in any one respect. */
static void object_to(const uint8_t *bytes, size_t size, const struct fay_insn *insn,
		      const char *respect)
{
	struct fay_arena *arena = fay_arena_create(1 << 20);
	/* one that has not yet agreed to these bytes */
	struct fay_agree *fresh = fay_agree_create();

	assert_non_null(fresh);
	if (fay_agree_check(fresh, arena, bytes, size, insn).rule != FAY_RULE_DEC_DISAGREE)
		fail_msg("a wrong %s goes unnoticed", respect);
	fay_agree_destroy(fresh);
	fay_arena_destroy(arena);
}

#define OBJECT(field, value)                                                                       \
	do {                                                                                       \
		struct fay_insn wrong = insn;                                                      \
		wrong.field = value;                                                               \
		object_to(bytes, size, &wrong, #field);                                            \
	} while (0)

static void test_objections(void **state)
{
	/* lock add [rbx+rcx*4+16], rcx */
	static const uint8_t add[] = { 0xf0, 0x48, 0x01, 0x4c, 0x8b, 0x10 };
	static const uint8_t imul[] = { 0x48, 0x69, 0xc1, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t load[] = { 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00 };
	static const uint8_t jump[] = { 0x0f, 0x84, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t call[] = { 0xff, 0x15, 0x00, 0x10, 0x00, 0x00 };
	static const uint8_t extend[] = { 0x0f, 0xb6, 0x07 };
	static const uint8_t shift[] = { 0xc1, 0xe0, 0x04 };
	static const struct {
		const uint8_t *bytes;
		size_t size;
	} cases[] = { { add, sizeof(add) },    { imul, sizeof(imul) }, { load, sizeof(load) },
		      { jump, sizeof(jump) },  { call, sizeof(call) }, { extend, sizeof(extend) },
		      { shift, sizeof(shift) } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const uint8_t *bytes = cases[i].bytes;
		size_t size = cases[i].size;
		struct fay_arena *arena = fay_arena_create(1 << 20);
		struct fay_insn insn;

		assert_int_equal(fay_decode(arena, bytes, size, 0x4000, &insn).rule, FAY_RULE_NONE);
		assert_int_equal(fay_agree_check(agree, arena, bytes, size, &insn).rule,
				 FAY_RULE_NONE);
		OBJECT(length, insn.length - 1);
		OBJECT(op, OP_BSWAP);
		OBJECT(locked, !insn.locked);
		if (insn.target)
			OBJECT(target, insn.target + 1);
		if (insn.op == OP_JCC)
			OBJECT(cc, CC_NE);
		if (insn.dst.kind == OPERAND_REG)
			OBJECT(dst.reg, FAY_R9);
		if (insn.dst.kind == OPERAND_MEM) {
			OBJECT(dst.disp, 17);
			OBJECT(dst.base, FAY_RAX);
			OBJECT(dst.base, FAY_NO_REG);
			OBJECT(dst.index, FAY_RDX);
			OBJECT(dst.index, FAY_NO_REG);
			OBJECT(dst.scale, 8);
			OBJECT(dst.rip, true);
			OBJECT(width, 32);
			OBJECT(dst.kind, OPERAND_REG);
		}
		if (insn.src.kind == OPERAND_REG)
			OBJECT(src.reg, FAY_RSP);
		if (insn.src.kind == OPERAND_IMM)
			OBJECT(src.imm, insn.src.imm + 1);
		if (insn.src.kind == OPERAND_MEM) {
			OBJECT(src.disp, insn.src.disp + 1);
			OBJECT(src_width, 16);
		}
		if (insn.op == OP_IMUL) {
			OBJECT(src2.imm, 0x101);
			OBJECT(src2.kind, OPERAND_NONE);
		}
		fay_arena_destroy(arena);
	}
}

static int set_up(void **state)
{
	agree = fay_agree_create();
	return agree ? 0 : -1;
}

static int tear_down(void **state)
{
	fay_agree_destroy(agree);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_objections),
		cmocka_unit_test(test_real_text),
		cmocka_unit_test(test_random_bytes),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
