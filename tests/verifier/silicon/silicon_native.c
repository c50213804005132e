/* SPDX-License-Identifier: MIT */
/* One instruction between loads and stores of all general registers and the flags, in a page of its
 * own. */
#include "silicon.h"
#include "tests/xorshift.h"

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

struct silicon_frame *frame;
static uint8_t *code;
static size_t slot; /* where the instruction under test goes in the code */
static sigjmp_buf divide_jump;
static uint64_t random_state = 0x2545f4914f6cdd1d;

void random_seed(uint64_t seed)
{
	random_state = seed * 0x9e3779b97f4a7c15 | 1;
}

uint64_t next_random(void)
{
	return xorshift(&random_state);
}

/* Corner cases, numbers of few bits, powers of two and their neighbours, anything. */
uint64_t random_value(void)
{
	static const uint64_t edges[] = { 0,
					  1,
					  2,
					  UINT64_MAX,
					  0x80,
					  0x7f,
					  0xff,
					  0x8000,
					  0x7fff,
					  0xffff,
					  0x80000000,
					  0x7fffffff,
					  0xffffffff,
					  0x8000000000000000,
					  0x7fffffffffffffff,
					  0xffffffff80000000,
					  31,
					  32,
					  33,
					  63,
					  64 };
	uint64_t choice = next_random();

	switch (choice & 7) {
	case 0:
	case 1: return edges[(choice >> 8) % (sizeof(edges) / sizeof(*edges))];
	case 2:
	case 3: return next_random() >> (choice >> 8 & 63);
	case 4: return ((uint64_t)1 << (choice >> 8 & 63)) + (choice >> 16 & 3) - 1;
	default: return next_random();
	}
}

/* opcode bytes + modrm for [rip + target] */
static size_t emit_rip(size_t at, const uint8_t *opcode, size_t count, unsigned reg,
		       const void *target)
{
	int32_t displacement;

	memcpy(code + at, opcode, count);
	at += count;
	code[at++] = (uint8_t)(reg << 3 | 5);
	displacement = (int32_t)((const uint8_t *)target - (code + at + 4));
	memcpy(code + at, &displacement, 4);
	return at + 4;
}

static size_t emit_move(size_t at, unsigned reg, bool store, const void *target)
{
	uint8_t opcode[2] = { (uint8_t)(0x48 | (reg & 8 ? 4 : 0)), store ? 0x89 : 0x8b };

	return emit_rip(at, opcode, 2, reg & 7, target);
}

static void make_code(void)
{
	static const uint8_t save[] = {
		0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57
	};
	static const uint8_t restore[] = { 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d,
					   0x41, 0x5c, 0x5d, 0x5b, 0xc3 };
	static const uint8_t push_memory[] = { 0xff }, pop_memory[] = { 0x8f };
	size_t at = sizeof(save);

	memcpy(code, save, sizeof(save));
	at = emit_rip(at, push_memory, 1, 6, &frame->flags_in);
	code[at++] = 0x9d; /* popf */
	at = emit_move(at, FAY_RSP, true, &frame->saved_rsp);
	for (unsigned i = 0; i < 16; i++)
		at = emit_move(at, i, false, &frame->in[i]);
	slot = at;
	at += 15;
	for (unsigned i = 0; i < 16; i++)
		at = emit_move(at, i, true, &frame->out[i]);
	at = emit_move(at, FAY_RSP, false, &frame->saved_rsp);
	code[at++] = 0x9c; /* pushf */
	at = emit_rip(at, pop_memory, 1, 0, &frame->flags_out);
	memcpy(code + at, restore, sizeof(restore));
}

static void on_divide(int signal)
{
	(void)signal;
	siglongjmp(divide_jump, 1);
}

void silicon_set_up(void)
{
	/* The handler runs on its own stack: rsp may be the small buffer when the division faults.
	 * */
	static uint8_t handler_stack[65536];
	stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
	struct sigaction action = { .sa_handler = on_divide, .sa_flags = SA_ONSTACK };

	/* Code, frame, guard, memory, guard. */
	code = mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) ||
	    mprotect(code + PAGE, PAGE, PROT_READ | PROT_WRITE) ||
	    mprotect(code + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGFPE, &action, NULL)) {
		perror("silicon");
		exit(1);
	}
	frame = (void *)(code + PAGE);
	frame->stack = code + 4 * PAGE - SILICON_STACK;
	frame->below = frame->stack - SILICON_BELOW;
	make_code();
}

void silicon_load(const uint8_t *bytes, size_t length)
{
	memset(code + slot, 0x90, 15);
	memcpy(code + slot, bytes, length);
}

bool silicon_run(bool may_divide)
{
	if (may_divide && sigsetjmp(divide_jump, 1))
		return false;
	((void (*)(void))code)();
	return true;
}

static const struct {
	uint8_t flag;
	unsigned bit;
} flag_bits[] = { { FLAG_CF, 0 }, { FLAG_PF, 2 }, { FLAG_ZF, 6 }, { FLAG_SF, 7 }, { FLAG_OF, 11 } };

uint64_t silicon_eflags(uint8_t flags)
{
	uint64_t eflags = 2;

	for (unsigned i = 0; i < 5; i++)
		eflags |= flags & flag_bits[i].flag ? (uint64_t)1 << flag_bits[i].bit : 0;
	return eflags;
}

uint8_t silicon_flags(uint64_t eflags)
{
	uint8_t flags = 0;

	for (unsigned i = 0; i < 5; i++)
		flags |= eflags >> flag_bits[i].bit & 1 ? flag_bits[i].flag : 0;
	return flags;
}

bool silicon_has(uint32_t features)
{
	unsigned a, b, c, d, b7 = 0, c80 = 0;
	uint32_t have = 0;

	if (__get_cpuid(1, &a, &b, &c, &d))
		have |= (c & bit_POPCNT ? FAY_CPU_POPCNT : 0) | (c & bit_MOVBE ? FAY_CPU_MOVBE : 0);
	if (__get_cpuid_count(7, 0, &a, &b7, &c, &d))
		have |= (b7 & bit_BMI ? FAY_CPU_BMI1 : 0) | (b7 & bit_BMI2 ? FAY_CPU_BMI2 : 0);
	if (__get_cpuid(0x80000001, &a, &b, &c80, &d))
		have |= c80 & bit_LZCNT ? FAY_CPU_LZCNT : 0;
	return !(features & ~have);
}
