/* SPDX-License-Identifier: MIT */
/*
 * A kernel query as BPF programs: which programs there are, whose events they let through, and what LLVM's BPF target makes of them.
 *
 *   tracepoints                   one program each
 *   system calls as they begin    one program of sys_enter
 *   ... as they end               one program of sys_exit; if their duration is asked for, a second one notes when they begin
 *   functions of the kernel       one program each; if their duration is asked for, a second one each
 *
 * The programs are attached by the tracepoint's type (BPF_TRACE_RAW_TP), so that the kernel's verifier knows what the arguments point to and structures are
 * read without a helper.
 */
#include "codegen_bpf.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/user.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#define COMPAT_STATUS 2u /* thread_info.status: a system call of the 32-bit table (arch/x86/include/asm/thread_info.h) */

/* --- whose events -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef any_of(struct fay_codegen *g, LLVMValueRef sofar, LLVMValueRef one)
{
	return sofar ? LLVMBuildOr(g->builder, sofar, one, "") : one;
}

static bool note_place(struct fay_bpf_object *object, const char *structure, const char *member, uint32_t offset)
{
	struct fay_bpf_place *place = object->places;
	for (uint32_t i = 0; i < object->place_count; i++, place++)
		if (!strcmp(place->structure, structure) && !strcmp(place->member, member))
			return true;
	if (object->place_count == FAY_BPF_PLACES_MAX)
		return false;
	object->place_count++;
	place->offset = offset;
	return (size_t)snprintf(place->structure, sizeof(place->structure), "%s", structure) < sizeof(place->structure) &&
	       (size_t)snprintf(place->member, sizeof(place->member), "%s", member) < sizeof(place->member);
}

static LLVMValueRef member_offset(struct fay_codegen *g, LLVMValueRef object, const char *structure, const char *name, uint32_t *offset)
{
	struct fay_btf_field field;
	uint32_t id = fay_btf_find(g->bpf->btf, BTF_KIND_STRUCT, structure);
	if (!id || !fay_btf_member(g->bpf->btf, id, name, &field))
		return NULL;
	*offset = field.bit_offset / 8;
	return note_place(g->bpf->object, structure, name, *offset) ? object : NULL;
}

static LLVMValueRef current_task(struct fay_codegen *g)
{
	return LLVMBuildIntToPtr(g->builder, fay_bpf_helper(g, BPF_FUNC_get_current_task_btf, NULL, 0), g->pointer, "");
}

/* Programs of 32 bits have another table of system calls. */
static void require_native(struct fay_codegen *g)
{
	uint32_t info, status;
	LLVMValueRef task = current_task(g);
	if (!member_offset(g, task, "task_struct", "thread_info", &info) || !member_offset(g, task, "thread_info", "status", &status))
		return;
	LLVMValueRef bits = LLVMBuildAnd(g->builder, fay_bpf_load(g, task, info + status, 4), fay_codegen_i64(g, COMPAT_STATUS), "");
	fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntEQ, bits, fay_codegen_i64(g, 0), ""));
}

static LLVMValueRef is_listed(struct fay_codegen *g, LLVMValueRef process)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(g->context);
	LLVMBuildStore(g->builder, LLVMBuildTrunc(g->builder, process, i32, ""), g->bpf->buffer);
	LLVMValueRef arguments[] = {fay_bpf_map_reference(g, FAY_BPF_PIDS, BPF_PSEUDO_MAP_FD), g->bpf->buffer};
	LLVMValueRef found = fay_bpf_helper(g, BPF_FUNC_map_lookup_elem, arguments, 2);
	return LLVMBuildICmp(g->builder, LLVMIntNE, found, fay_codegen_i64(g, 0), "");
}

static bool is_followed(const struct fay_bpf_options *options)
{
	return options->follow && options->pid_count;
}

static LLVMValueRef is_wanted_process(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMValueRef process = LLVMBuildLShr(g->builder, fay_bpf_identity(g), fay_codegen_i64(g, 32), ""), wanted = NULL;
	if (options->pid_count > 4 || is_followed(options))
		return is_listed(g, process);
	for (size_t i = 0; i < options->pid_count; i++)
		wanted = any_of(g, wanted, LLVMBuildICmp(g->builder, LLVMIntEQ, process, fay_codegen_i64(g, (uint64_t)options->pids[i]), ""));
	return wanted;
}

