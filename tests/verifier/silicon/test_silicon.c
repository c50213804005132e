/* SPDX-License-Identifier: MIT */
/*
 * Semantics against silicon: test_silicon [CASES [SEED]]
 *
 * Every encoding that the decoder admits and that does not jump is a form: map, opcode, operation,
 * widths, register or memory, prefixes. For each form random instances (registers, immediates,
 * addressing) run natively in states of random and corner-case numbers, CASES of them (10,000), and
 * the outcome is compared with
 *
 *   the exact semantics on numbers (exec.c): all registers, all memory, every defined flag; both
 *     divide by zero or neither;
 *   the transfer function: from a random abstract state that contains the concrete one the result
 *     must contain the concrete result: numbers, initialised bytes
 *   (what depends on a byte that must not be read must not count as initialised), distances between
 *     names, undefined flags, and what each condition says of the operands.
 *   A path that ends must have left an obligation;
 *   the exact semantics as Z3's terms, with the numbers put in: equal, once a form (every twentieth
 *     form if CASES is less than 10,000).
 *
 * Each operation on terms is compared on its own, too. The child runs, so that what a faulting
 * instruction leaves behind is its name.
 *
 * Jumps are covered by their conditions, which setcc and cmov share, and by the control test below.
 * A form whose instruction the CPU lacks is named and skipped.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "silicon.h"
#include "silicon_check.h"
#include "verifier/explain/exec.h"
#include "verifier/explain/explain.h"

static unsigned cases_a_form = 10000;
static struct fay_arena *arena;
static unsigned forms, skipped, failures;
static uint64_t ran, divided, abstract_ended, terms_compared;
static uint8_t before_memory[SILICON_BELOW + SILICON_STACK],
	after_memory[SILICON_BELOW + SILICON_STACK];
static struct {
	char text[128];
} *running; /* shared with the parent */

