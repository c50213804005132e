/* SPDX-License-Identifier: MIT */
/*
 * A kernel query as BPF programs: which programs there are, and what a session needs to know of
 * them.
 *
 *   tracepoints                   one program each
 *   system calls as they begin    one program of sys_enter
 *   ... as they end               one program of sys_exit; if their duration is asked for, a second
 *				   one notes when they begin; if execve's arguments are, another
 *				   notes those
 *   functions of the kernel       one program each; if their duration is asked for, a second one
 *				   each
 *   traps in programs             one program each
 *
 * The programs are attached by the tracepoint's type (BPF_TRACE_RAW_TP), so that the kernel's
 * verifier knows what the arguments point to and structures are read without a helper.
 */
#include "programs_private.h"

#include <bpf/btf.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define COMPILED_TOGETHER 4u /* programs of traps */

struct job {
	struct fay_codegen g;
	struct fay_codegen_bpf bpf;
	struct fay_bpf_object *object;
	struct fay_error *error;
};

/* The next program, attached to what has type `id`. */
static int add_program(struct job *job, enum fay_bpf_role role, const char *point, uint32_t attach,
		       uint32_t id)
{
	char section[16];
	struct fay_bpf_object *object = job->object;
	struct fay_bpf_program *program = &object->programs[object->program_count];
	snprintf(program->name, sizeof(program->name), "%s %s",
		 attach == BPF_TRACE_RAW_TP ? "tracepoint" : "function", point);
	program->type = BPF_PROG_TYPE_TRACING;
	program->attach = attach;
	program->btf_id = id;
	job->bpf.role = role;
	job->bpf.point = point;
	snprintf(section, sizeof(section), "program%u", object->program_count++);
	if (!fay_bpf_program(&job->g, section))
		return fay_error_set(job->error, FAY_E_REFUSED,
				     "the kernel's types do not say where a task keeps its name");
	return FAY_OK;
}

static int add_tracepoint(struct job *job, enum fay_bpf_role role, const char *name)
{
	struct fay_btf_tracepoint type;
	if (!fay_btf_tracepoint(job->bpf.btf, name, &type))
		return fay_error_set(job->error, FAY_E_REFUSED, "this kernel has no tracepoint %s",
				     name);
	return add_program(job, role, name, BPF_TRACE_RAW_TP, type.id);
}

/* One function, as it begins or ends. What notes the beginning comes behind what looks it up: it is
 * attached before. */
static int add_function(struct job *job, const char *name, uint32_t id,
			const struct btf_type *prototype)
{
	const struct fay_checked *checked = &job->g.p->checked;
	bool ends = checked->kind == SOURCE_RETURN;
	job->bpf.result = fay_btf_result(job->bpf.btf, btf__type_by_id(job->bpf.btf, id)->type);
	job->bpf.argument_count = btf_vlen(prototype) + (ends && job->bpf.result.bytes);
	int code = add_program(job, ROLE_FUNCTION, name, ends ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY,
			       id);
	if (!code && ends && checked->uses_duration)
		code = add_program(job, ROLE_CALL, name, BPF_TRACE_FENTRY, id);
	return code;
}

/* Functions of the kernel whose names match, those that BTF describes. */
static int add_functions(struct job *job, const char *glob)
{
	const struct btf *btf = job->bpf.btf;
	uint32_t count = 0;
	int code = FAY_OK;
	for (uint32_t id = 1; !code && id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *name = fay_btf_name(btf, type->name_off);
		if (!btf_is_func(type) || fnmatch(glob, name, 0))
			continue;
		const struct btf_type *prototype = btf__type_by_id(btf, type->type);
		if (!prototype || !btf_is_func_proto(prototype))
			continue;
		if (count++ == FAY_KERNEL_POINTS_MAX)
			return fay_error_set(job->error, FAY_E_LIMIT,
					     "more than %u functions match; through BPF each needs "
					     "a program of its own",
					     FAY_KERNEL_POINTS_MAX);
		code = add_function(job, name, id, prototype);
	}
	if (!code && !count)
		return fay_error_set(
			job->error, FAY_E_REFUSED,
			"no function of the kernel that its types describe matches '%s'", glob);
	return code;
}

static int add_names(struct fay_bpf_object *object, const struct fay_kernel_source *source,
		     struct fay_error *error)
{
	object->names = calloc(FAY_BPF_SYSCALLS, sizeof(*object->names));
	if (!object->names)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint32_t i = 0; i < source->count; i++)
		if (source->points[i].number < FAY_BPF_SYSCALLS)
			object->names[source->points[i].number] =
				fay_name_hash(source->points[i].name);
	return FAY_OK;
}

/* What the loader took to be asked of calls' ends is what the query asks. */
static bool fits_query(const struct job *job, const struct fay_trap *trap)
{
	const struct fay_checked *checked = &job->g.p->checked;
	bool ends = checked->kind == SOURCE_RETURN;
	if (trap->kind != FAY_TRAP_END)
		return ends == (trap->kind == FAY_TRAP_CALL);
	return ends && (trap->kept || trap->offset == trap->start ||
			!(checked->uses_duration || checked->return_arguments));
}

