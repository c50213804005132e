/* SPDX-License-Identifier: MIT */
#include "stacks.h"

#include "fay/stacks.h"
#include "reference.h"

#define MODULES 2u
#define FUNCTIONS 16u /* of a module */
#define FUNCTION_SIZE 64u
#define WORDS 64u /* of a stack */
#define GARBAGE 0x6b6b6b6b6b6b6b6bu

static const uint64_t starts[MODULES] = { 0x401000, 0x7f1200000000 };

/* Where a function's caller is found: so many words above the stack pointer, or by the frame
 * pointer, or the former while the frame pointer is saved, for another use. */
struct function {
	enum { BY_STACK_POINTER, BY_FRAME_POINTER, SAVES_FRAME_POINTER } kind;
	unsigned words;
};

static uint64_t memory[MAX_EVENTS][WORDS];

static struct function function_of(unsigned module, unsigned number)
{
	return (struct function){ (module + number) % 3, 2 + (module * 7 + number * 5) % 6 };
}

static uint32_t rule_of(struct function f)
{
	if (f.kind == BY_FRAME_POINTER)
		return fay_stack_rule(FAY_STACK_RBP, 2, 2);
	return fay_stack_rule(FAY_STACK_RSP, f.words, f.kind == SAVES_FRAME_POINTER ? 2 : 0);
}

void *stack_tables(void)
{
	static struct fay_stack_tables *tables;
	if (tables)
		return tables;
	tables = calloc(1, sizeof(*tables));
	assert_non_null(tables);
	struct fay_stack_modules *list = &tables->lists[0];
	list->count = MODULES;
	for (unsigned m = 0; m < MODULES; m++) {
		list->items[m] = (struct fay_stack_module){ starts[m], FUNCTIONS * FUNCTION_SIZE,
							    m * FUNCTIONS, FUNCTIONS };
		for (unsigned f = 0; f < FUNCTIONS; f++)
			tables->rows[m * FUNCTIONS + f] =
				(struct fay_stack_row){ f * FUNCTION_SIZE,
							rule_of(function_of(m, f)) };
	}
	tables->row_count = (uint64_t)MODULES * FUNCTIONS;
	return tables;
}

/* Puts what function `f` has on the stack there, at *rsp, up to the return address, whose place is
 * returned; rbp: where what is in the frame pointer in this function comes from. */
static uint64_t *push_frame(struct function f, uint64_t **rsp, uint64_t **rbp)
{
	uint64_t *frame = *rsp + f.words;
	*rsp = frame;
	if (f.kind != BY_STACK_POINTER) {
		**rbp = f.kind == BY_FRAME_POINTER ? (uint64_t)(uintptr_t)(frame - 2) : GARBAGE;
		*rbp = frame - 2;
	}
	return frame - 1;
}

void random_stack(struct fay_event *event, unsigned number, bool called)
{
	uint64_t *rsp = memory[number] + below(4), *rbp = &event->reg[5], *frames = event->reg + 8,
		 *returns = rsp;
	unsigned count = below(EVENT_FRAMES), module = below(MODULES), function = below(4);
	memset(memory[number], 0, sizeof(memory[number]));
	memset(frames, 0, EVENT_FRAMES * sizeof(*frames));
	event->reg[4] = event->stack_pointer = (uint64_t)(uintptr_t)rsp;
	event->address = frames[0] =
		starts[module] + FUNCTION_SIZE * function + (called ? 0 : below(FUNCTION_SIZE));
	if (called)
		rsp++;
	else
		returns = push_frame(function_of(module, function), &rsp, &rbp);
	for (unsigned i = 1; i <= count; i++) {
		module = below(MODULES);
		function = below(3);
		/* Behind the call, which may be the function's last instruction. */
		frames[i] =
			starts[module] + FUNCTION_SIZE * function + (below(4) ? 5 : FUNCTION_SIZE);
		*returns = frames[i];
		returns = push_frame(function_of(module, function), &rsp, &rbp);
	}
	if (count && count + 1 < EVENT_FRAMES && below(3) == 0) /* code that has no table ends it */
		frames[count + 1] = *returns = 0x555500001000 + below(2);
	*rbp = GARBAGE;
	event->frame_pointer = event->reg[5]; /* of an entry */
	event->caller = frames[1];
}

int64_t read_stack(void *to, uint64_t size, uint64_t address)
{
	uint64_t first = (uint64_t)(uintptr_t)memory, offset = address - first;
	bool inside = address >= first && offset + size <= sizeof(memory) &&
		      offset / sizeof(memory[0]) == (offset + size - 1) / sizeof(memory[0]);
	memset(to, 0, size);
	if (inside)
		memcpy(to, (const void *)(uintptr_t)address, size);
	return inside ? 0 : -1;
}
