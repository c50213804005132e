/* SPDX-License-Identifier: MIT */
/*
 * Accepted images on the CPU, without our interpreter: the probe runs with the trap flag set, and
 * after each instruction a signal handler looks at it.
 *
 *   - every region is a mapping of its own between inaccessible pages, EVENT and read-only data
 *     without write permission. In one run its last byte is the last of
 *     a page, in the next its first byte is the first: an access past either end faults
 *   - rip is always the start of an instruction that the verifier decoded, after an indirect jump
 *     one that the report names for it, until the return to the caller or a call of a helper, which
 *     are
 *     addresses that nothing is mapped at: the fault shows that one was reached
 *   - helpers are played by the fault handler: alignment of rsp and arguments are checked against
 *     their contract, then scratch registers, flags and all below
 *     rsp get random contents
 *   - the direction flag is clear at every step, rsp within the promised stack, the x87 control
 *     word and MXCSR as at entry (its sticky flags where the
 *     report names floating point)
 *   - at return: rsp, callee-saved registers, every register that the report does not call
 *     clobbered, the lower halves of vector
 *     registers likewise, the return address itself, and the bytes below the promised stack
 *   - not more instructions than promised
 *   - non-interference: each run is made twice, with other registers (vector registers too), stack
 *     garbage, places of regions, and event fields that
 *     are said not to be read. LOCAL, GLOBAL and the number of instructions must come out the same
 *
 * GLOBAL changes between instructions as if by other threads. Limits: reads of the code as data and
 * reads below rsp do not fault; the interpreter's check (soundness.c) sees those.
 */
#include "native.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "soundness.h"
#include "verifier/prover/graph/cfg.h"

#define PAGE 4096u
#define STEPS_MAX 20000u
#define STACK_BYTES (5 * PAGE)
#define NOWHERE 0x400000000000u /* helpers and the caller: nothing is mapped here */
#define RETURN_ADDRESS (NOWHERE + PAGE)
#define TRAP_FLAG 0x100
#define DIRECTION_FLAG 0x400
/* of MXCSR: floating-point probes may set them, the dispatcher restores them */
#define STICKY_FLAGS 0x3fu

enum { AT_EVENT, AT_LOCAL, AT_GLOBAL, AT_STACK, AT_COUNT };
static const char *const region_names[AT_COUNT] = { "event", "local", "global", "stack" };

/* A region's pages between two that are not accessible. */
struct place {
	uint8_t *pages;
	size_t page_bytes;
	uint8_t *bytes; /* where the region begins now */
	size_t size;
	bool writable;
};

static struct {
	struct place at[AT_COUNT];
	uint8_t *code; /* the layout, in place */
	const struct fay_image *image;
	const struct fay_cfg *cfg;
	const struct fay_probe_facts *facts;
	struct soundness_random random, secret; /* secret: what must not show in the results */
	bool vectors_used;
	uint64_t rsp; /* at entry */
	uint64_t steps, traps;
	const uint8_t *last; /* rip of the last step */
	greg_t entry[NGREG];
	uint8_t vectors[256];
	uint32_t mxcsr, control;
	volatile bool armed, running;
	gregset_t home;
} now;

static char complaint[512];
static unsigned char alternate[65536];

/* Registers of a ucontext in encoding order. */
static const uint8_t gregs[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
				   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
				   REG_R12, REG_R13, REG_R14, REG_R15 };

static uint64_t reg(const ucontext_t *c, unsigned gpr)
{
	return (uint64_t)c->uc_mcontext.gregs[gregs[gpr]];
}

static void scramble(struct soundness_random *random, void *bytes, size_t size)
{
	uint8_t *b = bytes;
	size_t i = 0;

	for (; i + 8 <= size; i += 8) {
		uint64_t value = soundness_next(random);
		memcpy(b + i, &value, 8);
	}
	for (; i < size; i++)
		b[i] = (uint8_t)soundness_next(random);
}

/* ---- in the handler ---- */

static void leave(ucontext_t *c)
{
	now.running = false;
	memcpy(c->uc_mcontext.gregs, now.home, sizeof(now.home));
}

