/* SPDX-License-Identifier: MIT */
/*
 * Counterexamples run by the CPU itself, so that an "unsafe" does not rest on our interpreter
 * alone. Nothing of an acceptance depends on this: it only adds a line to a refusal, the command
 * does it and the library never does, and `--no-replay` leaves it out (docs/decisions/0008).
 *
 * The code is hostile, so it runs in a child of its own, which has
 *
 *   no system calls     seccomp kills it at the first one; no file is open
 *   no free run         the parent single-steps it and stops it at the first step that is not the
 *			 interpreter's; never more than FAY_NATIVE_STEPS
 *   no way to stay      it is killed at the end, when the parent dies, and by limits on CPU time
 *			 and memory
 *
 * It is a copy of the verifier's memory: what it reads there it cannot tell anyone. Regions are
 * mapped alone, with nothing next to them, event and code read-only, so an access outside faults
 * where no other region begins. Helpers are not run: the parent steps over the call.
 */
#include "native.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the child ---- */

static bool map_region(uint64_t start, uint64_t size, const uint8_t *bytes, size_t filled,
		       int protection)
{
	uint64_t from = start & ~(FAY_NATIVE_PAGE - 1),
		 end = (start + size + FAY_NATIVE_PAGE - 1) & ~(FAY_NATIVE_PAGE - 1);
	void *at;

	if (!size)
		return true;
	at = mmap((void *)from, end - from, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (void *)from)
		return false;
	if (filled)
		memcpy((void *)start, bytes, filled);
	return !mprotect(at, end - from, protection);
}

static size_t filled(uint64_t size)
{
	return size < FAY_NATIVE_FILLED ? size : FAY_NATIVE_FILLED;
}

static bool map_code(const struct fay_native_case *c)
{
	uint8_t *bytes = malloc(c->layout_size);
	bool ok = bytes != NULL;

	if (ok) {
		memcpy(bytes, c->layout, c->layout_size);
		for (uint32_t i = 0; i < c->slot_count; i++) {
			uint64_t address = FAY_NATIVE_HELPER + c->helpers[i];

			memcpy(bytes + (c->slots[i] - c->layout_base), &address, sizeof(address));
		}
		ok = map_region(FAY_NATIVE_CODE + c->layout_base, c->layout_size, bytes,
				c->layout_size, PROT_READ | PROT_EXEC);
	}
	free(bytes);
	return ok;
}

static bool map_all(const struct fay_native_case *c)
{
	return map_region(fay_native_start(REGION_EVENT, sizeof(c->event)), sizeof(c->event),
			  c->event, sizeof(c->event), PROT_READ) &&
	       map_region(fay_native_start(REGION_LOCAL, c->local_size), c->local_size, c->local,
			  filled(c->local_size), PROT_READ | PROT_WRITE) &&
	       map_region(fay_native_start(REGION_GLOBAL, c->global_size), c->global_size,
			  c->global, filled(c->global_size), PROT_READ | PROT_WRITE) &&
	       map_region(FAY_NATIVE_BASE(REGION_STACK) - FAY_NATIVE_STACK_BELOW,
			  FAY_NATIVE_STACK_BELOW + 64, NULL, 0, PROT_READ | PROT_WRITE) &&
	       map_code(c);
}

static void limit(int what, rlim_t value)
{
	struct rlimit limit = { value, value };

	if (setrlimit((__rlimit_resource_t)what, &limit))
		_exit(1);
}

/* Never returns. The parent takes over at the breakpoint. */
static void __attribute__((noreturn)) child(const struct fay_native_case *c, pid_t parent)
{
	struct sock_filter kill_all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS) };
	struct sock_fprog program = { .len = 1, .filter = kill_all };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || !map_all(c))
		_exit(1);
	limit(RLIMIT_CPU, 5);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NOFILE, 0);
	limit(RLIMIT_NPROC, 0);
	if (close_range(0, ~0u, 0) || ptrace(PTRACE_TRACEME, 0, 0, 0) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(1);
	__asm__ volatile("int3");
	__builtin_unreachable();
}

