/* SPDX-License-Identifier: MIT */
/*
 * The table of vector instructions against the CPU, form by form: test_vector_cpu [CASES] (10,000 a
 * form).
 *
 * What the verifier claims of a vector instruction is which bytes it reads and writes, on what each
 * result byte depends, whether it needs alignment, whether it depends on MXCSR, and what it does to
 * general registers and flags. Each is tried with random operands and states:
 *
 *   dependence   two runs that agree in all bytes that count as initialised and differ in all
 *		  others must agree in every byte that the transfer function calls initialised
 *		  afterwards, in general registers, flags and memory
 *   writes       no other vector register changes; above the vector length VEX gives zeros and
 *		  legacy encoding keeps what was there
 *   numbers      what arrives in a general register lies within the transfer function's value
 *   MXCSR        instructions without the FP flag neither change it nor depend on it nor fault with
 *		  all exceptions unmasked
 *   flags        only rows with FLAGS change flags; these clear OF and SF
 *   width        with the last byte before an unmapped page no access faults, one byte further each
 *		  does; nothing around a store changes
 *   alignment    an odd address faults exactly where the table says ALIGN, or says nothing and the
 *		  legacy form has 16 bytes
 *
 * Forms that this CPU does not have are counted and named, not run.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/xorshift.h"
#include "vector_cpu.h"
#include "verifier/explain/explain.h"
#include "verifier/prover/transfer/transfer.h"

#define PAGE 4096u
#define WINDOW_AT 2016u /* where memory operands lie, of one_case() */
#define WINDOW 512u
#define MXCSR_DEFAULT 0x1f80u
#define ARITHMETIC_FLAGS 0x8d5u /* OF SF ZF AF PF CF */

static uint8_t *code, *data; /* data: one page, then nothing */
static sigjmp_buf fault_jump;
static unsigned failures;
static const struct vector_form *current_form;

static uint64_t random_state = 0x9e3779b97f4a7c15;
static uint64_t next_random(void)
{
	return xorshift(&random_state);
}
static unsigned below(unsigned limit)
{
	return (unsigned)(next_random() >> 33) % limit;
}

static void complain(const struct fay_insn *insn, const char *what)
{
	char text[128] = "";

	fay_disassemble(code, 15, 0x1000, false, text, sizeof(text));
	printf("FAIL %s%s.%u %s: %s: %s\n", current_form->vex ? "v" : "", current_form->row->name,
	       insn->vector * 8u, current_form->memory ? "mem" : "reg", text, what);
	failures++;
}

static void on_fault(int number)
{
	siglongjmp(fault_jump, number);
}

/* 0, or the signal. */
static int run(struct frame *frame)
{
	int number = sigsetjmp(fault_jump, 0);

	if (!number)
		vector_run(frame, code);
	else
		__asm__ volatile("ldmxcsr %0" : : "m"((uint32_t){ MXCSR_DEFAULT }));
	return number;
}

/* ---- the verifier's side ---- */

static struct fay_image image = { .header = { .local_size = PAGE } };
static struct fay_insn insn;
static struct fay_cfg cfg;
static struct fay_policy policy;
static struct fay_probe_facts facts;
static struct fay_analysis analysis;
static struct fay_state *state, *before;

/* The transfer function on: all numbers known to be numbers, `base` pointing to the page's byte
 * `offset`. */
static bool transfer(const uint32_t initialised[16], unsigned base, uint64_t offset)
{
	fay_state_copy(state, before);
	memcpy(state->vectors, initialised, sizeof(state->vectors));
	for (unsigned i = 0; i < 16; i++)
		if (i != FAY_RSP)
			state->loc[i] = fay_value_scalar(fay_scalar_top());
	state->loc[base] = fay_value_scalar(fay_scalar_const(offset));
	state->loc[base].kind = KIND_POINTER;
	state->loc[base].tag = REGION_LOCAL;
	state->flags_undefined = FLAG_ALL;
	facts = (struct fay_probe_facts){ 0 };
	analysis.pending_count = 0;
	return fay_transfer_vector(&analysis, &insn);
}