/* The process's name is that of its first thread. */
static bool require_name(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMBuilderRef b = g->builder;
	uint32_t leader, comm;
	LLVMValueRef task = current_task(g), wanted = NULL;
	if (!member_offset(g, task, "task_struct", "group_leader", &leader) || !member_offset(g, task, "task_struct", "comm", &comm))
		return false;
	LLVMValueRef first = LLVMBuildIntToPtr(b, fay_bpf_load(g, task, leader, 8), g->pointer, "");
	LLVMValueRef arguments[] = {g->bpf->buffer, fay_codegen_i64(g, FAY_COMM_SIZE), fay_codegen_at(g, first, fay_codegen_i64(g, comm))};
	fay_bpf_clear_buffer(g);
	fay_bpf_helper(g, BPF_FUNC_probe_read_kernel_str, arguments, 3);
	LLVMValueRef low = fay_bpf_load(g, g->bpf->buffer, 0, 8), high = fay_bpf_load(g, g->bpf->buffer, 8, 8);
	for (size_t i = 0; i < options->comm_count; i++) {
		uint64_t words[2] = {0};
		memcpy(words, options->comms[i], strnlen(options->comms[i], FAY_COMM_SIZE - 1));
		LLVMValueRef other = LLVMBuildOr(b, LLVMBuildXor(b, low, fay_codegen_i64(g, words[0]), ""),
						 LLVMBuildXor(b, high, fay_codegen_i64(g, words[1]), ""), "");
		wanted = any_of(g, wanted, LLVMBuildICmp(b, LLVMIntEQ, other, fay_codegen_i64(g, 0), ""));
	}
	fay_bpf_require(g, wanted);
	return true;
}

static void require_thread(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMValueRef thread = LLVMBuildAnd(g->builder, fay_bpf_identity(g), fay_codegen_i64(g, UINT32_MAX), ""), wanted = NULL;
	for (size_t i = 0; i < options->tid_count; i++)
		wanted = any_of(g, wanted, LLVMBuildICmp(g->builder, LLVMIntEQ, thread, fay_codegen_i64(g, (uint64_t)options->tids[i]), ""));
	fay_bpf_require(g, wanted);
}

static bool require_process(struct fay_codegen *g)
{
	const struct fay_bpf_options *options = g->bpf->options;
	if (options->tid_count)
		require_thread(g, options);
	if (options->pid_count) {
		fay_bpf_require(g, is_wanted_process(g, options));
	} else if (options->not_self) {
		LLVMValueRef process = LLVMBuildLShr(g->builder, fay_bpf_identity(g), fay_codegen_i64(g, 32), "");
		fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntNE, process, fay_bpf_machine_value(g, FAY_BPF_VALUE_SELF), ""));
	}
	return !options->comm_count || require_name(g, options);
}

/* --- which events --------------------------------------------------------------------------------------------------------- */

static void require_syscall(struct fay_codegen *g)
{
	const struct fay_kernel_source *source = g->bpf->source;
	LLVMBuilderRef b = g->builder;
	if (g->bpf->role == ROLE_EXIT) {
		LLVMValueRef registers = LLVMBuildIntToPtr(b, fay_bpf_context(g, 0), g->pointer, "");
		g->bpf->number = fay_bpf_load(g, registers, offsetof(struct user_regs_struct, orig_rax), 8);
	} else {
		g->bpf->number = fay_bpf_context(g, 1);
	}
	if (source->count == 1) {
		fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntEQ, g->bpf->number, fay_codegen_i64(g, source->points[0].number), ""));
		g->bpf->name = fay_codegen_i64(g, fay_name_hash(source->points[0].name));
	} else {
		fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntULT, g->bpf->number, fay_codegen_i64(g, FAY_BPF_SYSCALLS), ""));
		LLVMValueRef names = fay_bpf_map_reference(g, FAY_BPF_NAMES, BPF_PSEUDO_MAP_VALUE);
		LLVMValueRef offset = LLVMBuildShl(b, g->bpf->number, fay_codegen_i64(g, 3), "");
		g->bpf->name = fay_codegen_load(g, fay_codegen_at(g, names, offset), 0);
		fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntNE, g->bpf->name, fay_codegen_i64(g, 0), ""));
	}
	require_native(g);
}