static void broken(ucontext_t *c, const char *what, uint64_t detail)
{
	snprintf(complaint, sizeof(complaint), "%s (%#llx) at %#llx, instruction %llu", what,
		 (unsigned long long)detail,
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
		scramble(&now.random, (void *)rdi, rsi);
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
	scramble(&now.secret, now.at[AT_STACK].bytes + PAGE,
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

/* A repeated string instruction traps after each round, with rip still at it: one instruction. */
static bool again(const ucontext_t *c)
{
	const uint8_t *rip = (const uint8_t *)c->uc_mcontext.gregs[REG_RIP];

	return rip == now.last && (*rip == 0xf2 || *rip == 0xf3);
}

/* After an indirect jump: whether `at`, an offset in .text, is among the places that the report
 * names. */
static bool foreseen(uint64_t at)
{
	const struct fay_cfg *cfg = now.cfg;
	uint64_t last = (uint64_t)now.last - (uint64_t)now.code -
			(now.image->text.start - now.image->layout_base);
	struct fay_jump jump = { .from = now.image->text.start + last,
				 .to = now.image->text.start + at };

	if (!now.last || last >= now.image->text.size || !cfg->at[last] ||
	    cfg->at[last] > cfg->insn_count || cfg->insns[cfg->at[last] - 1].op != OP_JMP_TABLE)
		return true;
	return cfg->jump_count &&
	       bsearch(&jump, cfg->jumps, cfg->jump_count, sizeof(jump), fay_jump_compare);
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
	else if (!again(c) && now.steps >= now.facts->worst_instructions)
		broken(c, "more instructions than promised", now.facts->worst_instructions);
	else if (now.traps++ >= STEPS_MAX)
		leave(c);
	now.steps += !again(c);
	now.last = (const uint8_t *)c->uc_mcontext.gregs[REG_RIP];
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
	g[REG_EFL] = 0x202 | TRAP_FLAG | (greg_t)(soundness_next(&now.secret) & 0x8d5);
	memcpy(now.entry, g, sizeof(now.entry));
	scramble(&now.secret, c->uc_mcontext.fpregs->_xmm, sizeof(now.vectors));
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
	if (number == SIGTRAP && info->si_code == TRAP_TRACE) {
		if (rip - NOWHERE >= 2 * PAGE)
			check_step(c);
		return; /* else the fetch faults next */
	}
	if (number == SIGSEGV && rip == RETURN_ADDRESS) {
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
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

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

/* ---- around it ---- */

static bool make_place(struct place *place, size_t size, bool writable)
{
	size_t pages = (size + PAGE - 1) / PAGE * PAGE;
	uint8_t *all = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*place = (struct place){ .size = size, .page_bytes = pages, .writable = writable };
	if (all == MAP_FAILED)
		return false;
	place->pages = all + PAGE;
	place->bytes = place->pages;
	return true;
}

/* Fills the region anew, flush with one end of its pages; where vectors are used state begins at a
 * multiple of 64, as docs/probe-image.md says. */
static void fill_place(struct place *place, bool at_end, const struct fay_image *image)
{
	size_t room =
		place->writable && now.vectors_used ? (place->size + 63) / 64 * 64 : place->size;

	if (!place->page_bytes)
		return;
	mprotect(place->pages, place->page_bytes, PROT_READ | PROT_WRITE);
	place->bytes = place->pages + (at_end ? place->page_bytes - room : 0);
	memset(place->pages, 0xa5, place->page_bytes);
	for (size_t i = 0; i + 8 <= place->size; i += 8) {
		uint64_t value = soundness_number(&now.random, image);
		memcpy(place->bytes + i, &value, 8);
	}
	for (unsigned i = 0; place == &now.at[AT_EVENT] && i < place->size; i++)
		if (!(now.facts->event_fields & soundness_field_of(i)))
			place->bytes[i] = (uint8_t)soundness_next(&now.secret);
	if (!place->writable)
		mprotect(place->pages, place->page_bytes, PROT_READ);
}

static bool place_code(const struct fay_layout *layout)
{
	size_t bytes = (layout->size + PAGE - 1) / PAGE * PAGE;
	uint8_t *all = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return false;
	now.code = all + PAGE;
	mprotect(now.code, bytes, PROT_READ | PROT_WRITE);
	memcpy(now.code, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t address = NOWHERE + layout->slots[i].helper;
		memcpy(now.code + layout->slots[i].offset, &address, 8);
	}
	mprotect(now.code, bytes, PROT_READ | PROT_EXEC);
	return true;
}

static void run_once(const struct fay_image *image, bool at_end)
{
	struct place *stack = &now.at[AT_STACK];
	uint64_t address = RETURN_ADDRESS;

	for (unsigned i = 0; i < AT_STACK; i++)
		fill_place(&now.at[i], at_end, image);
	mprotect(stack->pages, stack->page_bytes, PROT_READ | PROT_WRITE);
	memset(stack->pages, 0xa5, PAGE);
	scramble(&now.secret, stack->pages + PAGE, stack->page_bytes - PAGE);
	/* rsp is 8 modulo 16 at entry; the return address is the last thing on its page. */
	now.rsp = (uint64_t)stack->pages + stack->page_bytes - 8;
	memcpy((void *)now.rsp, &address, 8);
	now.steps = now.traps = 0;
	now.last = NULL;
	now.armed = true;
	raise(SIGTRAP); /* whose handler enters the probe and in the end returns here */
}

/* LOCAL and GLOBAL as the last run left them. */
static void collect(uint8_t *bytes)
{
	for (unsigned i = AT_LOCAL; i <= AT_GLOBAL; i++) {
		memcpy(bytes, now.at[i].bytes, now.at[i].size);
		bytes += now.at[i].size;
	}
}

/* The run of `seed` twice, with other secrets. */
static void run_twice(const struct fay_image *image, uint64_t seed, uint8_t *first, uint8_t *second,
		      uint64_t *steps)
{
	uint64_t before = 0;

	for (unsigned which = 0; which < 2 && !*complaint; which++) {
		now.random.state = seed;
		now.secret.state = seed ^ (which ? 0xa5a5a5a5deadbeefu : 0x1111);
		run_once(image, which);
		*steps += now.steps;
		collect(which ? second : first);
		if (which && !*complaint && now.steps != before)
			snprintf(complaint, sizeof(complaint),
				 "%llu instructions, or %llu with other secrets",
				 (unsigned long long)before, (unsigned long long)now.steps);
		before = now.steps;
	}
	if (!*complaint && memcmp(first, second, now.at[AT_LOCAL].size + now.at[AT_GLOBAL].size))
		snprintf(complaint, sizeof(complaint),
			 "state depends on what the probe must not read");
}

static void release(size_t code_bytes)
{
	for (unsigned i = 0; i < AT_COUNT; i++)
		if (now.at[i].pages)
			munmap(now.at[i].pages - PAGE, now.at[i].page_bytes + 2 * PAGE);
	if (now.code)
		munmap(now.code - PAGE, (code_bytes + PAGE - 1) / PAGE * PAGE + 2 * PAGE);
	memset(&now.at, 0, sizeof(now.at));
	now.code = NULL;
}

static const char *run_probes(const struct fay_image *image, const struct fay_verdict *verdict,
			      uint64_t seed, unsigned runs, uint64_t *steps)
{
	const size_t sizes[AT_COUNT] = { sizeof(struct fay_event), image->header.local_size,
					 image->header.global_size, STACK_BYTES };
	uint8_t *state;

	for (unsigned i = 0; i < AT_COUNT; i++)
		if (!make_place(&now.at[i], sizes[i], i != AT_EVENT)) {
			snprintf(complaint, sizeof(complaint), "no memory for %s", region_names[i]);
			return complaint;
		}
	if (!place_code(&verdict->layout))
		return "no memory for the code";
	state = malloc(2 * (sizes[AT_LOCAL] + sizes[AT_GLOBAL]) + 1);
	for (uint32_t probe = 0; state && probe < verdict->probe_count && !*complaint; probe++) {
		now.facts = &verdict->probes[probe];
		now.vectors_used = now.facts->clobbered_vectors || now.facts->uses_mxcsr;
		for (unsigned run = 0; run < runs && !*complaint; run += 2)
			run_twice(image, seed + run, state,
				  state + sizes[AT_LOCAL] + sizes[AT_GLOBAL], steps);
	}
	free(state);
	return *complaint ? complaint : NULL;
}

/* The instructions that the report is about: those reached also through its indirect jumps. */
static bool decode_all(struct fay_cfg *cfg, struct fay_arena *arena, const struct fay_image *image,
		       const struct fay_verdict *verdict)
{
	struct fay_jump *jumps;
	bool ok = fay_cfg_build(cfg, arena, image, 0).rule == FAY_RULE_NONE;

	if (!ok || !verdict->jump_count)
		return ok;
	jumps = calloc(verdict->jump_count, sizeof(*jumps));
	for (uint32_t i = 0; jumps && i < verdict->jump_count; i++) {
		jumps[i] = (struct fay_jump){ .from = image->layout_base + verdict->jumps[i].from,
					      .to = image->layout_base + verdict->jumps[i].to };
		ok &= jumps[i].to - image->text.start < image->text.size;
	}
	ok = ok && jumps &&
	     fay_cfg_extend(cfg, jumps, verdict->jump_count, 0).rule == FAY_RULE_NONE;
	free(jumps);
	return ok;
}

const char *native_check(const void *file, size_t size, const struct fay_verdict *verdict,
			 uint64_t seed, unsigned runs, uint64_t *steps)
{
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct fay_image image;
	struct fay_cfg cfg = { 0 };
	const char *result;

	*complaint = '\0';
	if (!arena || fay_image_parse(arena, file, size, &image).rule != FAY_RULE_NONE ||
	    !decode_all(&cfg, arena, &image, verdict)) {
		result = "accepted, but does not parse or decode";
	} else {
		now.image = &image;
		now.cfg = &cfg;
		result = run_probes(&image, verdict, seed, runs, steps);
		release(verdict->layout.size);
	}
	fay_cfg_deinit(&cfg);
	fay_arena_destroy(arena);
	return result;
}