/* ---- one case ---- */

static void random_frame(struct frame *f)
{
	for (size_t i = 0; i < sizeof(f->vectors) / 8; i++) {
		uint64_t word = next_random();

		if (below(4) == 0) { /* ordinary floating-point numbers, small integers, extremes */
			double number = (double)(int64_t)(next_random() >> below(64)) / 3;
			static const uint64_t extremes[] = { 0,
							     1,
							     UINT64_MAX,
							     (uint64_t)1 << 63,
							     0x7ff0000000000000,
							     0x7ff8000000000001,
							     0x3f800000bf800000 };

			memcpy(&word, &number, 8);
			if (below(3) == 0)
				word = extremes[below(7)];
		}
		memcpy((uint8_t *)f->vectors + 8 * i, &word, 8);
	}
	for (unsigned i = 0; i < 16; i++)
		f->gpr[i] = next_random();
	f->flags = 2 | (next_random() & ARITHMETIC_FLAGS);
	f->mxcsr = MXCSR_DEFAULT;
}

static void random_initialised(uint32_t initialised[16])
{
	static const uint32_t masks[] = { 0xff, 0xf, 0xffff, 0xffff0000, 0xff00, 0xffff00ff, 0 };

	bool all = below(3) == 0;

	for (unsigned i = 0; i < 16; i++)
		initialised[i] = all || below(2) ? UINT32_MAX
				 : below(2)      ? masks[below(7)]
						 : (uint32_t)next_random();
}

/* Other numbers in all bytes that are not initialised. */
static void disturb(struct frame *f, const uint32_t initialised[16])
{
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < 32; k++)
			if (!(initialised[i] >> k & 1))
				f->vectors[i][k] = (uint8_t)next_random();
}

static void check_registers(const struct frame *in, const struct frame *out)
{
	const struct fay_vector_row *row = fay_vector_row(&insn);
	unsigned written = row->flags & VFLAG_NARROW || row->shape == VSHAPE_MRI ? 16 : insn.vector;

	for (unsigned i = 0; i < 16; i++) {
		bool changed = memcmp(in->vectors[i], out->vectors[i], 32) != 0;

		if (changed && !(facts.clobbered_vectors >> i & 1))
			complain(&insn,
				 "a vector register changes that is not among the clobbered");
		if (changed && !insn.vex && memcmp(in->vectors[i] + 16, out->vectors[i] + 16, 16))
			complain(&insn, "a legacy form changes the upper half");
		if (insn.vex && written == 16 && facts.clobbered_vectors >> i & 1)
			for (unsigned k = 16; k < 32; k++)
				if (out->vectors[i][k])
					complain(&insn, "a VEX form does not zero the upper half");
		if (i == FAY_RSP)
			continue;
		if (in->gpr[i] != out->gpr[i] &&
		    !(insn.dst.kind == OPERAND_REG && insn.dst.reg == i))
			complain(&insn, "a general register changes");
	}
	if (insn.dst.kind == OPERAND_REG &&
	    !fay_scalar_contains(&state->loc[insn.dst.reg].s, out->gpr[insn.dst.reg]))
		complain(&insn, "the general register is outside its value");
	if (insn.dst.kind == OPERAND_REG && insn.width == 32 && out->gpr[insn.dst.reg] >> 32)
		complain(&insn, "a 32-bit write does not zero-extend");
}

static void check_flags(const struct frame *in, const struct frame *out)
{
	uint64_t changed = (in->flags ^ out->flags) & ARITHMETIC_FLAGS;

	if (!(fay_vector_row(&insn)->flags & VFLAG_FLAGS) && changed)
		complain(&insn, "flags change");
	if (fay_vector_row(&insn)->flags & VFLAG_FLAGS && out->flags & 0x880)
		complain(&insn, "OF or SF is set");
	if (!facts.uses_mxcsr && out->mxcsr != in->mxcsr)
		complain(&insn, "MXCSR changes");
}