static void note_start(struct fay_codegen *g)
{
	LLVMValueRef start = fay_bpf_start_of_thread(g);
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, time), fay_bpf_helper(g, BPF_FUNC_ktime_get_ns, NULL, 0));
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, number), g->bpf->number);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
}

static void set_duration(struct fay_codegen *g, LLVMValueRef since)
{
	fay_bpf_time(g);
	g->bpf->duration = LLVMBuildSub(g->builder, g->bpf->time, since, "");
}

/* Only calls whose beginning was seen. A note is used once: a call that never returns leaves one that is another thread's later. */
static void take_start(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef start = fay_bpf_start_of_thread(g);
	LLVMValueRef time = fay_codegen_load(g, start, offsetof(struct fay_bpf_start, time));
	LLVMValueRef number = fay_codegen_load(g, start, offsetof(struct fay_bpf_start, number));
	fay_codegen_store(g, start, offsetof(struct fay_bpf_start, time), fay_codegen_i64(g, 0));
	fay_bpf_require(g, LLVMBuildAnd(b, LLVMBuildICmp(b, LLVMIntNE, time, fay_codegen_i64(g, 0), ""),
					LLVMBuildICmp(b, LLVMIntEQ, number, g->bpf->number, ""), ""));
	set_duration(g, time);
}

/* Where the call's context lies, on the stack of whoever makes it: no other call that is under way has it there, and its end finds it in the same place. */
static void put_call(struct fay_codegen *g)
{
	fay_codegen_store(g, g->bpf->buffer, 0, LLVMBuildPtrToInt(g->builder, g->event, g->i64, ""));
}

/* Without room the event is lost, and counted behind the processors' slots, atomically. */
static void note_call(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	LLVMValueRef value = fay_codegen_at(g, g->bpf->buffer, fay_codegen_i64(g, 8));
	put_call(g);
	fay_codegen_store(g, value, 0, fay_bpf_helper(g, BPF_FUNC_ktime_get_ns, NULL, 0));
	LLVMValueRef arguments[] = {fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD), g->bpf->buffer, value, fay_codegen_i64(g, BPF_ANY)};
	LLVMValueRef failed = fay_bpf_helper(g, BPF_FUNC_map_update_elem, arguments, 4);
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntNE, failed, fay_codegen_i64(g, 0), ""));
	LLVMValueRef own = LLVMBuildMul(b, fay_bpf_machine_value(g, FAY_BPF_VALUE_PROCESSORS), fay_codegen_i64(g, g->bpf->stride), "");
	LLVMValueRef slot = fay_codegen_at(g, fay_bpf_map_reference(g, FAY_BPF_SLOTS, BPF_PSEUDO_MAP_VALUE), own);
	LLVMValueRef lost = fay_codegen_at(g, slot, fay_codegen_i64(g, offsetof(struct fay_slot_header, lost_calls)));
	LLVMBuildAtomicRMW(b, LLVMAtomicRMWBinOpAdd, lost, fay_codegen_i64(g, 1), LLVMAtomicOrderingMonotonic, 0);
	LLVMBuildBr(b, g->leave);
	fay_codegen_continue(g, g->leave);
}

/* Before anything is decided about the event: what was noted must not stay. */
static void take_call(struct fay_codegen *g)
{
	LLVMBuilderRef b = g->builder;
	put_call(g);
	LLVMValueRef arguments[] = {fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD), g->bpf->buffer};
	LLVMValueRef found = fay_bpf_helper(g, BPF_FUNC_map_lookup_elem, arguments, 2);
	fay_bpf_require(g, LLVMBuildICmp(b, LLVMIntNE, found, fay_codegen_i64(g, 0), ""));
	LLVMValueRef time = fay_codegen_load(g, LLVMBuildIntToPtr(b, found, g->pointer, ""), 0);
	LLVMValueRef again[] = {fay_bpf_map_reference(g, FAY_BPF_CALLS, BPF_PSEUDO_MAP_FD), g->bpf->buffer};
	fay_bpf_helper(g, BPF_FUNC_map_delete_elem, again, 2);
	set_duration(g, time);
}

