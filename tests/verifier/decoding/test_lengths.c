/* SPDX-License-Identifier: MIT */
/*
 * The decoder's lengths against the CPU, by the page-edge method, and its agreement with the two
 * other readers.
 *
 *	test_lengths [SYSTEMATIC-STRIDE [RANDOM-ACCEPTED [SEED]]]      (31, 300000, 1)
 *
 * An instruction is put so that it ends where an executable page ends; the page after it is not
 * accessible. If the CPU needs more bytes than our decoder says, the fetch faults at the edge with
 * rip still at the instruction's start. With its last byte cut off the fetch must fault exactly so.
 * The two together say that the CPU's length is ours. What the instruction itself does is of no
 * interest: all registers but the stack pointer hold non-canonical numbers, so an access to memory
 * ends in a fault that names no address, or one near NO_STACK, and the code is far from all other
 * mappings.
 *
 * Each experiment ends in a signal, whose handler notes the outcome and sets up the next experiment
 * in the interrupted context: no system call but sigreturn.
 *
 * The systematic part goes through prefixes, opcode maps, opcodes, ModRM and a few SIB bytes with
 * random displacements and immediates; every STRIDEth is tried. The random part takes random bytes
 * until so many were accepted.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/xorshift.h"
#include "verifier/isa/isa.h"
#include "verifier/prover/decoders/agree.h"

#define PAGE 4096u
#define CODE ((uint8_t *)0x500000000000)
#define EDGE (CODE + PAGE)
#define NOWHERE 0x2a2a000000000000u /* not canonical, nor is a sum of a few of them */
#define NO_STACK 0x2a2a00000000u    /* nothing is mapped near it */

static uint8_t *writable; /* the same page as CODE */
static struct fay_arena *arena;
static struct fay_agree *agree;
static unsigned long stride, wanted, tried, accepted, experiments;
static uint64_t seed;
static bool failed;

/* The experiment in hand. */
static struct {
	uint8_t bytes[15];
	unsigned length; /* ours */
	bool cut;        /* without its last byte */
	bool active;
} now;
static gregset_t home; /* main() in raise() */
static unsigned char alternate[65536];

static uint64_t next_random(void)
{
	return xorshift(&seed);
}

/* ---- which bytes ---- */

static const uint8_t prefixes[][3] = {
	/* length first */
	{ 0 },
	{ 1, 0x66 },
	{ 1, 0xf0 },
	{ 1, 0xf2 },
	{ 1, 0xf3 },
	{ 1, 0x67 },
	{ 1, 0x2e },
	{ 1, 0x65 },
	{ 2, 0x66, 0xf0 },
	{ 2, 0x66, 0x66 },
	{ 2, 0xf3, 0x66 },
};
static const uint8_t rexes[] = { 0, 0x40, 0x41, 0x44, 0x45, 0x48, 0x49, 0x4a, 0x4d, 0x4f };
/* Escapes before the opcode; VEX of two and three bytes get random fields. */
static const uint8_t escapes[][4] = {
	{ 0 },          { 1, 0x0f },       { 2, 0x0f, 0x38 }, { 2, 0x0f, 0x3a },
	{ 2, 0xc5, 0 }, { 3, 0xc4, 1, 0 }, { 3, 0xc4, 2, 0 }, { 3, 0xc4, 3, 0 }
};
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static unsigned long position;

/* The next of the systematic list; false at its end. */
static bool systematic(uint8_t bytes[24])
{
	unsigned long at = position, n = 0;
	unsigned prefix, rex, escape, opcode, modrm;

	position += stride;
	modrm = (unsigned)(at % 256), at /= 256;
	opcode = (unsigned)(at % 256), at /= 256;
	escape = (unsigned)(at % COUNT(escapes)), at /= COUNT(escapes);
	rex = (unsigned)(at % COUNT(rexes)), at /= COUNT(rexes);
	prefix = (unsigned)at;
	if (prefix >= COUNT(prefixes))
		return false;
	for (unsigned i = 0; i < prefixes[prefix][0]; i++)
		bytes[n++] = prefixes[prefix][1 + i];
	if (rexes[rex])
		bytes[n++] = rexes[rex];
	for (unsigned i = 0; i < escapes[escape][0]; i++)
		bytes[n++] = escapes[escape][1 + i];
	if (n > 1 && bytes[n - 1] == 0 && escapes[escape][0] > 1)
		bytes[n - 1] = (uint8_t)next_random();
	if (escapes[escape][0] == 3)
		bytes[n - 2] |= (uint8_t)(next_random() & 0xe0);
	bytes[n++] = (uint8_t)opcode;
	bytes[n++] = (uint8_t)modrm;
	for (unsigned i = 0; i < 12; i++)
		bytes[n++] = (uint8_t)next_random();
	return true;
}

static bool at_random(uint8_t bytes[24])
{
	static const uint8_t starts[] = { 0x48, 0x0f, 0x66, 0xf3, 0xf0, 0xc5, 0xc4, 0x49 };
	uint64_t choice = next_random();

	for (unsigned i = 0; i < 16; i++)
		bytes[i] = (uint8_t)(next_random() >> 8);
	if (choice & 1)
		bytes[0] = starts[choice >> 1 & 7];
	if ((choice & 0x30) == 0)
		bytes[1] = 0x0f;
	return wanted-- != 0;
}