static void complain(const struct fay_insn *insn, const char *what, uint64_t expected, uint64_t got)
{
	static const char *const names[] = {
		"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};

	if (++failures > 20)
		return;
	printf("%s (%s, flags %#lx): %s: CPU %#lx, here %#lx\n", running->text,
	       fay_op_table[insn->op].name, (unsigned long)frame->flags_in, what,
	       (unsigned long)expected, (unsigned long)got);
	for (unsigned i = 0; i < 16; i++)
		printf("  %s=%016lx%s", names[i], (unsigned long)frame->in[i],
		       i % 4 == 3 ? "\n" : "");
}

static void random_machine(const struct fay_insn *insn)
{
	uint64_t *in = frame->in;

	for (unsigned i = 0; i < 16; i++)
		in[i] = random_value();
	if ((insn->op == OP_DIV || insn->op == OP_IDIV) && (next_random() & 3)) {
		in[FAY_RDX] = insn->op == OP_IDIV && in[FAY_RAX] >> (insn->width - 1) & 1
				      ? UINT64_MAX
				      : 0;
		if (insn->width == 8)
			in[FAY_RAX] = insn->op == OP_IDIV ? (uint64_t)(int8_t)in[FAY_RAX]
							  : (uint8_t)in[FAY_RAX];
	}
	in[FAY_RSP] = (uint64_t)frame->stack;
	if (insn->op == OP_LEAVE)
		in[FAY_RBP] = (uint64_t)(frame->stack + 8 * (next_random() & 15));
	if (insn->op == OP_REP_MOVS || insn->op == OP_REP_STOS) {
		in[FAY_RCX] = next_random() & 7;
		in[FAY_RDI] = (uint64_t)(frame->stack + (next_random() & 63));
		in[FAY_RSI] = (uint64_t)(frame->stack + (next_random() & 63));
	} else if (insn->dst.kind == OPERAND_MEM || insn->src.kind == OPERAND_MEM) {
		in[FAY_R14] =
			(uint64_t)(frame->stack +
				   (insn->locked || insn->op == OP_XCHG ? 16 : next_random() & 31));
		in[FAY_R13] = next_random() & 3;
	}
	frame->flags_in = silicon_eflags((uint8_t)(next_random() & FLAG_ALL));
	for (unsigned i = 0; i < SILICON_STACK; i += 8) {
		uint64_t value = i & 24 ? next_random() : random_value();

		memcpy(frame->stack + i, &value, 8);
	}
	/* Without this cmpxchg would hardly ever find what it looks for. */
	if (insn->op == OP_CMPXCHG && (next_random() & 1)) {
		uint64_t address = in[FAY_R14] + (uint64_t)insn->dst.disp +
				   (insn->dst.index == FAY_R13 ? in[FAY_R13] * insn->dst.scale : 0);

		memcpy((void *)address, &in[FAY_RAX], 8);
	}
}

/* The interpreter on the same state. */
static enum fay_exec_status interpret(const struct fay_insn *insn, struct fay_machine *m)
{
	*m = (struct fay_machine){ .region_count = 1, .flags = silicon_flags(frame->flags_in) };
	memcpy(m->gpr, frame->in, sizeof(m->gpr));
	memcpy(after_memory, before_memory, sizeof(after_memory));
	m->regions[0] = (struct fay_exec_region){ (uint64_t)frame->below, sizeof(after_memory),
						  after_memory, true, "memory" };
	return fay_exec_step(m, insn);
}

static void compare_exact(const struct fay_insn *insn, const struct fay_machine *m)
{
	/* bsf and bsr of 0 leave the destination undefined (SDM); AMD and newer Intel keep it. */
	bool keeps_any = (insn->op == OP_BSF || insn->op == OP_BSR) && (m->flags & FLAG_ZF);
	uint8_t differing = (uint8_t)((m->flags ^ silicon_flags(frame->flags_out)) &
				      ~m->flags_undefined & FLAG_ALL);

	if (m->rip != insn->address + insn->length)
		complain(insn, "rip", insn->address + insn->length, m->rip);
	for (unsigned i = 0; i < 16; i++)
		if (m->gpr[i] != frame->out[i] && !(keeps_any && i == insn->dst.reg))
			complain(insn, "a register", frame->out[i], m->gpr[i]);
	if (memcmp(after_memory, frame->below, sizeof(after_memory)) != 0)
		complain(insn, "memory", 0, 0);
	if (differing)
		complain(insn, "flags", silicon_flags(frame->flags_out), m->flags);
}

static void one_case(const struct fay_insn *insn, bool terms)
{
	bool divides = insn->op == OP_DIV || insn->op == OP_IDIV, native;
	struct fay_machine m;
	enum fay_exec_status status;
	struct silicon_state before;
	const char *wrong;

	random_machine(insn);
	memcpy(before_memory, frame->below, sizeof(before_memory));
	status = interpret(insn, &m);
	native = silicon_run(divides);
	ran++;
	if (!native || status == EXEC_DIVIDE) {
		divided++;
		if (native || status != EXEC_DIVIDE)
			complain(insn, "divide error", !native, status == EXEC_DIVIDE);
		return;
	}
	if (status != EXEC_OK) {
		complain(insn, "status", EXEC_OK, status);
		return;
	}
	compare_exact(insn, &m);
	before = (struct silicon_state){ .gpr = frame->in,
					 .flags = silicon_flags(frame->flags_in),
					 .memory = before_memory,
					 .base = (uint64_t)frame->below };
	wrong = silicon_check_abstract(insn, &before, &m, after_memory, &abstract_ended);
	if (wrong)
		complain(insn, wrong, 0, 0);
	if (!terms)
		return;
	terms_compared++;
	wrong = silicon_check_terms(insn, &before, &m, after_memory);
	if (wrong)
		complain(insn, wrong, 0, 0);
}

/* A solver's context costs 10 ms: of short runs only every twentieth form has its terms compared,
 * of long ones sixteen instances each. */
static unsigned term_instances(void)
{
	return cases_a_form > 10000 ? 16 : cases_a_form == 10000 ? 1 : forms % 20 == 0;
}

static void each_form(const struct form *form)
{
	unsigned states = cases_a_form >= 1000 ? 250 : 10,
		 instances = (cases_a_form + states - 1) / states;

	forms++;
	for (unsigned i = 0; i < instances && failures <= 20; i++) {
		uint8_t bytes[15];
		struct fay_insn insn;

		if (!silicon_instance(arena, form, bytes, &insn, 8192)) {
			printf("a form has no instance: map %u opcode %02x digit %u W %u 66 %u "
			       "lock %u memory %u VEX map %u prefix %u\n",
			       form->map, form->opcode, form->digit, form->rex_w, form->p66,
			       form->lock, form->memory, form->vex_map, form->vex_pp);
			failures++;
			return;
		}
		fay_disassemble(bytes, 15, insn.address, false, running->text,
				sizeof(running->text));
		if (!silicon_has(fay_op_table[insn.op].features)) {
			printf("skipped: %s: this CPU lacks %s\n", running->text,
			       fay_cpu_feature_name(
				       (unsigned)__builtin_ctz(fay_op_table[insn.op].features)));
			skipped++;
			return;
		}
		silicon_load(bytes, insn.length);
		for (unsigned k = 0; k < states; k++)
			one_case(&insn, i < term_instances() && k == 0);
	}
	if (forms % 16 == 0) { /* refusals leave text */
		fay_arena_destroy(arena);
		arena = fay_arena_create((size_t)512 << 20);
		silicon_check_reset(arena);
	}
}

static void expect(bool holds, const char *what)
{
	if (!holds)
		printf("control: %s\n", what), failures++;
}

/* What the CPU cannot be asked in place: faults change nothing, calls push, returns pop, undefined
 * flags are noticed. */
static void check_control(void)
{
	uint8_t stack[64] = { 0 };
	struct fay_machine m = { .gpr[FAY_RSP] = 0x8020,
				 .rip = 0x1000,
				 .region_count = 1,
				 .regions = { { 0x8000, 64, stack, true, "stack" } } };
	struct fay_insn call = {
		.address = 0x1000, .length = 5, .op = OP_CALL, .width = 64, .target = 0x2000
	};
	struct fay_insn ret = { .address = 0x2000, .length = 1, .op = OP_RET, .width = 64 };
	struct fay_insn jcc = { .address = 0x1005,
				.length = 2,
				.op = OP_JCC,
				.width = 64,
				.cc = CC_E,
				.target = 0x1100 };
	uint64_t pushed;

	expect(fay_exec_step(&m, &call) == EXEC_OK, "call");
	memcpy(&pushed, stack + 0x18, 8);
	expect(pushed == 0x1005 && m.rip == 0x2000 && m.gpr[FAY_RSP] == 0x8018,
	       "call pushes and jumps");
	expect(fay_exec_step(&m, &ret) == EXEC_OK && m.rip == 0x1005 && m.gpr[FAY_RSP] == 0x8020,
	       "ret pops");
	expect(fay_exec_step(&m, &jcc) == EXEC_OK && m.rip == 0x1007, "je falls through");
	m.flags = FLAG_ZF;
	expect(fay_exec_step(&m, &jcc) == EXEC_OK && m.rip == 0x1100, "je jumps");
	m.flags_undefined = FLAG_ZF;
	expect(fay_exec_step(&m, &jcc) == EXEC_UNDEFINED_FLAGS && m.rip == 0x1100,
	       "an undefined flag is noticed");
	m.gpr[FAY_RSP] = 0x8004;
	expect(fay_exec_step(&m, &call) == EXEC_FAULT_WRITE && m.fault_address == 0x7ffc &&
		       m.gpr[FAY_RSP] == 0x8004 && m.rip == 0x1100,
	       "a fault changes nothing");
	m.gpr[FAY_RSP] = 0x8039; /* the last byte of the slot lies outside */
	expect(fay_exec_step(&m, &ret) == EXEC_FAULT_READ, "the whole slot must exist");
}

static int run(void)
{
	arena = fay_arena_create((size_t)512 << 20);
	silicon_set_up();
	if (!arena || !silicon_check_create(arena))
		return 2;
	check_control();
	failures += silicon_check_term_operations(200);
	silicon_each_form(&arena, each_form);
	printf("%u forms (%u skipped), %lu cases (%lu divide errors), all compared with this CPU; "
	       "%lu abstract paths ended with an obligation; "
	       "%lu cases as terms\n",
	       forms, skipped, (unsigned long)ran, (unsigned long)divided,
	       (unsigned long)abstract_ended, (unsigned long)terms_compared);
	expect(forms > 1000, "fewer forms than there are");
	expect(ran >= (uint64_t)(forms - skipped) * cases_a_form,
	       "fewer cases than were asked for");
	silicon_check_destroy();
	fay_arena_destroy(arena);
	fflush(stdout);
	return failures ? 1 : 0;
}

int main(int argc, char **argv)
{
	int status;
	pid_t child;

	if (argc > 1)
		cases_a_form = (unsigned)strtoul(argv[1], NULL, 0);
	if (argc > 2)
		random_seed(strtoull(argv[2], NULL, 0));
	running = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(run());
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	if (WIFSIGNALED(status)) {
		printf("killed by signal %d (%s) at or after %s\n", WTERMSIG(status),
		       strsignal(WTERMSIG(status)), running->text);
		return 1;
	}
	return WEXITSTATUS(status);
}