/* sched_process_fork hands over parent and child. A new thread is of a process that is listed already. */
static bool note_child(struct fay_codegen *g)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(g->context);
	uint32_t tgid;
	LLVMValueRef tasks[2];
	for (unsigned i = 0; i < 2; i++)
		tasks[i] = LLVMBuildIntToPtr(g->builder, fay_bpf_context(g, i), g->pointer, "");
	if (!member_offset(g, tasks[0], "task_struct", "tgid", &tgid))
		return false;
	fay_bpf_require(g, is_listed(g, fay_bpf_load(g, tasks[0], tgid, 4)));
	LLVMBuildStore(g->builder, LLVMBuildTrunc(g->builder, fay_bpf_load(g, tasks[1], tgid, 4), i32, ""), g->bpf->buffer);
	LLVMValueRef value = fay_codegen_at(g, g->bpf->buffer, fay_codegen_i64(g, 8));
	LLVMBuildStore(g->builder, LLVMConstInt(i32, 0, 0), value);
	LLVMValueRef arguments[] = {fay_bpf_map_reference(g, FAY_BPF_PIDS, BPF_PSEUDO_MAP_FD), g->bpf->buffer, value, fay_codegen_i64(g, BPF_ANY)};
	fay_bpf_helper(g, BPF_FUNC_map_update_elem, arguments, 4);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
	return true;
}

static void begin(struct fay_codegen *g, const char *section)
{
	char symbol[32];
	struct fay_codegen_bpf *bpf = g->bpf;
	LLVMTypeRef type = LLVMFunctionType(g->i64, &g->pointer, 1, 0);
	memset(g->values, 0, (g->p->checked.exprs.count + 1) * sizeof(*g->values));
	bpf->slot = bpf->cpu = bpf->identity = bpf->time = bpf->name = bpf->number = bpf->duration = NULL;
	bpf->out = NULL;
	snprintf(symbol, sizeof(symbol), "fay_%s", section);
	g->function = LLVMAddFunction(g->module, symbol, type);
	LLVMSetSection(g->function, section);
	g->event = LLVMGetParam(g->function, 0);
	fay_codegen_continue(g, fay_codegen_block(g, "entry"));
	bpf->buffer = LLVMBuildAlloca(g->builder, LLVMArrayType2(g->i64, FAY_COMM_SIZE / 8), "buffer");
	g->leave = fay_codegen_block(g, "leave");
}

/* What decides whether the event is one that is asked for, and what is needed of its beginning. */
static bool generate_event(struct fay_codegen *g)
{
	struct fay_codegen_bpf *bpf = g->bpf;
	bool ended = g->p->checked.uses_duration;
	if (bpf->role == ROLE_TRACEPOINT || bpf->role == ROLE_FUNCTION || bpf->role == ROLE_TIMER)
		bpf->name = fay_codegen_i64(g, fay_name_hash(bpf->point));
	else
		require_syscall(g);
	if (bpf->role == ROLE_FUNCTION && ended)
		take_call(g);
	if (!require_process(g))
		return false;
	if (bpf->role == ROLE_START) {
		note_start(g);
		return true;
	}
	if (bpf->role == ROLE_EXIT && ended)
		take_start(g);
	fay_codegen_body(g);
	return true;
}

/* Returns false if the kernel's types lack what is needed. */
static bool generate_program(struct fay_codegen *g, const char *section)
{
	struct fay_codegen_bpf *bpf = g->bpf;
	bool fine = true;
	begin(g, section);
	LLVMBasicBlockRef leave = g->leave;
	if (bpf->role == ROLE_FORK)
		fine = note_child(g);
	else if (bpf->role == ROLE_CALL)
		note_call(g);
	else
		fine = generate_event(g);
	if (bpf->out) {
		LLVMBuildBr(g->builder, bpf->out);
		fay_codegen_continue(g, leave);
	}
	LLVMBuildRet(g->builder, fay_codegen_i64(g, 0));
	return fine;
}

/* --- the programs of a query ------------------------------------------------------------------------------------------------ */

struct job {
	struct fay_codegen g;
	struct fay_codegen_bpf bpf;
	struct fay_bpf_object *object;
	struct fay_error *error;
};