static void check_same(const struct frame *a, const struct frame *b, const uint8_t *memory_a)
{
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < 32; k++)
			if (state->vectors[i] >> k & 1 && a->vectors[i][k] != b->vectors[i][k]) {
				complain(&insn, "a byte that counts as initialised depends on one "
						"that does not");
				return;
			}
	if (memcmp(a->gpr, b->gpr, sizeof(a->gpr)) || (a->flags ^ b->flags) & ARITHMETIC_FLAGS)
		complain(&insn,
			 "a general register or flag depends on a byte that is not initialised");
	if (memcmp(memory_a, data + WINDOW_AT, WINDOW))
		complain(&insn, "memory depends on a byte that is not initialised");
}

static bool one_case(const struct vector_operands *operands, uint64_t offset)
{
	static uint8_t memory[WINDOW], memory_a[WINDOW];
	struct frame in, a, b, c;
	uint32_t initialised[16];

	random_frame(&in);
	random_initialised(initialised);
	in.gpr[operands->base] = (uint64_t)data + offset;
	if (!transfer(initialised, operands->base, offset))
		return false;
	for (unsigned i = 0; i < 64; i++)
		memory[offset + (uint64_t)operands->disp - 8 + i - WINDOW_AT] =
			(uint8_t)next_random();
	memcpy(data + WINDOW_AT, memory, WINDOW);
	a = in;
	if (run(&a)) {
		complain(&insn, "it faults");
		return true;
	}
	memcpy(memory_a, data + WINDOW_AT, WINDOW);
	check_registers(&in, &a);
	check_flags(&in, &a);
	memcpy(data + WINDOW_AT, memory, WINDOW);
	b = in;
	disturb(&b, initialised);
	run(&b);
	check_same(&a, &b, memory_a);
	for (uint64_t i = 0; i < WINDOW; i++) {
		bool inside = insn.dst.kind == OPERAND_MEM &&
			      WINDOW_AT + i - (offset + (uint64_t)operands->disp) < insn.access;

		if (!inside && memory_a[i] != memory[i]) {
			complain(&insn, "memory changes outside the operand");
			break;
		}
	}
	if (!facts.uses_mxcsr) {
		static const uint32_t others[] = { 0, 0x7fc0, 0xe000, 0x3f };

		c = in;
		c.mxcsr = others[below(4)];
		memcpy(data + WINDOW_AT, memory, WINDOW);
		if (run(&c))
			complain(&insn, "an exception of MXCSR's");
		else if (memcmp(a.vectors, c.vectors, sizeof(a.vectors)) ||
			 memcmp(a.gpr, c.gpr, sizeof(a.gpr)))
			complain(&insn, "the result depends on MXCSR");
	}
	return true;
}

/* ---- width and alignment ---- */

static int fault_at(const struct vector_operands *operands, uint64_t first_byte)
{
	struct frame f;

	random_frame(&f);
	f.gpr[operands->base] = (uint64_t)data + first_byte - (uint64_t)operands->disp;
	return run(&f);
}

static void check_memory(const struct vector_operands *operands)
{
	uint8_t flags = fay_vector_row(&insn)->flags;
	bool strict =
		flags & VFLAG_ALIGN || (!insn.vex && insn.access == 16 && !(flags & VFLAG_LOOSE));

	if (fault_at(operands, PAGE - insn.access))
		complain(&insn, "reads or writes more bytes than stated, or needs more alignment");
	if (!fault_at(operands, PAGE - insn.access + (strict ? insn.access : 1)))
		complain(&insn, "reads or writes fewer bytes than stated");
	if ((fault_at(operands, PAGE / 2 + 1) != 0) != strict)
		complain(&insn, strict ? "needs no alignment" : "needs alignment");
}

/* ---- forms ---- */

