/* SPDX-License-Identifier: MIT */
/* What is looked at in the signal handler after each instruction, and how helpers are played there;
 * see native.c. */
#include "native_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX 20000u
#define DIRECTION_FLAG 0x400
/* of MXCSR: floating-point probes may set them, the dispatcher restores them */
#define STICKY_FLAGS 0x3fu

static unsigned char alternate[65536];

/* Registers of a ucontext in encoding order. */
static const uint8_t gregs[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				   REG_R12, REG_R13, REG_R14, REG_R15 };

static uint64_t reg(const ucontext_t *c, unsigned gpr)
{
	return (uint64_t)c->uc_mcontext.gregs[gregs[gpr]];
}

static void leave(ucontext_t *c)
{
	now.running = false;
	memcpy(c->uc_mcontext.gregs, now.home, sizeof(now.home));
}

static void broken(ucontext_t *c, const char *what, uint64_t detail)
{
	snprintf(now.complaint, sizeof(now.complaint), "%s (%#llx) at %#llx, instruction %llu",
		 what, (unsigned long long)detail,
		 (unsigned long long)((uint64_t)c->uc_mcontext.gregs[REG_RIP] - (uint64_t)now.code +
				      now.image->layout_base),
		 (unsigned long long)now.steps);
	leave(c);
}

/* Whether [address, +size) lies in a region, the stack from rsp to below the return address. */
static bool inside(const ucontext_t *c, uint64_t address, uint64_t size, bool write)
{
	uint64_t rodata = (uint64_t)now.code + (now.image->rodata.start - now.image->layout_base);

	for (unsigned i = 0; i < AT_COUNT; i++) {
		/* the call has pushed */
		uint64_t low = i == AT_STACK ? reg(c, FAY_RSP) + 8 : (uint64_t)now.at[i].bytes;
		uint64_t room = i == AT_STACK ? now.rsp - low : now.at[i].size;

		if (address - low <= room && size <= room - (address - low) &&
		    (!write || now.at[i].writable))
			return true;
	}
	return !write && now.image->rodata.size && address - rodata <= now.image->rodata.size &&
	       size <= now.image->rodata.size - (address - rodata);
}

static const char *play(ucontext_t *c, unsigned helper)
{
	uint64_t rdi = reg(c, FAY_RDI), rsi = reg(c, FAY_RSI), rdx = reg(c, FAY_RDX),
		 rsp = reg(c, FAY_RSP);
	const struct fay_schema *schema = &now.image->schema;
	static const uint8_t scratch[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					   FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	uint64_t result = soundness_below(&now.random, 2);

	if (!(now.facts->helpers & 1u << helper))
		return "a helper that the report does not name";
	if (rsp % 16 != 8)
		return "a misaligned call";
	if (helper == FAY_HELPER_TRY_READ) {
		if (rsi > FAY_TRY_READ_MAX || (rsi && !inside(c, rdi, rsi, true)))
			return "fay_try_read outside";
		native_scramble(&now.random, (void *)rdi, rsi);
		result = -result;
	} else {
		if (rdi != (uint64_t)now.at[AT_LOCAL].bytes || rsi >= schema->state_count)
			return "flush or emit with wrong arguments";
		if (helper == FAY_HELPER_EMIT &&
		    !inside(c, rdx, schema->states[rsi].row_size, false))
			return "fay_emit of a row outside";
		if (helper == FAY_HELPER_FLUSH && schema->states[rsi].scope == FAY_SCOPE_LOCAL)
			memset(now.at[AT_LOCAL].bytes + schema->states[rsi].offset, 0,
			       schema->states[rsi].size);
	}
	native_scramble(&now.secret, now.at[AT_STACK].bytes + PAGE,
			rsp - (uint64_t)now.at[AT_STACK].bytes - PAGE);
	for (unsigned i = 0; i < sizeof(scratch); i++)
		c->uc_mcontext.gregs[gregs[scratch[i]]] = (greg_t)soundness_next(&now.secret);
	c->uc_mcontext.gregs[REG_RAX] = (greg_t)result;
	memcpy(&c->uc_mcontext.gregs[REG_RIP], (void *)rsp, 8);
	c->uc_mcontext.gregs[REG_RSP] += 8;
	return NULL;
}

static void check_return(ucontext_t *c)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };
	const uint8_t *low = now.at[AT_STACK].bytes, *top = (const uint8_t *)now.rsp;
	uint64_t address;

	memcpy(&address, top, 8);
	if (reg(c, FAY_RSP) != now.rsp + 8) {
		broken(c, "rsp is wrong at return", reg(c, FAY_RSP));
		return;
	}
	for (unsigned i = 0; i < sizeof(saved); i++)
		if (reg(c, saved[i]) != (uint64_t)now.entry[gregs[saved[i]]]) {
			broken(c, "a callee-saved register changed", saved[i]);
			return;
		}
	for (unsigned r = 0; r < 16; r++)
		if (r != FAY_RSP && reg(c, r) != (uint64_t)now.entry[gregs[r]] &&
		    !(now.facts->clobbered_gprs & 1u << r)) {
			broken(c, "a register changed that the report does not name", r);
			return;
		}
	for (unsigned i = 0; i < 16; i++)
		if (!(now.facts->clobbered_vectors & 1u << i) &&
		    memcmp(now.vectors + 16 * i, &c->uc_mcontext.fpregs->_xmm[i], 16)) {
			broken(c, "a vector register changed that the report does not name", i);
			return;
		}
	if (address != RETURN_ADDRESS)
		broken(c, "the return address was overwritten", address);
	/* The lowest page of the stack belongs to nobody: helpers do not scribble there. */
	for (unsigned i = 0; i < PAGE && now.running; i++)
		if (low[i] != 0xa5)
			broken(c, "a write far below the promised stack", i);
	if (now.running)
		leave(c);
}