/* The next program, attached to what has type `id`. */
static int add_program(struct job *job, enum fay_bpf_role role, const char *point, uint32_t attach, uint32_t id)
{
	char section[16];
	struct fay_bpf_object *object = job->object;
	struct fay_bpf_program *program = &object->programs[object->program_count];
	snprintf(program->name, sizeof(program->name), "%s %s", attach == BPF_TRACE_RAW_TP ? "tracepoint" : "function", point);
	program->type = BPF_PROG_TYPE_TRACING;
	program->attach = attach;
	program->btf_id = id;
	job->bpf.role = role;
	job->bpf.point = point;
	snprintf(section, sizeof(section), "program%u", object->program_count++);
	if (!generate_program(&job->g, section))
		return fay_error_set(job->error, FAY_E_REFUSED, "the kernel's types do not say where a task keeps its name");
	return FAY_OK;
}

static int add_tracepoint(struct job *job, enum fay_bpf_role role, const char *name)
{
	struct fay_btf_tracepoint type;
	if (!fay_btf_tracepoint(job->bpf.btf, name, &type))
		return fay_error_set(job->error, FAY_E_REFUSED, "this kernel has no tracepoint %s", name);
	return add_program(job, role, name, BPF_TRACE_RAW_TP, type.id);
}

/* One function, as it begins or ends. What notes the beginning comes behind what looks it up: it is attached before. */
static int add_function(struct job *job, const char *name, uint32_t id, const struct btf_type *prototype)
{
	const struct fay_checked *checked = &job->g.p->checked;
	bool ends = checked->kind == SOURCE_RETURN;
	job->bpf.result = fay_btf_result(job->bpf.btf, fay_btf_type(job->bpf.btf, id)->type);
	job->bpf.argument_count = BTF_INFO_VLEN(prototype->info) + (ends && job->bpf.result.bytes);
	int code = add_program(job, ROLE_FUNCTION, name, ends ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY, id);
	if (!code && ends && checked->uses_duration)
		code = add_program(job, ROLE_CALL, name, BPF_TRACE_FENTRY, id);
	return code;
}

/* Functions of the kernel whose names match, those that BTF describes. */
static int add_functions(struct job *job, const char *glob)
{
	const struct fay_btf *btf = job->bpf.btf;
	uint32_t count = 0;
	int code = FAY_OK;
	for (uint32_t id = 1; !code && id < fay_btf_count(btf); id++) {
		const struct btf_type *type = fay_btf_type(btf, id), *prototype;
		const char *name = fay_btf_string(btf, type->name_off);
		if (BTF_INFO_KIND(type->info) != BTF_KIND_FUNC || fnmatch(glob, name, 0) || !(prototype = fay_btf_type(btf, type->type)))
			continue;
		if (count++ == FAY_KERNEL_POINTS_MAX)
			return fay_error_set(job->error, FAY_E_LIMIT, "more than %u functions match; through BPF each needs a program of its own", FAY_KERNEL_POINTS_MAX);
		code = add_function(job, name, id, prototype);
	}
	if (!code && !count)
		return fay_error_set(job->error, FAY_E_REFUSED, "no function of the kernel that its types describe matches '%s'", glob);
	return code;
}

static int add_names(struct fay_bpf_object *object, const struct fay_kernel_source *source, struct fay_error *error)
{
	object->names = calloc(FAY_BPF_SYSCALLS, sizeof(*object->names));
	if (!object->names)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint32_t i = 0; i < source->count; i++)
		if (source->points[i].number < FAY_BPF_SYSCALLS)
			object->names[source->points[i].number] = fay_name_hash(source->points[i].name);
	return FAY_OK;
}