static struct vector_operands random_operands(void)
{
	static const uint8_t bases[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RBX, FAY_RSI, FAY_RDI,
					 FAY_R8,  FAY_R9,  FAY_R11, FAY_R14, FAY_R15 };
	struct vector_operands o = { .reg = below(16),
				     .vvvv = below(16),
				     .rm = below(16),
				     .base = bases[below(sizeof(bases))],
				     .disp = (int8_t)(16 * below(8)),
				     .imm = (uint8_t)below(256) };

	if (below(4) == 0)
		o.rm = o.vvvv; /* idioms */
	if (below(6) == 0)
		o.rm = o.reg;
	return o;
}

/* Writing rsp would be the end of this program. */
static bool writes_rsp(void)
{
	return (insn.dst.kind == OPERAND_REG && insn.dst.reg == FAY_RSP) ||
	       (insn.src.kind == OPERAND_REG && insn.src.reg == FAY_RSP);
}

static uint64_t test_form(const struct vector_form *form, uint64_t cases, struct fay_arena *arena)
{
	uint64_t ran = 0, tried = 0;

	current_form = form;
	while (ran < cases && tried < 16 * cases && failures < 20) {
		struct vector_operands operands = random_operands();
		unsigned length = vector_place(form, &operands, code);

		if (fay_decode(arena, code, length, 0x1000, &insn).rule != FAY_RULE_NONE) {
			complain(&insn, "is not decoded");
			break;
		}
		if (writes_rsp())
			continue;
		if (form->memory && tried < 64)
			check_memory(&operands);
		for (unsigned i = 0; i < 64; i++, tried++)
			ran += one_case(&operands, 2048 + 32 * below(8));
	}
	return ran;
}

static void set_up(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	data = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	state = fay_state_create(FAY_MAX_LOCATIONS);
	before = fay_state_create(FAY_MAX_LOCATIONS);
	if (code == MAP_FAILED || data == MAP_FAILED || !state || !before ||
	    mprotect(data + PAGE, PAGE, PROT_NONE)) {
		perror("test_vector_cpu");
		exit(1);
	}
	fay_state_entry(before);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	sigaction(SIGFPE, &action, NULL);
	sigaction(SIGILL, &action, NULL);
	fay_policy_default(&policy);
	cfg.insns = &insn;
	analysis = (struct fay_analysis){ .image = &image,
					  .policy = &policy,
					  .cfg = &cfg,
					  .current = state,
					  .facts = &facts,
					  .checking = true };
}

int main(int argc, char **argv)
{
	uint64_t cases = argc > 1 ? strtoull(argv[1], NULL, 0) : 10000, ran = 0,
		 fewest = UINT64_MAX;
	unsigned at = 0, forms = 0, missing = 0;
	struct vector_form form;

	if (!__builtin_cpu_supports("avx")) {
		printf("skipped: the states compared are whole AVX registers, which this CPU does "
		       "not have\n");
		return 77;
	}
	set_up();
	while (vector_form_next(&at, &form) && failures < 20) {
		struct fay_arena *arena = analysis.arena = fay_arena_create((size_t)64 << 20);
		struct vector_operands operands = random_operands();
		uint64_t done;

		if (fay_decode(arena, code, vector_place(&form, &operands, code), 0x1000, &insn)
				    .rule == FAY_RULE_NONE &&
		    !vector_cpu_has(fay_vector_features(&insn))) {
			printf("not on this CPU: %s%s\n", form.vex ? "VEX " : "", form.row->name);
			missing++;
		} else {
			done = test_form(&form, cases, arena);
			fewest = done < fewest ? done : fewest;
			ran += done;
			forms++;
		}
		fay_arena_destroy(arena);
	}
	printf("%u forms, %llu cases, at least %llu a form; %u forms not on this CPU; %u "
	       "failures\n",
	       forms, (unsigned long long)ran, (unsigned long long)fewest, missing, failures);
	return failures != 0;
}