static void complain(const char *what)
{
	printf("FAIL %s: %u bytes:", what, now.length);
	for (unsigned i = 0; i < now.length; i++)
		printf(" %02x", now.bytes[i]);
	printf("\n");
	failed = true;
}

/* Sets `now` to the next bytes that are accepted; false if there are none left. */
static bool choose(void)
{
	static bool random_part;
	uint8_t bytes[24] = { 0 };
	struct fay_insn insn;

	for (;;) {
		if (!random_part && !systematic(bytes))
			random_part = true;
		if (random_part && !at_random(bytes))
			return false;
		tried++;
		if (tried % 100000 == 0) {
			fay_arena_destroy(arena);
			arena = fay_arena_create(64 << 20);
		}
		if (fay_decode(arena, bytes, 15, (uint64_t)CODE, &insn).rule != FAY_RULE_NONE) {
			wanted += random_part;
			continue;
		}
		accepted++;
		memcpy(now.bytes, bytes, 15);
		now.length = insn.length;
		if (fay_agree_check(agree, arena, bytes, 15, &insn).rule != FAY_RULE_NONE)
			complain("the other readers disagree");
		now.cut = false;
		/* A jump to itself would not end. */
		if ((insn.op == OP_JMP || insn.op == OP_JCC || insn.op == OP_CALL) &&
		    insn.target == insn.address)
			continue;
		return true;
	}
}

/* ---- experiments ---- */

static void set_up(ucontext_t *context)
{
	unsigned shown = now.length - now.cut;
	greg_t *r = context->uc_mcontext.gregs;

	memset(writable, 0xcc, PAGE);
	memcpy(writable + PAGE - shown, now.bytes, shown);
	for (int i = REG_R8; i <= REG_RSP; i++)
		r[i] = (greg_t)NOWHERE;
	/* some hypervisors do not return to a program with another stack pointer */
	r[REG_RSP] = NO_STACK;
	r[REG_RIP] = (greg_t)(EDGE - shown);
	r[REG_EFL] = 0x202;
	now.active = true;
	experiments++;
}

static void judge(const siginfo_t *info, const ucontext_t *context)
{
	const uint8_t *rip = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP],
		      *start = EDGE - (now.length - now.cut);
	bool starved = info->si_signo == SIGSEGV && rip == start && info->si_addr == EDGE;

	if (now.cut && !starved)
		complain("the CPU does not miss the last byte");
	if (!now.cut && starved)
		complain("the CPU wants more bytes");
	if (!now.cut && info->si_signo == SIGILL)
		complain("the CPU knows no such instruction");
}

static void on_signal(int number, siginfo_t *info, void *interrupted)
{
	ucontext_t *context = interrupted;

	(void)number;
	if (!experiments)
		memcpy(home, context->uc_mcontext.gregs, sizeof(home));
	if (now.active) {
		judge(info, context);
		now.active = false;
		if (!now.cut && now.length > 1) {
			now.cut = true;
			set_up(context);
			return;
		}
	}
	if (!failed && choose())
		set_up(context);
	else
		memcpy(context->uc_mcontext.gregs, home, sizeof(home));
}

/*
 * 67 E8, which ld makes of a call through the GOT: its target is not cut to 32 bits, as an address
 * would be. The page lies above 4 GiB. The call goes over a ret to what gives 42 and returns there.
 */
static bool relaxed_call_is_a_call(void)
{
	static const uint8_t code[] = { 0x67, 0xe8, 1, 0, 0, 0, 0xc3, 0xb8, 42, 0, 0, 0, 0xc3 };
	struct fay_insn insn;
	int (*function)(void) = (int (*)(void))(uintptr_t)CODE;

	memcpy(writable, code, sizeof(code));
	if (fay_decode(arena, code, sizeof(code), (uint64_t)CODE, &insn).rule != FAY_RULE_NONE ||
	    insn.op != OP_CALL || insn.length != 6 || insn.target != (uint64_t)CODE + 7 ||
	    fay_agree_check(agree, arena, code, sizeof(code), &insn).rule != FAY_RULE_NONE)
		return false;
	return function() == 42;
}

int main(int argc, char **argv)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	int fd = memfd_create("edge", 0);

	stride = argc > 1 ? strtoul(argv[1], NULL, 0) : 31;
	wanted = argc > 2 ? strtoul(argv[2], NULL, 0) : 300000;
	seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	arena = fay_arena_create(64 << 20);
	agree = fay_agree_create();
	if (fd < 0 || ftruncate(fd, PAGE) || !arena || !agree || !stride || !seed)
		return 4;
	writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (writable == MAP_FAILED ||
	    mmap(CODE, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) !=
		    CODE ||
	    mmap(EDGE, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
		    EDGE) {
		perror("test_lengths: the pages");
		return 4;
	}
	if (!relaxed_call_is_a_call()) {
		printf("FAIL a direct call with prefix 67\n");
		return 1;
	}
	sigaltstack(&stack, NULL);
	for (unsigned i = 0; i < COUNT(signals); i++)
		sigaction(signals[i], &action, NULL);
	raise(SIGTRAP); /* its handler begins the chain, and returns here at last */
	printf("%lu byte strings tried, %lu accepted, %lu experiments on the CPU, seed %s\n", tried,
	       accepted, experiments, argc > 3 ? argv[3] : "1");
	fay_agree_destroy(agree);
	fay_arena_destroy(arena);
	if (accepted < 1000) {
		printf("FAIL too few were accepted to say anything\n");
		return 1;
	}
	return failed;
}