static int add_programs(struct job *job)
{
	const struct fay_checked *checked = &job->g.p->checked;
	const struct fay_kernel_source *source = checked->kernel;
	int code = FAY_OK;
	if (checked->kind == SOURCE_SYSCALL) {
		if (source->count > 1)
			code = add_names(job->object, source, job->error);
		if (!code)
			code = checked->uses_end ? add_tracepoint(job, ROLE_EXIT, "sys_exit") : add_tracepoint(job, ROLE_ENTER, "sys_enter");
		if (!code && checked->uses_duration)
			code = add_tracepoint(job, ROLE_START, "sys_enter");
	}
	if (checked->kind == SOURCE_TIMER) {
		code = add_program(job, ROLE_TIMER, "timer", 0, 0);
		job->object->programs[0].type = BPF_PROG_TYPE_PERF_EVENT;
		job->object->programs[0].period = source->period;
		snprintf(job->object->programs[0].name, sizeof(job->object->programs[0].name), "timer");
	}
	if (checked->kind == SOURCE_ENTRY || checked->kind == SOURCE_RETURN)
		code = add_functions(job, strchr(checked->pattern, '!') + 1);
	for (uint32_t i = 0; !code && checked->kind == SOURCE_TRACEPOINT && i < source->count; i++)
		code = add_tracepoint(job, ROLE_TRACEPOINT, source->points[i].name);
	if (!code && is_followed(job->bpf.options))
		code = add_tracepoint(job, ROLE_FORK, "sched_process_fork");
	return code;
}

/* --- LLVM's part -------------------------------------------------------------------------------------------------------------- */

/* The first error that LLVM reports, which would otherwise end the process. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	struct fay_error *error = context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || error->code)
		return;
	char *text = LLVMGetDiagInfoDescription(info);
	fay_error_set(error, FAY_E_REFUSED, "this query cannot be made into a BPF program: %s", text);
	LLVMDisposeMessage(text);
}

static LLVMTargetMachineRef target_machine(void)
{
	LLVMTargetRef target;
	char *message = NULL;
	LLVMInitializeBPFTargetInfo();
	LLVMInitializeBPFTarget();
	LLVMInitializeBPFTargetMC();
	LLVMInitializeBPFAsmPrinter();
	if (LLVMGetTargetFromTriple("bpfel", &target, &message)) {
		LLVMDisposeMessage(message);
		return NULL;
	}
	return LLVMCreateTargetMachine(target, "bpfel", "v3", "", LLVMCodeGenLevelDefault, LLVMRelocDefault, LLVMCodeModelDefault);
}

/* Copies the code of each program's section. A relocation would mean something that we did not ask for. */
static int take_sections(struct job *job, Elf *elf)
{
	size_t names, found = 0;
	if (elf_getshdrstrndx(elf, &names))
		return fay_error_set(job->error, FAY_E_INTERNAL, "LLVM's object cannot be read: %s", elf_errmsg(-1));
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
		Elf_Data *data = elf_getdata(section, NULL);
		unsigned index;
		if (name && !strncmp(name, ".relprogram", 11))
			return fay_error_set(job->error, FAY_E_REFUSED, "this query cannot be made into a BPF program: it needs a function that is not there");
		if (!name || !data || sscanf(name, "program%u", &index) != 1 || index >= job->object->program_count)
			continue;
		struct fay_bpf_program *program = &job->object->programs[index];
		program->count = (uint32_t)(data->d_size / sizeof(struct bpf_insn));
		program->code = malloc(data->d_size + 1);
		if (!program->code)
			return fay_error_set(job->error, FAY_E_LIMIT, "out of memory");
		memcpy(program->code, data->d_buf, data->d_size);
		found++;
	}
	return found == job->object->program_count ? FAY_OK : fay_error_set(job->error, FAY_E_INTERNAL, "LLVM's object lacks a program");
}

static int read_object(struct job *job, LLVMMemoryBufferRef buffer)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
	int code = elf ? take_sections(job, elf) : fay_error_set(job->error, FAY_E_INTERNAL, "LLVM's object cannot be read: %s", elf_errmsg(-1));
	elf_end(elf);
	return code;
}

