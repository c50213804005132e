/* SPDX-License-Identifier: MIT */
/*
 * What is to be known of functions whose calls' ends somebody wants: how they are left (flow.h),
 * whether calls need records (dispatcher/runtime/records.c), and which functions else have to be
 * patched then.
 *
 * A call has a record if what is wanted of its end cannot be told at the exit: when it began, what
 * it returned if it goes on in another function by a jump, that it was left otherwise, or whether
 * it is this call that ends. Then the functions that such jumps lead to are patched, too (helpers),
 * and, if somebody wants to know of calls that are left, those that leave them.
 */
#include "plan_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/flow/flow.h"
#include "loader/names/target.h"
#include "loader/process/process.h"

#define HELPER_ROUNDS 16u
#define PLT_BYTES 16u
#define INT3 0xccu
#define WHOLE_MAX 24u /* bytes of a function that may be whole within its entry's window */

/* A process as the analysis sees it. */
struct program {
	struct fay_plan *plan;
	struct fay_target *target;
	struct fay_program_text text;
	struct fay_flow_program flow;
	/* The module that was asked about last: what its file tells. */
	const struct fay_module *module;
	const struct fay_taken *taken;
	uint64_t bias;
	uint64_t *addresses; /* the taken ones that were asked for last, in the process */
	size_t address_room;
};

static size_t read_bytes(void *context, uint64_t address, void *to, size_t size)
{
	return fay_text_program(&((struct program *)context)->text, address, to, size);
}

static enum fay_flow_place place(void *context, uint64_t address, uint64_t *start, uint64_t *end)
{
	return fay_target_place(((struct program *)context)->target, address, start, end);
}

/* The kernel puts an int3 over an instruction where another tracer has a uprobe. */
static bool trapped(void *context, uint64_t address)
{
	struct program *program = context;
	uint8_t now, file;

	return fay_text_program(&program->text, address, &now, 1) == 1 && now == INT3 &&
	       fay_target_file_text(program->target, address, &file, 1) == 1 && file != INT3;
}

static void leave_module(struct program *program)
{
	if (program->module && program->module->object)
		fay_object_forget_taken(program->module->object);
	program->module = NULL;
	program->taken = NULL;
}

static bool enter_module(struct program *program, uint64_t address)
{
	const struct fay_module *module = fay_target_module_at(program->target, address);

	if (!module)
		return false;
	for (size_t k = 0; k < module->range_count; k++)
		if (module->ranges[k].placed && address >= module->ranges[k].start &&
		    address < module->ranges[k].end)
			program->bias = module->ranges[k].bias;
	if (module == program->module)
		return program->taken != NULL;
	leave_module(program);
	program->module = module;
	program->taken = module->object ? fay_object_taken(module->object) : NULL;
	if (program->taken)
		fay_object_find_parts(module->object, program->taken);
	return program->taken != NULL;
}

static const uint64_t *taken(void *context, enum fay_taken_kind kind, uint64_t start, uint64_t end,
			     size_t *count)
{
	struct program *program = context;
	const uint64_t *found;

	*count = 0;
	if (!enter_module(program, start))
		return NULL;
	found = fay_taken_in(program->taken, kind, start - program->bias, end - program->bias,
			     count);
	if (*count >= program->address_room) {
		free(program->addresses);
		program->address_room = *count + 64;
		program->addresses = malloc(program->address_room * sizeof(*program->addresses));
		if (!program->addresses)
			return program->address_room = *count = 0, NULL;
	}
	for (size_t i = 0; i < *count; i++)
		program->addresses[i] = found[i] + program->bias;
	return program->addresses;
}

/* Whether the exit leads to what a word of the process holds (a stub of the procedure linkage
 * table), and where that lies. */
