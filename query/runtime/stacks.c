/* SPDX-License-Identifier: MIT */
/*
 * The walk of a stack as a function that generated probes call: compiled to LLVM bitcode when Fay
 * is built, linked into a query's module, guarded and verified with it. For each frame, the rule of
 * the place where it stands says where the caller's frame is (fay/stacks.h); rules that were found
 * are kept by place, for this thread's next walks. What is read lies at or above the stack pointer
 * and frames only go up, so that a broken stack ends the walk or makes it wrong, and nothing else.
 */
#include "fay/stacks.h"

extern int64_t fay_try_read(void *to, uint64_t size, uint64_t address);

#define MODULE_ROUNDS 10 /* of a binary search; 2 to their power is how many there can be */
#define ROW_ROUNDS 21
/* In the kernel's struct ucontext of x86-64, asm/sigcontext.h. */
#define CONTEXT_RBP 120
#define CONTEXT_RSP 160
#define CONTEXT_RIP 168

struct walk {
	struct fay_stack_scratch *scratch;
	const struct fay_stack_tables *tables;
	uint64_t current;           /* of the tables */
	uint64_t start, size;       /* of the stack that the window holds */
	uint64_t address, rsp, rbp; /* of the frame */
	uint64_t context;           /* if a signal interrupted it: its registers; else 0 */
};

static const struct fay_stack_row *row_at(const struct fay_stack_tables *tables, uint32_t number)
{
	return &tables->rows[number < FAY_STACK_ROWS ? number : 0];
}

static uint32_t rule_in(const struct fay_stack_tables *tables,
			const struct fay_stack_module *module, uint64_t place)
{
	uint32_t low = module->first, left = module->count;
	for (int round = 0; round < ROW_ROUNDS; round++) {
		uint32_t half = left / 2;
		uint32_t above = row_at(tables, low + half)->place <= place;
		low = above ? low + half : low;
		left = above ? left - half : half;
	}
	const struct fay_stack_row *row = row_at(tables, low);
	return row->place <= place ? row->rule : FAY_STACK_END;
}

static uint32_t rule_at(const struct fay_stack_tables *tables, uint64_t current, uint64_t address)
{
	const struct fay_stack_modules *list = &tables->lists[current & 1];
	uint64_t low = 0, left = list->count;
	for (int round = 0; round < MODULE_ROUNDS; round++) {
		uint64_t half = left / 2;
		uint64_t above =
			list->items[(low + half) & (FAY_STACK_MODULES - 1)].start <= address;
		low = above ? low + half : low;
		left = above ? left - half : half;
	}
	const struct fay_stack_module *module = &list->items[low & (FAY_STACK_MODULES - 1)];
	uint64_t place = address - module->start;
	return place < module->size ? rule_in(tables, module, place) : FAY_STACK_END;
}

/* A signal handler that leaves the probe for good leaves no address with another's rule. */
static uint32_t known_rule(const struct walk *walk, uint64_t address)
{
	volatile struct fay_stack_known *known =
		&walk->scratch->known[(address ^ address >> 8) & (FAY_STACK_KNOWN - 1)];
	if (known->address == address && known->current == (uint32_t)walk->current)
		return known->rule;
	uint32_t rule = rule_at(walk->tables, walk->current, address);
	known->address = 0;
	known->rule = rule;
	known->current = (uint32_t)walk->current;
	known->address = address;
	return rule;
}

/* A word of the stack, 0 if it cannot be read. Several are read at a time; near the stack's end
 * there may be only that one. */
static uint64_t word_at(struct walk *walk, uint64_t address)
{
	uint64_t *window = walk->scratch->window;
	if (address - walk->start >= walk->size) {
		walk->start = address;
		walk->size = sizeof(walk->scratch->window);
		if (fay_try_read(window, sizeof(walk->scratch->window), address)) {
			walk->size = sizeof(uint64_t);
			fay_try_read(window, sizeof(uint64_t), address);
		}
	}
	return window[(address - walk->start) / 8 & (FAY_STACK_WINDOW - 1)];
}

/* The caller's frame where neither rsp nor rbp and a number tell it. 0: it is not known. */
static uint64_t rare_frame(struct walk *walk, uint32_t rule)
{
	uint32_t kind = rule & FAY_STACK_KIND;
	if (kind == FAY_STACK_LINKAGE)
		return walk->rsp + 8 + 8 * ((walk->address & 15) >= rule >> 18);
	if (kind == FAY_STACK_REGISTER && walk->context)
		return word_at(walk, walk->context + 8 * (uint64_t)(rule >> 4 & 31));
	return 0;
}

/* To the caller's frame. 0: there is none, or it is not known. */
static uint64_t step(struct walk *walk, uint32_t rule)
{
	uint64_t base = rule & 3, offset = 8 * (uint64_t)(rule >> 2 & FAY_STACK_OFFSET_MAX),
		 saved = 8 * (uint64_t)(rule >> 18), at_rbp = base == FAY_STACK_INDIRECT;
	uint64_t frame = (base == FAY_STACK_RSP ? walk->rsp : walk->rbp) + offset;
	if (base == FAY_STACK_INDIRECT)
		frame = word_at(walk, walk->rbp - offset);
	if (base == FAY_STACK_END) {
		uint64_t in_register = (rule & FAY_STACK_KIND) == FAY_STACK_REGISTER;
		frame = rare_frame(walk, rule);
		at_rbp = in_register && saved == 8 * FAY_STACK_AT_RBP;
		saved = in_register ? saved : 0;
	}
	walk->context = 0;
	if (!frame || frame - 8 < walk->rsp || frame % 8)
		return 0;
	if (at_rbp || saved)
		walk->rbp = word_at(walk, at_rbp ? walk->rbp : frame - saved);
	walk->address = word_at(walk, frame - 8);
	walk->rsp = frame;
	return walk->address;
}

/* To what a signal interrupted: its registers lie in the ucontext_t to which the stack pointer
 * points. */
static uint64_t step_signal(struct walk *walk)
{
	uint64_t context = walk->rsp;
	walk->context = context;
	walk->rbp = word_at(walk, context + CONTEXT_RBP);
	walk->rsp = word_at(walk, context + CONTEXT_RSP);
	walk->address = word_at(walk, context + CONTEXT_RIP);
	return walk->address;
}

void fay_query_stack(struct fay_stack_scratch *scratch, const struct fay_stack_tables *tables,
		     uint64_t address, uint64_t rsp, uint64_t rbp, uint64_t count, uint64_t called);

void fay_query_stack(struct fay_stack_scratch *scratch, const struct fay_stack_tables *tables,
		     uint64_t address, uint64_t rsp, uint64_t rbp, uint64_t count, uint64_t called)
{
	struct walk walk = { .scratch = scratch,
			     .tables = tables,
			     .current = tables->current,
			     .address = address,
			     .rsp = rsp,
			     .rbp = rbp };
	uint32_t rule = called ? FAY_STACK_CALLED : known_rule(&walk, address);
	uint64_t filled = 1;
	scratch->frames[0] = address;
	for (; filled < count; filled++) {
		uint64_t interrupted = rule == FAY_STACK_SIGNAL;
		if (!(interrupted ? step_signal(&walk) : step(&walk, rule)))
			break;
		scratch->frames[filled & (FAY_STACK_FRAMES_MAX - 1)] = walk.address;
		/* the call; behind it another function may begin */
		rule = known_rule(&walk, walk.address - !interrupted);
	}
	for (; filled < count; filled++)
		scratch->frames[filled & (FAY_STACK_FRAMES_MAX - 1)] = 0;
}