/* The programs so far, which are in the module, and are not from now on. */
static int compile(struct job *job)
{
	const struct fay_query *query = job->g.p->query;
	if (job->g.extends)
		return fay_query_error_at(
			query, job->error, FAY_E_REFUSED, query->extensions[0].span,
			"C functions run in native probes, and these events come through BPF");
	int code = fay_bpf_emit(&job->g, job->object, job->error);
	LLVMDisposeModule(job->g.module);
	job->g.module = LLVMModuleCreateWithNameInContext("query", job->g.context);
	return code;
}

/* A few at a time, so that it can be given up in between. */
static int add_traps(struct job *job)
{
	const struct fay_bpf_options *options = job->bpf.options;
	int code = FAY_OK;
	for (size_t i = 0; !code && i < options->trap_count; i++) {
		struct fay_bpf_program *program = &job->object->programs[i];
		uint32_t first = 0;
		job->bpf.trap = options->traps[i];
		while (!fay_trap_of_same(options->traps[first], job->bpf.trap))
			first++;
		job->bpf.function = first;
		if (!fits_query(job, job->bpf.trap))
			return fay_error_set(job->error, FAY_E_INTERNAL,
					     "a trap in %s does not fit the query",
					     job->bpf.trap->function.name);
		job->g.inlined = job->g.p->checked.inlined && job->bpf.trap->function.marker;
		code = add_program(job, ROLE_TRAP, job->bpf.trap->function.name, 0, 0);
		program->type = BPF_PROG_TYPE_KPROBE;
		snprintf(program->name, sizeof(program->name), "trap %.50s",
			 job->bpf.trap->function.name);
		if (!code && i % COMPILED_TOGETHER == COMPILED_TOGETHER - 1)
			code = compile(job);
		if (options->given_up && *options->given_up)
			return fay_error_set(job->error, FAY_E_REFUSED, "interrupted");
	}
	return code;
}

static int add_programs(struct job *job)
{
	const struct fay_checked *checked = &job->g.p->checked;
	const struct fay_kernel_source *source = checked->kernel;
	int code = FAY_OK;
	if (job->bpf.options->trap_count)
		return add_traps(job);
	if (checked->kind == SOURCE_SYSCALL) {
		if (source->count > 1)
			code = add_names(job->object, source, job->error);
		if (!code)
			code = checked->uses_end ? add_tracepoint(job, ROLE_EXIT, "sys_exit")
						 : add_tracepoint(job, ROLE_ENTER, "sys_enter");
		if (!code && checked->uses_duration)
			code = add_tracepoint(job, ROLE_START, "sys_enter");
		if (!code && fay_bpf_notes_executed(job->g.p))
			code = add_tracepoint(job, ROLE_EXECUTE, "sys_enter");
	}
	if (checked->kind == SOURCE_TIMER) {
		code = add_program(job, ROLE_TIMER, "timer", 0, 0);
		job->object->programs[0].type = BPF_PROG_TYPE_PERF_EVENT;
		job->object->programs[0].period = source->period;
		snprintf(job->object->programs[0].name, sizeof(job->object->programs[0].name),
			 "timer");
	}
	if (checked->kind == SOURCE_ENTRY || checked->kind == SOURCE_RETURN)
		code = add_functions(job, strchr(checked->pattern, '!') + 1);
	for (uint32_t i = 0; !code && checked->kind == SOURCE_TRACEPOINT && i < source->count; i++)
		code = add_tracepoint(job, ROLE_TRACEPOINT, source->points[i].name);
	if (!code && fay_bpf_is_followed(job->bpf.options))
		code = add_tracepoint(job, ROLE_FORK, "sched_process_fork");
	return code;
}

static int find_types(struct job *job, struct fay_query *query)
{
	if (!query->btf && fay_btf_open(getenv("FAY_BTF"), &query->btf, job->error))
		return FAY_E_REFUSED;
	job->bpf.btf = query->btf;
	return FAY_OK;
}