/* ---- the parent ---- */

struct native {
	const struct fay_native_case *c;
	pid_t pid;
	char *detail;
	size_t detail_size;
	struct user_regs_struct regs;
};

enum stop { STOP_STEP, STOP_FAULT, STOP_GONE };

static enum stop wait_stop(struct native *n, int *signal)
{
	int status;

	while (waitpid(n->pid, &status, __WALL) < 0)
		if (errno != EINTR)
			return STOP_GONE;
	if (!WIFSTOPPED(status))
		return STOP_GONE;
	*signal = WSTOPSIG(status);
	return *signal == SIGTRAP ? STOP_STEP : STOP_FAULT;
}

static bool poke(struct native *n, uint64_t address, const void *bytes, size_t size)
{
	struct iovec local = { (void *)bytes, size }, remote = { (void *)address, size };

	return process_vm_writev(n->pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool in_region(uint64_t address, uint64_t size, uint64_t start, uint64_t length)
{
	return address - start < length && size <= length - (address - start);
}

static unsigned long long *gpr_of(struct user_regs_struct *r, unsigned reg)
{
	unsigned long long *const all[16] = { &r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp,
					      &r->rsi, &r->rdi, &r->r8,  &r->r9,  &r->r10, &r->r11,
					      &r->r12, &r->r13, &r->r14, &r->r15 };

	return all[reg & 15];
}

static uint64_t slot_helper(const struct fay_native_case *c, uint64_t slot)
{
	for (uint32_t i = 0; i < c->slot_count; i++)
		if (c->slots[i] == slot)
			return c->helpers[i];
	return UINT64_MAX;
}

/*
 * The helper that the instruction at layout offset `at` calls, and that instruction's length. The
 * code was decoded: an FF that begins an instruction, with /2 and a register or rip, is a call.
 * Length 0: it is none.
 */
static unsigned helper_call(struct native *n, uint64_t at, uint64_t *helper)
{
	const struct fay_native_case *c = n->c;
	const uint8_t *code = c->layout + at;
	uint64_t room = at < c->layout_size ? c->layout_size - at : 0;
	unsigned rex = room > 2 && code[0] == 0x41;
	int32_t displacement;

	if (room >= 6 && code[0] == 0xff && code[1] == 0x15) {
		memcpy(&displacement, code + 2, 4);
		*helper = slot_helper(c, at + c->layout_base + 6 + (uint64_t)(int64_t)displacement);
		return 6;
	}
	if (room < 2 + rex || code[rex] != 0xff || (code[rex + 1] & 0xf8) != 0xd0)
		return 0;
	*helper = *gpr_of(&n->regs, (code[rex + 1] & 7u) + 8 * rex) - FAY_NATIVE_HELPER;
	return 2 + rex;
}

/* If the instruction at rip is the call of a helper: its contract's effects, as in the
 * interpreter's replay. */
static bool step_over_helper(struct native *n, bool *was)
{
	static const uint8_t clobbered[] = { FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					     FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	const struct fay_native_case *c = n->c;
	uint64_t at = n->regs.rip - FAY_NATIVE_CODE - c->layout_base, to = n->regs.rdi,
		 size = n->regs.rsi, helper;
	static const uint8_t zeros[FAY_TRY_READ_MAX];
	unsigned length = helper_call(n, at, &helper);

	*was = length != 0;
	if (!*was)
		return true;
	n->regs.rax = helper == FAY_HELPER_TRY_READ ? UINT64_MAX : 0;
	if (helper == FAY_HELPER_TRY_READ && size && size <= sizeof(zeros) &&
	    (in_region(to, size, fay_native_start(REGION_LOCAL, c->local_size), c->local_size) ||
	     in_region(to, size, fay_native_start(REGION_GLOBAL, c->global_size), c->global_size) ||
	     in_region(to, size, FAY_NATIVE_BASE(REGION_STACK) - FAY_NATIVE_STACK_BELOW,
		       FAY_NATIVE_STACK_BELOW + 64)))
		poke(n, to, zeros, size);
	for (unsigned i = 0; i < sizeof(clobbered); i++)
		*gpr_of(&n->regs, clobbered[i]) = 0x6b6b6b6b6b6b6b6bu;
	n->regs.rip += length;
	return !ptrace(PTRACE_SETREGS, n->pid, 0, &n->regs);
}

static bool begin(struct native *n)
{
	int signal;

	if (wait_stop(n, &signal) != STOP_STEP) {
		snprintf(n->detail, n->detail_size, "the sandbox could not be set up here");
		return false;
	}
	if (ptrace(PTRACE_SETOPTIONS, n->pid, 0, PTRACE_O_EXITKILL) ||
	    ptrace(PTRACE_GETREGS, n->pid, 0, &n->regs)) {
		snprintf(n->detail, n->detail_size, "ptrace: %s", strerror(errno));
		return false;
	}
	for (unsigned i = 0; i < 16; i++)
		*gpr_of(&n->regs, i) = n->c->gpr[i];
	n->regs.rip = FAY_NATIVE_CODE + n->c->text_start + n->c->steps[0];
	n->regs.eflags = 0x202;
	n->regs.fs_base = n->regs.gs_base = 0;
	n->regs.orig_rax = UINT64_MAX;
	return !ptrace(PTRACE_SETREGS, n->pid, 0, &n->regs);
}

/* Runs to the broken instruction along the interpreter's path. */
static bool follow(struct native *n)
{
	const struct fay_native_case *c = n->c;
	uint32_t pokes = 0;
	int signal = 0;

	for (uint32_t i = 0; i < c->step_count; i++) {
		uint64_t offset;
		bool helper;

		if (ptrace(PTRACE_GETREGS, n->pid, 0, &n->regs))
			return false;
		offset = n->regs.rip - FAY_NATIVE_CODE - c->text_start;
		if (offset != c->steps[i]) {
			snprintf(n->detail, n->detail_size,
				 "step %" PRIu32 " is at .text+0x%" PRIx64
				 ", by the interpreter it is at .text+0x%" PRIx32,
				 i, offset, c->steps[i]);
			return false;
		}
		for (; pokes < c->poke_count && c->pokes[pokes].step == i; pokes++) {
			const struct fay_native_poke *p = &c->pokes[pokes];

			poke(n,
			     fay_native_start(p->region, p->region == REGION_LOCAL
								 ? c->local_size
								 : c->global_size) +
				     p->offset,
			     &p->value, p->size);
		}
		if (i + 1 == c->step_count)
			return true;
		if (!step_over_helper(n, &helper))
			return false;
		if (helper)
			continue;
		if (ptrace(PTRACE_SINGLESTEP, n->pid, 0, 0) || wait_stop(n, &signal) != STOP_STEP) {
			snprintf(n->detail, n->detail_size,
				 "signal %d at .text+0x%" PRIx32 ", before the broken instruction",
				 signal, c->steps[i]);
			return false;
		}
	}
	return false;
}

/* Where the broken instruction's memory operand points, by the CPU's registers. */
static uint64_t operand_address(struct native *n, const struct fay_operand *mem)
{
	uint64_t address = (uint64_t)mem->disp;

	if (mem->rip)
		return FAY_NATIVE_CODE + address;
	if (mem->base != FAY_NO_REG)
		address += *gpr_of(&n->regs, mem->base);
	if (mem->index != FAY_NO_REG)
		address += *gpr_of(&n->regs, mem->index) * mem->scale;
	return address;
}

static uint64_t case_region(const struct fay_native_case *c)
{
	switch (c->region) {
	case REGION_EVENT: return fay_native_start(REGION_EVENT, sizeof(c->event));
	case REGION_LOCAL: return fay_native_start(REGION_LOCAL, c->local_size);
	case REGION_GLOBAL: return fay_native_start(REGION_GLOBAL, c->global_size);
	case REGION_RODATA: return FAY_NATIVE_CODE + c->rodata_start;
	default: return FAY_NATIVE_BASE(REGION_STACK);
	}
}

static const char *signal_word(int signal)
{
	return signal == SIGSEGV  ? "SIGSEGV"
	       : signal == SIGFPE ? "SIGFPE"
	       : signal == SIGBUS ? "SIGBUS"
	       : signal == SIGILL ? "SIGILL"
				  : "a signal";
}

static bool saved_lost(struct native *n)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };

	for (unsigned i = 0; i < sizeof(saved); i++)
		if (*gpr_of(&n->regs, saved[i]) != n->c->gpr[saved[i]]) {
			snprintf(n->detail, n->detail_size,
				 "%s is 0x%llx at the return, it was 0x%" PRIx64,
				 fay_gpr_name(saved[i], 64), *gpr_of(&n->regs, saved[i]),
				 n->c->gpr[saved[i]]);
			return true;
		}
	return false;
}

/* Whether the CPU shows the rule broken; n->regs is the state before the instruction. */
static bool shown(struct native *n)
{
	const struct fay_native_case *c = n->c;
	const struct fay_operand *mem =
		c->insn.dst.kind == OPERAND_MEM ? &c->insn.dst : &c->insn.src;
	int64_t offset =
		mem->kind == OPERAND_MEM ? (int64_t)(operand_address(n, mem) - case_region(c)) : 0;
	bool outside =
		c->bounds && mem->kind == OPERAND_MEM && (offset < c->low || offset > c->high);
	int signal = 0;
	enum stop stop = STOP_GONE;

	if (c->rule == FAY_RULE_ENV_SAVED)
		return saved_lost(n);
	if (c->divide || c->bounds || c->rule == FAY_RULE_MEM_PERMISSION)
		stop = ptrace(PTRACE_SINGLESTEP, n->pid, 0, 0) ? STOP_GONE : wait_stop(n, &signal);
	if (stop == STOP_FAULT && signal != SIGILL) {
		snprintf(n->detail, n->detail_size, "%s at the instruction", signal_word(signal));
		return c->divide ? signal == SIGFPE : true;
	}
	if (outside) {
		snprintf(n->detail, n->detail_size,
			 "the access is at offset %" PRId64
			 ", outside; no page ends there, so it did not fault",
			 offset);
		return true;
	}
	if (c->divide || c->bounds || c->rule == FAY_RULE_MEM_PERMISSION) {
		snprintf(n->detail, n->detail_size, "the instruction ran without a fault");
		return false;
	}
	snprintf(n->detail, n->detail_size, "the CPU reaches the instruction on this path");
	return true;
}

void fay_verdict_replay(struct fay_verdict *verdict)
{
	struct fay_rejection *r = &verdict->rejection;
	char detail[200] = "";
	struct native n = { .c = r->native_case, .detail = detail, .detail_size = sizeof(detail) };
	pid_t parent = getpid();

	if (!n.c || !verdict->arena)
		return;
	fflush(NULL);
	n.pid = fork();
	if (n.pid == 0)
		child(n.c, parent);
	if (n.pid < 0) {
		snprintf(detail, sizeof(detail), "fork: %s", strerror(errno));
	} else {
		if (begin(&n))
			r->native = follow(&n) && shown(&n) ? FAY_NATIVE_CONFIRMED
							    : FAY_NATIVE_NOT_CONFIRMED;
		kill(n.pid, SIGKILL);
		while (waitpid(n.pid, NULL, __WALL) < 0 && errno == EINTR)
			;
	}
	r->native_detail = fay_arena_printf(verdict->arena, "%s", detail);
}
