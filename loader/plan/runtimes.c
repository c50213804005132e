/* SPDX-License-Identifier: MIT */
/*
 * Run-time systems that do not stand that certain of their functions are changed, or whose
 * functions get their arguments elsewhere. They are recognised by names that only they have, of
 * functions or of files. docs/internals/dispatcher.md, Limits.
 */
#include "plan_private.h"

#include <stdio.h>
#include <string.h>

#include "loader/names/target.h"

static bool module_defines(const struct fay_target *target, struct fay_module *module,
			   const char *name)
{
	const struct fay_object *object = fay_module_object(target, module);

	for (size_t i = 0; object && i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];

		if (symbol->kind == FAY_SYMBOL_FUNCTION && symbol->length == strlen(name) &&
		    !memcmp(symbol->name, name, symbol->length))
			return true;
	}
	return false;
}

/* Functions that are entered where no jump in the code leads, or whose bytes somebody compares. By
 * name, since nothing in their code tells. */
bool fay_unpatchable(const char *name, char reason[FAY_REASON_MAX])
{
	static const struct {
		const char *name, *reason;
	} list[] = {
		{ "runtime.goexit", "is entered after its first instruction by Go's scheduler" },
		{ "runtime.goexit.abi0",
		  "is entered after its first instruction by Go's scheduler" },
		{ "runtime.asyncPreempt",
		  "is entered between any two instructions by Go's scheduler" },
		{ "runtime.asyncPreempt.abi0",
		  "is entered between any two instructions by Go's scheduler" },
		{ "__restore_rt", "is recognised by its bytes by unwinders and debuggers" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!strcmp(name, list[i].name))
			return snprintf(reason, FAY_REASON_MAX, "%s", list[i].reason) > 0;
	return false;
}

/* A module that has or uses a function whose name begins with one of these (with | between them) is
 * the system's, and its functions whose names begin so are left out. */
static const struct {
	const char *used, *untraced, *reason;
} systems[] = {
	/* V8, so that calls from what it compiles are short, maps its file once more for each
	 * thread with a heap of its own, or copies what it has mapped if the file cannot be
	 * opened. */
	{ "_ZN2v8|_ZNK2v8", "Builtins_",
	  "may be copied by V8 for a worker that begins later, with a jump or trap in it that "
	  "would "
	  "end the program; it cannot be traced" },
	/* Mono reads the code of the calls to other modules that it has compiled when they are
	 * first made. */
	{ "mono_aot_file_info|mono_aot_module_", "plt_",
	  "is code that Mono reads when it is first called; it cannot be traced" },
};
#define SYSTEMS (sizeof(systems) / sizeof(systems[0]))

static bool begins(const char *name, size_t length, const char *list)
{
	while (*list) {
		size_t part = strcspn(list, "|");

		if (length >= part && !memcmp(name, list, part))
			return true;
		list += part + (list[part] == '|');
	}
	return false;
}

/* What of a module matters, found out once for all of its points. */
struct judgement {
	const char *module;
	size_t system;      /* SYSTEMS: none */
	bool go, registers; /* Go code; its functions get their arguments in registers */
};

static bool uses(const struct fay_object *object, const char *names)
{
	for (size_t i = 0; object && i < object->symbol_count; i++)
		if (begins(object->symbols[i].name, object->symbols[i].length, names))
			return true;
	return false;
}

static struct judgement judge_module(const struct fay_target *target, const char *name)
{
	struct judgement judgement = { .module = name, .system = SYSTEMS };

	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];

		if (strcmp(module->name, name))
			continue;
		for (size_t k = 0; k < SYSTEMS && judgement.system == SYSTEMS; k++)
			if (uses(fay_module_object(target, module), systems[k].used))
				judgement.system = k;
		judgement.go |= module_defines(target, module, "runtime.newstack") ||
				module_defines(target, module, "runtime.mallocgc");
		judgement.registers |= module_defines(target, module, "runtime.goexit.abi0") ||
				       module_defines(target, module, "runtime.asyncPreempt.abi0");
	}
	return judgement;
}

/* What GCC and clang add to the names of C functions: .part.0, .cold */
static bool is_cloned(const char *name)
{
	static const char *const added[] = { ".part.",     ".constprop.", ".isra.",
					     ".lto_priv.", ".llvm.",      ".cold" };

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		const char *at = strstr(name, added[i]);

		if (at && !at[strlen(added[i]) + strspn(at + strlen(added[i]), "0123456789")])
			return true;
	}
	return false;
}