static int generate(struct job *job)
{
	const struct fay_plan_private *p = job->g.p;
	struct fay_bpf_object *object = job->object;
	bool traps = job->bpf.options->trap_count,
	     functions = !traps && !fay_source_is_bpf(p->checked.kind);
	uint32_t points = traps       ? (uint32_t)job->bpf.options->trap_count
			  : functions ? FAY_KERNEL_POINTS_MAX
				      : p->checked.kernel->count;
	object->programs = calloc(2 * points + 3, sizeof(*object->programs));
	job->g.values = calloc(p->checked.exprs.count + 1, sizeof(*job->g.values));
	if (!object->programs || !job->g.values)
		return fay_error_set(job->error, FAY_E_LIMIT, "out of memory");
	job->bpf.source = p->checked.kernel;
	job->bpf.guarded = traps || (p->checked.kind != SOURCE_SYSCALL && points > 1);
	job->bpf.stride = (FAY_SLOT_HEADER + job->g.plan->spec.local_size + 63) & ~63u;
	fay_codegen_text_emitter(&job->g);
	int code = add_programs(job);
	if (!code)
		code = compile(job);
	for (uint32_t i = 0; i < object->program_count && !code; i++)
		if (!object->programs[i].code)
			code = fay_error_set(job->error, FAY_E_INTERNAL,
					     "LLVM's object lacks a program");
	object->maps = job->bpf.maps | 1u << FAY_BPF_SLOTS;
	fay_bpf_machine(object->values);
	object->typed = functions || p->checked.kind == SOURCE_TRACEPOINT;
	object->slot_stride = job->bpf.stride;
	object->local_size = job->g.plan->spec.local_size;
	object->row_size = p->row_size;
	object->some =
		functions && object->program_count > 1u + p->checked.uses_duration +
							     fay_bpf_is_followed(job->bpf.options);
	object->pids = job->bpf.options->pids;
	object->pid_count = job->bpf.options->pid_count;
	return code;
}

/* Whether the event's field is asked for. Depth is bounded by FAY_QUERY_MAX_DEPTH. */
static bool uses_field(const struct fay_expr *expr, size_t offset)
{
	if (!expr)
		return false;
	if (expr->op == EXPR_FIELD)
		return fay_fields[expr->value].size && fay_fields[expr->value].offset == offset;
	if (expr->op == EXPR_AGGREGATE)
		return uses_field(expr->aggregate->operand, offset) ||
		       uses_field(expr->aggregate->condition, offset);
	return uses_field(expr->a, offset) || uses_field(expr->b, offset) ||
	       uses_field(expr->c, offset);
}

static bool stage_uses_field(const struct fay_plan_private *p, size_t offset)
{
	for (const struct fay_filter *filter = p->checked.filters; filter; filter = filter->next)
		if (uses_field(filter->expr, offset))
			return true;
	for (uint32_t i = 0; i < p->keys + p->values; i++)
		if (uses_field(p->columns[i].expr, offset))
			return true;
	return false;
}

/* All stacks of an event, each depth and kind by itself, lie on the program's stack of 512 bytes.
 * */
static uint32_t stack_frames(const struct fay_plan_private *p)
{
	uint32_t frames = 0;
	for (unsigned bucket = 0; bucket < FAY_EXPR_BUCKETS; bucket++)
		for (const struct fay_expr *expr = p->checked.exprs.buckets[bucket]; expr;
		     expr = expr->next)
			frames += expr->op == EXPR_STACK ? (uint32_t)expr->value : 0;
	return frames;
}

static int refuse(const struct fay_plan_private *p, struct fay_error *error)
{
	if (stage_uses_field(p, offsetof(struct fay_event, cycles)))
		return fay_error_set(error, FAY_E_REFUSED,
				     "events that come through BPF have no `cycles`");
	if (stack_frames(p) > FAY_BPF_FRAMES_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "stacks of an event that comes through BPF have at most %u "
				     "frames in total, and this query wants %u",
				     FAY_BPF_FRAMES_MAX, stack_frames(p));
	return FAY_OK;
}

const char *fay_plan_trap_refusal(const struct fay_plan *plan)
{
	const struct fay_plan_private *p = fay_plan_stage(plan, 0);
	enum fay_source kind = p->checked.kind;
	if (plan->domain != DOMAIN_USER ||
	    !(kind & (SOURCE_ENTRY | SOURCE_MARKER | SOURCE_RETURN | SOURCE_LINE)))
		return "the query is not about functions, markers or lines";
	if (fay_check_has_exceptions(&p->checked))
		return "the query asks for calls that end by an exception";
	if (plan->joins || plan->window_events)
		return "the query joins events, or counts windows in them";
	if (plan->extended)
		return "C functions run in native probes only";
	if (stack_frames(p))
		return "the query asks for stacks";
	if (stage_uses_field(p, offsetof(struct fay_event, cycles)))
		return "the query asks for `cycles`";
	return NULL;
}

int fay_plan_generate_bpf(const struct fay_plan *plan, const struct fay_bpf_options *options,
			  struct fay_bpf_object *object, struct fay_error *error)
{
	struct job job = { .object = object, .error = error };
	memset(object, 0, sizeof(*object));
	job.g = (struct fay_codegen){ .plan = plan,
				      .p = fay_plan_stage(plan, options->side),
				      .bpf = &job.bpf };
	job.bpf.options = options;
	job.bpf.object = object;
	int code = refuse(job.g.p, error);
	if (!code)
		code = find_types(&job, job.g.p->query);
	if (code)
		return code;
	job.g.context = LLVMContextCreate();
	job.g.module = LLVMModuleCreateWithNameInContext("query", job.g.context);
	fay_codegen_init(&job.g);
	code = generate(&job);
	LLVMDisposeBuilder(job.g.builder);
	LLVMDisposeModule(job.g.module);
	LLVMContextDispose(job.g.context);
	free(job.g.values);
	if (code)
		fay_bpf_object_deinit(object);
	return code;
}