static int compile(struct job *job)
{
	LLVMModuleRef module = job->g.module;
	LLVMTargetMachineRef machine = target_machine();
	LLVMMemoryBufferRef buffer = NULL;
	char *message = NULL;
	if (!machine)
		return fay_error_set(job->error, FAY_E_INTERNAL, "this LLVM has no BPF target");
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	LLVMSetModuleDataLayout(module, layout);
	LLVMDisposeTargetData(layout);
	LLVMSetTarget(module, "bpfel");
	if (getenv("FAY_BPF_DUMP"))
		LLVMDumpModule(module);
	int code = FAY_OK;
	if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
		code = fay_error_set(job->error, FAY_E_INTERNAL, "query: the generated code is malformed: %s", message ? message : "");
	LLVMDisposeMessage(message);
	message = NULL;
	struct fay_error said = {0};
	LLVMContextSetDiagnosticHandler(job->g.context, on_diagnostic, &said);
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	if (!code) {
		LLVMErrorRef failed = LLVMRunPasses(module, "default<O2>", machine, options);
		LLVMConsumeError(failed);
		if (failed || LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &buffer))
			code = fay_error_set(job->error, FAY_E_INTERNAL, "LLVM: %s", message ? message : "the optimiser failed");
		LLVMDisposeMessage(message);
	}
	if (!code && said.code) {
		if (job->error)
			*job->error = said;
		code = said.code;
	}
	LLVMDisposePassBuilderOptions(options);
	LLVMDisposeTargetMachine(machine);
	if (!code)
		code = read_object(job, buffer);
	if (buffer)
		LLVMDisposeMemoryBuffer(buffer);
	return code;
}

/* --- ---------------------------------------------------------------------------------------------------------------------------- */

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
	bool functions = !fay_source_is_bpf(p->checked.kind);
	uint32_t points = functions ? FAY_KERNEL_POINTS_MAX : p->checked.kernel->count;
	object->programs = calloc(2 * points + 3, sizeof(*object->programs));
	job->g.values = calloc(p->checked.exprs.count + 1, sizeof(*job->g.values));
	if (!object->programs || !job->g.values)
		return fay_error_set(job->error, FAY_E_LIMIT, "out of memory");
	job->bpf.source = p->checked.kernel;
	job->bpf.guarded = p->checked.kind != SOURCE_SYSCALL && points > 1;
	job->bpf.stride = (FAY_SLOT_HEADER + job->g.plan->spec.local_size + 63) & ~63u;
	int code = add_programs(job);
	if (!code)
		code = compile(job);
	object->maps = job->bpf.maps | 1u << FAY_BPF_SLOTS;
	fay_bpf_machine(object->values);
	object->typed = functions || p->checked.kind == SOURCE_TRACEPOINT;
	object->slot_stride = job->bpf.stride;
	object->local_size = job->g.plan->spec.local_size;
	object->row_size = p->row_size;
	object->some = functions && object->program_count > 1u + p->checked.uses_duration;
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
		return uses_field(expr->aggregate->operand, offset) || uses_field(expr->aggregate->condition, offset);
	return uses_field(expr->a, offset) || uses_field(expr->b, offset) || uses_field(expr->c, offset);
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

/* All stacks of an event, each depth and kind by itself, lie on the program's stack of 512 bytes. */
static uint32_t stack_frames(const struct fay_plan_private *p)
{
	uint32_t frames = 0;
	for (unsigned bucket = 0; bucket < FAY_EXPR_BUCKETS; bucket++)
		for (const struct fay_expr *expr = p->checked.exprs.buckets[bucket]; expr; expr = expr->next)
			frames += expr->op == EXPR_STACK ? (uint32_t)expr->value : 0;
	return frames;
}

/* TopK: a summary whose update is a loop over all that it holds. */
static int refuse(const struct fay_plan_private *p, struct fay_error *error)
{
	if (stage_uses_field(p, offsetof(struct fay_event, cycles)))
		return fay_error_set(error, FAY_E_REFUSED, "events that come through BPF have no `cycles`");
	if (stack_frames(p) > FAY_BPF_FRAMES_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "stacks of an event that comes through BPF have %u frames together at most, and this query asks for %u", FAY_BPF_FRAMES_MAX,
				     stack_frames(p));
	for (uint32_t i = p->keys; i < p->keys + p->values; i++) {
		const struct fay_aggregate *aggregate = p->columns[i].expr->aggregate;
		if (aggregate->merge == FAY_MERGE_TOP)
			return fay_error_set(error, FAY_E_REFUSED, "`%s` is not supported yet for events that come through BPF", aggregate->text);
	}
	return FAY_OK;
}

int fay_plan_generate_bpf(const struct fay_plan *plan, const struct fay_bpf_options *options, struct fay_bpf_object *object,
			  struct fay_error *error)
{
	struct job job = {.object = object, .error = error};
	memset(object, 0, sizeof(*object));
	job.g = (struct fay_codegen){.plan = plan, .p = fay_plan_stage(plan, options->side), .bpf = &job.bpf};
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
