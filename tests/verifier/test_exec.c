/* SPDX-License-Identifier: MIT */
/*
 * The concrete interpreter against the CPU it runs on.
 *
 * Every encoding that the decoder admits and that does not jump is a form: map, opcode, operation, widths, register or memory, lock. For each form random
 * instances (registers, immediates, addressing) run natively in a small buffer and in exec.c, from the same random registers, flags and memory; all
 * registers, all memory and every defined flag must come out the same, and both must divide by zero or neither. Jumps are covered by their
 * conditions, which setcc and cmov share.
 *
 * FAY_EXEC_INSTANCES sets the instances a form (2000).
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "decode.h"
#include "exec.h"

#define BUFFER 256

/* Laid out for the generated code, which reaches it rip-relative. */
struct frame {
	uint64_t in[16], out[16];
	uint64_t flags_in, flags_out, saved_rsp;
	uint8_t memory[BUFFER], stack[BUFFER];
};

static uint8_t *code;
static size_t slot; /* where the instruction under test goes in the code */
static struct frame *frame;
static sigjmp_buf divide_jump;
static struct fay_arena *arena;

static uint64_t random_state = 0x2545f4914f6cdd1d;
static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t random_value(void)
{
	static const uint64_t edges[] = { 0, 1, 2, UINT64_MAX, 0x80, 0x7f, 0xff, 0x8000, 0x7fff, 0xffff, 0x80000000, 0x7fffffff, 0xffffffff,
					  0x8000000000000000, 0x7fffffffffffffff, 0xffffffff80000000, 31, 32, 33, 63, 64 };
	uint64_t choice = next_random();

	if ((choice & 3) == 0)
		return edges[(choice >> 8) % (sizeof(edges) / sizeof(*edges))];
	if ((choice & 3) == 1)
		return next_random() >> (choice >> 8 & 63);
	return next_random();
}

/* opcode bytes + modrm for [rip + target] */
static size_t emit_rip(size_t at, const uint8_t *opcode, size_t count, unsigned reg, const void *target)
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
	static const uint8_t save[] = { 0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57 };
	static const uint8_t restore[] = { 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3 };
	static const uint8_t push_memory[] = { 0xff }, pop_memory[] = { 0x8f };
	size_t at = 0;

	code = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(code != MAP_FAILED);
	frame = (void *)(code + 4096);
	memcpy(code, save, sizeof(save));
	at += sizeof(save);
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

static const struct {
	uint8_t flag;
	unsigned bit;
} flag_bits[] = { { FLAG_CF, 0 }, { FLAG_PF, 2 }, { FLAG_ZF, 6 }, { FLAG_SF, 7 }, { FLAG_OF, 11 } };

static uint64_t to_eflags(uint8_t flags)
{
	uint64_t eflags = 2;
	for (unsigned i = 0; i < 5; i++)
		eflags |= flags & flag_bits[i].flag ? (uint64_t)1 << flag_bits[i].bit : 0;
	return eflags;
}

static uint8_t from_eflags(uint64_t eflags)
{
	uint8_t flags = 0;
	for (unsigned i = 0; i < 5; i++)
		flags |= eflags >> flag_bits[i].bit & 1 ? flag_bits[i].flag : 0;
	return flags;
}

static void on_divide(int signal)
{
	siglongjmp(divide_jump, 1);
}

/* Runs the bytes natively; false if they raised #DE. */
static bool run_native(const uint8_t *bytes, size_t length, bool may_divide)
{
	memset(code + slot, 0x90, 15);
	memcpy(code + slot, bytes, length);
	if (may_divide && sigsetjmp(divide_jump, 1))
		return false;
	((void (*)(void))code)();
	return true;
}

static void complain(const struct fay_insn *insn, const uint8_t *bytes, const char *what, uint64_t expected, uint64_t got)
{
	char text[128] = "?";

	fay_disassemble(bytes, 15, insn->address, text, sizeof(text));
	for (unsigned i = 0; i < 16; i++)
		print_message("%s=%016lx%c", (const char *[]){ "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
							      "r12", "r13", "r14", "r15" }[i], (unsigned long)frame->in[i], i % 4 == 3 ? '\n' : ' ');
	fail_msg("%s (flags in %#lx): %s: CPU %#lx, interpreter %#lx", text, (unsigned long)frame->flags_in, what, (unsigned long)expected,
		 (unsigned long)got);
}