/* After an indirect jump: whether `at`, an offset in .text, is among the places that the report
 * names. */
static bool foreseen(uint64_t at)
{
	const struct fay_cfg *cfg = now.cfg;
	struct fay_jump jump = { .from = now.last ? now.last->address : 0,
				 .to = now.image->text.start + at };

	if (!now.last || now.last->op != OP_JMP_TABLE)
		return true;
	return cfg->jump_count &&
	       bsearch(&jump, cfg->jumps, cfg->jump_count, sizeof(jump), fay_jump_compare);
}

void native_hide(void)
{
	if (now.last)
		memset(now.patch + (now.last->address - now.image->layout_base), INT3,
		       now.last->length);
	now.last = NULL;
}

/* The instruction, and no other, may run. */
static void show(const struct fay_insn *insn)
{
	uint64_t at = insn->address - now.image->layout_base;

	native_hide();
	now.last = insn;
	memcpy(now.patch + at, now.image->layout.bytes + at, insn->length);
}

/* rip is at an instruction that is to run next. */
static void check_step(ucontext_t *c)
{
	uint64_t at = (uint64_t)c->uc_mcontext.gregs[REG_RIP] - (uint64_t)now.code -
		      (now.image->text.start - now.image->layout_base);
	struct place *global = &now.at[AT_GLOBAL];

	if (at >= now.image->text.size || !now.cfg->at[at] || now.cfg->at[at] > now.cfg->insn_count)
		broken(c, "execution of what was not decoded", at);
	else if (!foreseen(at))
		broken(c, "an indirect jump to a place that the report does not name", at);
	else if (c->uc_mcontext.gregs[REG_EFL] & DIRECTION_FLAG)
		broken(c, "the direction flag is set", 0);
	else if (reg(c, FAY_RSP) > now.rsp ||
		 now.rsp - reg(c, FAY_RSP) + 8 > now.facts->worst_stack)
		broken(c, "more stack than promised", reg(c, FAY_RSP));
	else if (((c->uc_mcontext.fpregs->mxcsr ^ now.mxcsr) &
		  ~(now.facts->uses_mxcsr ? STICKY_FLAGS : 0u)) ||
		 c->uc_mcontext.fpregs->cwd != now.control)
		broken(c, "floating-point control changed", c->uc_mcontext.fpregs->mxcsr);
	else if (now.steps >= now.facts->worst_instructions)
		broken(c, "more instructions than promised", now.facts->worst_instructions);
	else if (now.steps++ >= STEPS_MAX)
		leave(c);
	else
		show(&now.cfg->insns[now.cfg->at[at] - 1]);
	if (global->size && soundness_below(&now.random, 8) == 0)
		global->bytes[soundness_below(&now.random, global->size)] =
			(uint8_t)soundness_next(&now.random);
}

static void begin(ucontext_t *c)
{
	greg_t *g = c->uc_mcontext.gregs;

	memcpy(now.home, g, sizeof(now.home));
	for (unsigned r = 0; r < 16; r++)
		g[gregs[r]] = (greg_t)soundness_next(&now.secret);
	g[REG_RDI] = (greg_t)now.at[AT_EVENT].bytes;
	g[REG_RSI] = (greg_t)now.at[AT_LOCAL].bytes;
	g[REG_RDX] = (greg_t)now.at[AT_GLOBAL].bytes;
	g[REG_RSP] = (greg_t)now.rsp;
	g[REG_RIP] = (greg_t)(now.code + now.facts->code_offset);
	/* the flags of arithmetic are anything */
	g[REG_EFL] = 0x202 | (greg_t)(soundness_next(&now.secret) & 0x8d5);
	memcpy(now.entry, g, sizeof(now.entry));
	native_scramble(&now.secret, c->uc_mcontext.fpregs->_xmm, sizeof(now.vectors));
	memcpy(now.vectors, c->uc_mcontext.fpregs->_xmm, sizeof(now.vectors));
	now.mxcsr = c->uc_mcontext.fpregs->mxcsr;
	now.control = c->uc_mcontext.fpregs->cwd;
	now.running = true;
	check_step(c);
}

static void on_signal(int number, siginfo_t *info, void *interrupted)
{
	ucontext_t *c = interrupted;
	uint64_t rip = (uint64_t)c->uc_mcontext.gregs[REG_RIP];

	if (!now.running) {
		if (!now.armed)
			signal(number, SIG_DFL); /* a fault of the test itself */
		else
			begin(c);
		now.armed = false;
		return;
	}
	if (number == SIGTRAP) { /* behind an int3 */
		c->uc_mcontext.gregs[REG_RIP]--;
		check_step(c);
	} else if (number == SIGSEGV && rip == RETURN_ADDRESS) {
		check_return(c);
	} else if (number == SIGSEGV && rip - NOWHERE < FAY_HELPER_COUNT) {
		const char *wrong = play(c, (unsigned)(rip - NOWHERE));

		if (wrong)
			broken(c, wrong, rip - NOWHERE);
		else
			check_step(c);
	} else {
		broken(c, strsignal(number), (uint64_t)info->si_addr);
	}
}

int native_init(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM };
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	sigfillset(&action.sa_mask);
	if (sigaltstack(&stack, NULL)) {
		perror("sigaltstack");
		return -1;
	}
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigaction(signals[i], &action, NULL)) {
			perror("sigaction");
			return -1;
		}
	return 0;
}