/* Go's functions have a point in their names, those of C in the same file have none of their own.
 * Those that take their arguments on the stack end in .abi0 (since Go 1.17). */
static void judge_go(const struct fay_plan *plan, bool registers, struct fay_point *point)
{
	const char *name = point->function.name, *end = strrchr(name, '.');
	uint32_t fields = 0;

	if (point->inside || (end ? is_cloned(name) : strncmp(name, "_cgoexp", 7) != 0))
		return;
	for (uint32_t k = 0; k < point->probe_count; k++)
		fields |= plan->verdict->probes[fay_point_probe(point, k)].event_fields;
	if (!(fields & FAY_FIELDS_ARGUMENTS))
		return;
	point->go = true;
	if (!registers)
		point->argless = "is code of Go before 1.17, whose arguments are on the stack; "
				 "they cannot be read";
	else if (end && !strcmp(end, ".abi0"))
		point->argless =
			"is a Go function whose arguments are on the stack; they cannot be read";
}

/*
 * PyPy's compiler looks at the first byte of C functions that it makes calls of, and if a jump is
 * there calls what that leads to instead (follow_jump() in rpython/jit/backend/x86): its code would
 * call trampolines after they are gone.
 */
bool fay_runtimes_follow_jumps(const struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		if (fay_module_matches(&target->modules[i], "libpypy*"))
			return true;
	return false;
}

/*
 * Below the stack pointer a function of Go that was called by one that has checked has 928 - 128
 * bytes (runtime/stack.go: StackGuard, StackSmall), less the call's. What is used of it beside the
 * probe's own frame is measured by tests/integration/switching/stack_used.sh: of a thread's first
 * event, of rows, of tables that are handed on; more at places inside functions, and for fields
 * behind the event's first.
 */
#define GO_STACK 784u
#define FIRST_STACK 216u
#define EMIT_STACK 440u
#define FLUSH_STACK 472u
#define INSIDE_STACK 224u
#define EVENT_STACK 128u   /* of the event, in these */
#define VECTORS_STACK 600u /* 16 of 32 bytes, and what aligns them */

static uint64_t stack_of(const struct fay_probe_facts *probe)
{
	uint32_t helpers = probe->helpers & 1u << FAY_HELPER_FLUSH ? FLUSH_STACK
			   : probe->helpers                        ? EMIT_STACK
								   : FIRST_STACK;

	uint32_t event = fay_event_bytes(probe->event_fields);

	return probe->worst_stack + helpers + (probe->kind == FAY_PROBE_OFFSET ? INSIDE_STACK : 0) +
	       (event > EVENT_STACK ? event - EVENT_STACK + 8 : 0) +
	       (probe->clobbered_vectors ? VECTORS_STACK : 0);
}

/* C's functions, in the same file, have the system's stacks. */
static void judge_stack(const struct fay_plan *plan, struct fay_point *point)
{
	const char *name = point->function.name;

	if (!strchr(name, '.') || is_cloned(name))
		return;
	for (uint32_t k = 0; k < point->probe_count; k++)
		if (stack_of(&plan->verdict->probes[fay_point_probe(point, k)]) > GO_STACK)
			point->untraced =
				"is a Go function, which may have 784 bytes of stack left: the "
				"query takes more; ask for fewer columns, or a shorter `Stack`";
}

static bool has_libc(const struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		if (fay_module_matches(&target->modules[i], "libc"))
			return true;
	return false;
}

void fay_runtimes_judge(struct fay_plan *plan)
{
	struct judgement judgement = { 0 };
	bool libc = has_libc(plan->target);

	plan->jumps_followed = fay_runtimes_follow_jumps(plan->target);
	for (size_t i = 0; i < plan->point_count; i++) {
		struct fay_point *point = &plan->points[i];

		if (!judgement.module || strcmp(judgement.module, point->function.module))
			judgement = judge_module(plan->target, point->function.module);
		if (judgement.system < SYSTEMS &&
		    begins(point->function.name, strlen(point->function.name),
			   systems[judgement.system].untraced))
			point->untraced = systems[judgement.system].reason;
		point->stack_moves = judgement.go; /* assembly in between has names like C's */
		if (judgement.go && !libc) {
			/* The first thread may be as the dynamic linker has made it; those that Go
			 * makes have no thread control block. */
			plan->thread_pointer = false;
			plan->tid_offset = -1;
		}
		if (judgement.go) {
			judge_go(plan, judgement.registers, point);
			judge_stack(plan, point);
		}
	}
}