static void random_machine(const struct fay_insn *insn)
{
	for (unsigned i = 0; i < 16; i++)
		frame->in[i] = random_value();
	if ((insn->op == OP_DIV || insn->op == OP_IDIV) && (next_random() & 3))
		frame->in[FAY_RDX] = insn->op == OP_IDIV && frame->in[FAY_RAX] >> (insn->width - 1) & 1 ? UINT64_MAX : 0;
	frame->in[FAY_RSP] = (uint64_t)(frame->stack + BUFFER / 2);
	if (insn->op == OP_LEAVE)
		frame->in[FAY_RBP] = (uint64_t)(frame->stack + BUFFER / 2 + 8 * (next_random() & 7));
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS) {
		frame->in[FAY_RCX] = next_random() & 15;
		frame->in[FAY_RDI] = (uint64_t)(frame->memory + (next_random() & 127));
		frame->in[FAY_RSI] = (uint64_t)(frame->memory + (next_random() & 127));
	} else if (insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM) {
		frame->in[FAY_R14] = (uint64_t)(frame->memory + BUFFER / 2);
		frame->in[FAY_R13] = next_random() & 3;
	}
	frame->flags_in = to_eflags((uint8_t)(next_random() & FLAG_ALL));
	for (unsigned i = 0; i < BUFFER; i += 8) {
		uint64_t value = random_value(), other = random_value();
		memcpy(frame->memory + i, &value, 8);
		memcpy(frame->stack + i, &other, 8);
	}
	/* Without this cmpxchg would hardly ever find what it looks for. */
	if (insn->op == OP_CMPXCHG && (next_random() & 1)) {
		uint64_t address = frame->in[FAY_R14] + (uint64_t)insn->dst.disp +
				   (insn->dst.index == FAY_R13 ? frame->in[FAY_R13] * insn->dst.scale : 0);
		memcpy((void *)address, &frame->in[FAY_RAX], 8);
	}
}

static void check_instance(const struct fay_insn *insn, const uint8_t *bytes)
{
	uint8_t memory[BUFFER], stack[BUFFER], differing;
	struct fay_machine m = { .region_count = 2 };
	bool divides = insn->op == OP_DIV || insn->op == OP_IDIV, native;
	enum fay_exec_status status;
	bool keeps_any = false;

	random_machine(insn);
	memcpy(memory, frame->memory, BUFFER);
	memcpy(stack, frame->stack, BUFFER);
	memcpy(m.gpr, frame->in, sizeof(m.gpr));
	m.flags = from_eflags(frame->flags_in);
	m.regions[0] = (struct fay_exec_region){ (uint64_t)frame->memory, BUFFER, memory, true, "memory" };
	m.regions[1] = (struct fay_exec_region){ (uint64_t)frame->stack, BUFFER, stack, true, "stack" };
	status = fay_exec_step(&m, insn);
	native = run_native(bytes, insn->length, divides);
	if (!native || status == EXEC_DIVIDE) {
		if (native || status != EXEC_DIVIDE)
			complain(insn, bytes, "divide error", !native, status == EXEC_DIVIDE);
		return;
	}
	if (status != EXEC_OK)
		complain(insn, bytes, "status", EXEC_OK, status);
	if (m.rip != insn->address + insn->length)
		complain(insn, bytes, "rip", insn->address + insn->length, m.rip);
	/* bsf and bsr of 0 leave the destination undefined (SDM); AMD and newer Intel keep it. */
	if (insn->op == OP_BSF || insn->op == OP_BSR)
		keeps_any = m.flags & FLAG_ZF;
	for (unsigned i = 0; i < 16; i++) {
		if (m.gpr[i] != frame->out[i] && !(keeps_any && i == insn->dst.reg))
			complain(insn, bytes, fay_op_table[insn->op].name, frame->out[i], m.gpr[i]);
	}
	if (memcmp(memory, frame->memory, BUFFER) != 0 || memcmp(stack, frame->stack, BUFFER) != 0)
		complain(insn, bytes, "memory", 0, 0);
	differing = (uint8_t)((m.flags ^ from_eflags(frame->flags_out)) & ~m.flags_undefined & FLAG_ALL);
	if (differing)
		complain(insn, bytes, "flags", from_eflags(frame->flags_out), m.flags);
}