static bool exit_by_word(struct fay_program_text *text, uint64_t target, uint64_t *word)
{
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t bytes[PLT_BYTES];
	size_t at = 0;
	int32_t distance;

	if (fay_text_program(text, target, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	if (!memcmp(bytes, endbr64, sizeof(endbr64)))
		at = sizeof(endbr64);
	at += bytes[at] == 0xf2;                        /* bnd */
	if (bytes[at] != 0xff || bytes[at + 1] != 0x25) /* jmp *distance(%rip) */
		return false;
	memcpy(&distance, bytes + at + 2, 4);
	*word = target + at + 6 + (uint64_t)(int64_t)distance;
	return true;
}

/* Functions that leave calls without returning from them: of gcc's and LLVM's unwinders, and of C
 * libraries. */
static const struct {
	const char *name;
	enum fay_sweep sweep;
} leaving[] = {
	{ "_Unwind_RaiseException", FAY_SWEEP_UNWINDER },
	{ "_Unwind_Resume", FAY_SWEEP_UNWINDER },
	{ "_Unwind_Resume_or_Rethrow", FAY_SWEEP_UNWINDER },
	{ "_Unwind_ForcedUnwind", FAY_SWEEP_UNWINDER },
	{ "__libunwind_Registers_x86_64_jumpto", FAY_SWEEP_UNWINDER },
	{ "__cxa_begin_catch", FAY_SWEEP_CATCH },
	{ "_Unwind_DeleteException", FAY_SWEEP_CATCH },
	{ "__longjmp", FAY_SWEEP_LONGJMP },
	{ "____longjmp_chk", FAY_SWEEP_LONGJMP },
};

static enum fay_sweep sweep_of(const char *name)
{
	for (size_t i = 0; i < sizeof(leaving) / sizeof(leaving[0]); i++)
		if (!strcmp(name, leaving[i].name))
			return leaving[i].sweep;
	return FAY_SWEEP_NONE;
}

static bool has_kind(const struct fay_plan *plan, uint32_t kind)
{
	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (plan->verdict->probes[i].kind == kind)
			return true;
	return false;
}

static int add_helper(struct fay_plan *plan, size_t *capacity, const struct fay_function *function)
{
	if (fay_point_append(plan, capacity, function, NULL, FAY_HOOK_NONE))
		return -1;
	plan->points[plan->point_count - 1].helper = true;
	return 0;
}

static int add_leaving(struct fay_plan *plan, size_t *capacity)
{
	struct fay_target *target = plan->target;

	for (size_t m = 0; m < target->module_count; m++) {
		struct fay_object *object = fay_module_object(target, &target->modules[m]);

		for (size_t i = 0; object && i < object->symbol_count; i++) {
			const struct fay_symbol *symbol = &object->symbols[i];
			struct fay_function function;
			char name[64];

			if (symbol->kind != FAY_SYMBOL_FUNCTION || symbol->length >= sizeof(name))
				continue;
			memcpy(name, symbol->name, symbol->length);
			name[symbol->length] = 0;
			if (sweep_of(name) == FAY_SWEEP_NONE)
				continue;
			for (size_t k = 0; k < target->modules[m].range_count; k++)
				if (target->modules[m].ranges[k].placed &&
				    fay_target_function_at(
					    target,
					    symbol->address + target->modules[m].ranges[k].bias,
					    &function) &&
				    !fay_points_at(plan, function.address) &&
				    add_helper(plan, capacity, &function))
					return -1;
		}
	}
	return 0;
}

static int read_flow(struct program *program, struct fay_point *point)
{
	const struct fay_function *function = &point->function;

	program->flow.keeps_faults =
		enter_module(program, function->address) && fay_taken_faults(program->taken);
	program->flow.unwinder = point->sweeps != FAY_SWEEP_NONE;
	point->flow = calloc(1, sizeof(*point->flow));
	if (!point->flow || !fay_flow_read(&program->flow, function->address,
					   function->address + function->size, true, point->flow))
		return -1;
	if (!*point->flow->reason || fay_point_enters(program->plan, point))
		return 0;
	/* The entry need not be patched, unless there are records; then planning finds that it
	 * cannot be. */
	fay_flow_deinit(point->flow);
	memset(point->flow, 0, sizeof(*point->flow));
	return fay_flow_read(&program->flow, function->address, function->address + function->size,
			     false, point->flow)
		       ? 0
		       : -1;
}

/* Its exit may be so near to the entry that the two cannot be patched apart. */
static bool is_small(const struct fay_plan *plan, const struct fay_point *point)
{
	return !point->flow_read && point->function.size <= WHOLE_MAX &&
	       fay_point_enters(plan, point);
}

/* A flow that is not wanted for its exits is kept only if the function is whole within the entry's
 * window. */
static void keep_whole(struct fay_point *point)
{
	const struct fay_flow *flow = point->flow;

	point->flow_read = true;
	point->whole = !*flow->reason && flow->window_count == 1 && flow->exit_count == 1 &&
		       flow->windows[0].entry && flow->windows[0].count == 1 &&
		       flow->windows[0].ends && !flow->windows[0].hole && !flow->block_count &&
		       !flow->redirect_count && !flow->exits[0].unsure;
	if (point->whole)
		return;
	fay_flow_deinit(point->flow);
	free(point->flow);
	point->flow = NULL;
}

/* Whether faults are exceptions where it is, and one may happen in what is overwritten there. */
static bool keeps_faults(struct program *program, const struct fay_point *point)
{
	uint8_t bytes[FAY_DISPLACED_MAX];
	uint64_t at = point->function.address;
	size_t size = fay_text_program(&program->text, at, bytes, sizeof(bytes));

	return (point->inside || fay_code_faults(bytes, size)) && enter_module(program, at) &&
	       fay_taken_faults(program->taken);
}

static int read_flows(struct program *program)
{
	struct fay_plan *plan = program->plan;

	for (size_t i = 0; i < plan->point_count; i++) {
		struct fay_point *point = &plan->points[i];

		point->sweeps = point->inside ? FAY_SWEEP_NONE : sweep_of(point->function.name);
		if (!point->faults_known)
			point->keeps_faults = keeps_faults(program, point);
		point->faults_known = true;
		if (point->inside || point->flow ||
		    !(point->leaves || point->helper || is_small(plan, point)))
			continue;
		if (read_flow(program, point))
			return -1;
		if (!point->leaves && !point->helper)
			keep_whole(point);
	}
	return 0;
}

/* Whether some exit is a jump, or one at which perhaps another call returns. */
static void look_at_exits(struct fay_plan *plan, bool *jumps, bool *unsure)
{
	for (size_t i = 0; i < plan->point_count; i++) {
		struct fay_point *point = &plan->points[i];

		for (size_t k = 0; point->flow && !point->whole && !*point->flow->reason &&
				   k < point->flow->exit_count;
		     k++) {
			*jumps |= point->flow->exits[k].kind != FAY_EXIT_RETURN;
			point->unsure |= point->flow->exits[k].unsure || point->function.guessed;
		}
		*unsure |= point->unsure;
	}
}

static uint32_t fields_at_ends(const struct fay_plan *plan)
{
	uint32_t fields = 0;

	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (fay_trampoline_watches(&plan->verdict->probes[i]))
			fields |= plan->verdict->probes[i].event_fields;
	return fields;
}

static void choose_records(struct fay_plan *plan)
{
	bool jumps = false, unsure = false;
	uint32_t fields = fields_at_ends(plan);

	look_at_exits(plan, &jumps, &unsure);
	plan->records =
		has_kind(plan, FAY_PROBE_EXCEPTION) ||
		fields & (FAY_FIELD_DURATION | FAY_FIELDS_ARGUMENTS) ||
		(jumps && fields & (FAY_FIELD_RETVAL | FAY_FIELD_RETVAL2 | FAY_FIELD_RETVAL_FLOAT));
	plan->some_records = plan->records || unsure;
	plan->wide_records = plan->some_records && fields & FAY_FIELDS_KEPT;
	plan->records_size = fay_records_size(plan);
}

/* The functions that calls go on in. *added: there are new ones. */
static int add_continuing(struct program *program, size_t *capacity, bool *added)
{
	struct fay_plan *plan = program->plan;
	size_t count = plan->point_count;

	for (size_t i = 0; i < count; i++) {
		const struct fay_flow *flow = plan->points[i].flow;

		for (size_t k = 0; flow && (!plan->points[i].whole || plan->points[i].leaves) &&
				   !*flow->reason && k < flow->exit_count;
		     k++) {
			uint64_t target = flow->exits[k].target, *word = &flow->exits[k].word;
			struct fay_function function;
			struct fay_point *known;

			if (flow->exits[k].kind != FAY_EXIT_JUMP)
				continue;
			if (exit_by_word(&program->text, target, word) &&
			    fay_text_now(&program->text, *word, &target, 8) != 8)
				continue;
			known = fay_points_at(plan, target);
			if (known) {
				/* flags may be in use there, too */
				known->careful |= flow->exits[k].careful;
				*added |= !known->leaves && !known->helper;
				known->leaves |= !known->helper;
				continue;
			}
			if (!fay_target_function_at(program->target, target, &function))
				continue;
			if (add_helper(plan, capacity, &function))
				return -1;
			*added = true;
		}
	}
	return fay_points_fold(plan);
}

static int resolve(struct program *program, size_t *capacity)
{
	struct fay_plan *plan = program->plan;
	bool added = true;

	if (read_flows(program))
		return -1;
	choose_records(plan);
	if (has_kind(plan, FAY_PROBE_EXCEPTION) &&
	    (add_leaving(plan, capacity) || fay_points_fold(plan) || read_flows(program)))
		return -1;
	for (unsigned round = 0; round < HELPER_ROUNDS && added && plan->records; round++) {
		added = false;
		if (add_continuing(program, capacity, &added) || read_flows(program))
			return -1;
	}
	return 0;
}

int fay_exits_resolve(struct fay_plan *plan, size_t *capacity, struct fay_error *error)
{
	struct fay_zones present = { 0 };
	struct program program = { .plan = plan,
				   .target = plan->target,
				   .text = { .present = &present,
					     .target = plan->of_files ? plan->target : NULL } };
	struct fay_maps maps;
	int code;

	code = fay_maps_read(plan->pid, &maps, error);
	if (code)
		return code;
	program.text.memory = fay_process_memory(plan->pid, O_RDONLY);
	program.flow = (struct fay_flow_program){ .context = &program,
						  .read = read_bytes,
						  .place = place,
						  .taken = taken,
						  .trapped = trapped };
	if (program.text.memory < 0)
		code = fay_error_set(
			error, FAY_E_REFUSED,
			"memory of process %d: %s (needs the same user, or CAP_SYS_PTRACE)",
			(int)plan->pid, strerror(errno));
	if (!code)
		code = fay_zones_settle(plan->pid, &maps, program.text.memory, &present, error);
	if (!code && resolve(&program, capacity))
		code = fay_points_full(plan, error);
	if (program.text.memory >= 0)
		close(program.text.memory);
	leave_module(&program);
	free(program.addresses);
	fay_program_text_deinit(&program.text);
	fay_zones_deinit(&present);
	fay_maps_deinit(&maps);
	return code;
}