struct form {
	uint8_t map, opcode, digit, rex_w, p66, lock, memory;
	bool any_digit; /* the ModRM reg field is a register, or there is no ModRM byte */
};

/* Random bytes of a form: the decoder says whether they are legal. */
static void make_bytes(const struct form *form, uint8_t bytes[15])
{
	uint64_t random = next_random(), immediate = random_value();
	uint8_t rex = (uint8_t)((random & 7) | (form->rex_w ? 8 : 0)), reg = form->any_digit ? random >> 24 & 7 : form->digit, sib = 0;
	size_t at = 0;

	if (form->memory)
		rex |= 1; /* base r14 */
	memset(bytes, 0, 15);
	if (form->lock)
		bytes[at++] = 0xf0;
	if (form->p66)
		bytes[at++] = 0x66;
	if (form->map >= 2)
		bytes[at++] = 0xf3;
	if (rex || random & 8)
		bytes[at++] = 0x40 | rex;
	if (form->map == 1 || form->map == 2)
		bytes[at++] = 0x0f;
	bytes[at++] = form->opcode;
	if (!form->memory) {
		bytes[at++] = (uint8_t)(0xc0 | reg << 3 | (random >> 8 & 7));
	} else {
		bool index = random >> 12 & 1; /* r13 needs REX.X */

		bytes[at++] = (uint8_t)(0x40 | reg << 3 | (index ? 4 : 6));
		sib = (uint8_t)((random >> 16 & 3) << 6 | 5 << 3 | 6);
		if (index)
			bytes[at++] = sib;
		bytes[at++] = (uint8_t)(random >> 20 & 63);
	}
	for (unsigned i = 0; i < 8 && at < 15; i++)
		bytes[at++] = (uint8_t)(immediate >> 8 * i);
}

static bool testable_operand(const struct fay_insn *insn, const struct fay_operand *o)
{
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS)
		return true;
	if (o->kind == OPERAND_REG)
		return o->reg != FAY_RSP;
	if (o->kind == OPERAND_MEM)
		return o->base == FAY_R14 && (o->index == FAY_NO_REG || o->index == FAY_R13) && !o->rip && o->disp >= 0 && o->disp < 64;
	return true;
}

/* An instance of the form that can run here. */
static bool make_instance(const struct form *form, uint8_t bytes[15], struct fay_insn *insn, unsigned attempts)
{
	for (unsigned attempt = 0; attempt < attempts; attempt++) {
		bool memory;

		make_bytes(form, bytes);
		if (fay_decode(arena, bytes, 15, 0x1000, insn).rule != FAY_RULE_NONE)
			continue;
		memory = insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM;
		if ((insn->op >= OP_JMP && insn->op <= OP_RET) || insn->op == OP_RDTSC || insn->op == OP_VECTOR) /* test_vector.c */
			return false;
		/* lea and the forms without ModRM decode either way; one is enough */
		if (memory != (bool)form->memory)
			continue;
		if (testable_operand(insn, &insn->dst) && testable_operand(insn, &insn->src))
			return true;
	}
	return false;
}

/* Whether all digits mean one operation. found[]: which digits mean any. */
static bool one_operation(struct form *form, bool found[8])
{
	bool same = true;
	uint8_t bytes[15], op = OP_COUNT;
	struct fay_insn insn;

	for (form->digit = 0; form->digit < 8; form->digit++) {
		found[form->digit] = make_instance(form, bytes, &insn, 48);
		if (!found[form->digit])
			same = false;
		else if (op == OP_COUNT)
			op = insn.op;
		else
			same = same && insn.op == op;
	}
	return same;
}

static unsigned forms_of_opcode(unsigned map, unsigned opcode, unsigned instances, uint64_t *ran)
{
	unsigned forms = 0;

	for (unsigned bits = 0; bits < 16; bits++) {
		struct form form = { .map = (uint8_t)map, .opcode = (uint8_t)opcode, .rex_w = bits & 1, .p66 = bits >> 1 & 1,
				     .lock = bits >> 2 & 1, .memory = bits >> 3 & 1 };

		bool found[8];

		form.any_digit = one_operation(&form, found);
		for (form.digit = 0; form.digit < (form.any_digit ? 1 : 8); form.digit++) {
			uint8_t bytes[15];
			struct fay_insn insn;

			if (!form.any_digit && !found[form.digit])
				continue;
			forms++;
			for (unsigned i = 0; i < instances && make_instance(&form, bytes, &insn, 512); i++, ++*ran)
				check_instance(&insn, bytes);
			fay_arena_destroy(arena);
			arena = fay_arena_create((size_t)512 << 20);
		}
	}
	return forms;
}

static void test_forms(void **state)
{
	const char *setting = getenv("FAY_EXEC_INSTANCES");
	unsigned instances = setting ? (unsigned)atoi(setting) : 2000, forms = 0;
	uint64_t ran = 0;
	/* cmocka sets its own handlers before each test. The handler runs on its own stack: rsp may be the test's small buffer when the division faults. */
	static uint8_t handler_stack[65536];
	stack_t stack = { .ss_sp = handler_stack, .ss_size = sizeof(handler_stack) };
	struct sigaction action = { .sa_handler = on_divide, .sa_flags = SA_ONSTACK };

	assert_int_equal(sigaltstack(&stack, NULL) | sigaction(SIGFPE, &action, NULL), 0);
	for (unsigned map = 0; map < 4; map++) {
		for (unsigned opcode = 0; opcode < 256; opcode++) /* 0F leads to the other maps */
			forms += (map == 0 || map == 3) && opcode == 0x0f ? 0 : forms_of_opcode(map, opcode, instances, &ran);
	}
	print_message("%u forms, %lu instances, all as on this CPU\n", forms, (unsigned long)ran);
	assert_true(forms > 500);
	assert_true(ran >= (uint64_t)forms * instances * 9 / 10);
}

static struct fay_exec_region stack_region(uint8_t *bytes)
{
	return (struct fay_exec_region){ 0x8000, 64, bytes, true, "stack" };
}

/* What the CPU cannot be asked in place: faults change nothing, calls push, returns pop, undefined flags are noticed. */
static void test_control(void **state)
{
	uint8_t stack[64] = { 0 };
	struct fay_machine m = { .gpr[FAY_RSP] = 0x8020, .rip = 0x1000, .region_count = 1, .regions = { stack_region(stack) } };
	struct fay_insn call = { .address = 0x1000, .length = 5, .op = OP_CALL, .width = 64, .target = 0x2000 };
	struct fay_insn ret = { .address = 0x2000, .length = 1, .op = OP_RET, .width = 64 };
	struct fay_insn jcc = { .address = 0x1005, .length = 2, .op = OP_JCC, .width = 64, .cc = CC_E, .target = 0x1100 };
	uint64_t pushed;

	assert_int_equal(fay_exec_step(&m, &call), EXEC_OK);
	memcpy(&pushed, stack + 0x18, 8);
	assert_int_equal(pushed, 0x1005);
	assert_int_equal(m.rip, 0x2000);
	assert_int_equal(m.gpr[FAY_RSP], 0x8018);
	assert_int_equal(fay_exec_step(&m, &ret), EXEC_OK);
	assert_int_equal(m.rip, 0x1005);
	assert_int_equal(m.gpr[FAY_RSP], 0x8020);
	assert_int_equal(fay_exec_step(&m, &jcc), EXEC_OK);
	assert_int_equal(m.rip, 0x1007);
	m.flags = FLAG_ZF;
	assert_int_equal(fay_exec_step(&m, &jcc), EXEC_OK);
	assert_int_equal(m.rip, 0x1100);
	m.flags_undefined = FLAG_ZF;
	assert_int_equal(fay_exec_step(&m, &jcc), EXEC_UNDEFINED_FLAGS);
	assert_int_equal(m.rip, 0x1100);
	m.gpr[FAY_RSP] = 0x8004;
	assert_int_equal(fay_exec_step(&m, &call), EXEC_FAULT_WRITE);
	assert_int_equal(m.fault_address, 0x7ffc);
	assert_int_equal(m.gpr[FAY_RSP], 0x8004);
	assert_int_equal(m.rip, 0x1100);
	m.gpr[FAY_RSP] = 0x8039; /* the last byte of the slot lies outside */
	assert_int_equal(fay_exec_step(&m, &ret), EXEC_FAULT_READ);
}

static int set_up(void **state)
{
	make_code();
	arena = fay_arena_create((size_t)512 << 20);
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	fay_arena_destroy(arena);
	munmap(code, 3 * 4096);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control),
		cmocka_unit_test(test_forms),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
