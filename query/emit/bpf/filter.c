/* SPDX-License-Identifier: MIT */
/*
 * Whose events a BPF program lets through: processes, threads, names; and children of traced
 * processes, which are traced, too.
 */
#include "programs_private.h"

#include <string.h>

/* thread_info.status: a system call of the 32-bit table (arch/x86/include/asm/thread_info.h) */
#define COMPAT_STATUS 2u

static LLVMValueRef any_of(struct fay_codegen *g, LLVMValueRef sofar, LLVMValueRef one)
{
	return sofar ? LLVMBuildOr(g->builder, sofar, one, "") : one;
}

static bool note_place(struct fay_bpf_object *object, const char *structure, const char *member,
		       uint32_t offset)
{
	struct fay_bpf_place *place = object->places;
	for (uint32_t i = 0; i < object->place_count; i++, place++)
		if (!strcmp(place->structure, structure) && !strcmp(place->member, member))
			return true;
	if (object->place_count == FAY_BPF_PLACES_MAX)
		return false;
	object->place_count++;
	place->offset = offset;
	return (size_t)snprintf(place->structure, sizeof(place->structure), "%s", structure) <
		       sizeof(place->structure) &&
	       (size_t)snprintf(place->member, sizeof(place->member), "%s", member) <
		       sizeof(place->member);
}

LLVMValueRef fay_bpf_member_offset(struct fay_codegen *g, LLVMValueRef object,
				   const char *structure, const char *name, uint32_t *offset)
{
	struct fay_btf_field field;
	uint32_t id = fay_btf_find(g->bpf->btf, BTF_KIND_STRUCT, structure);
	if (!id || !fay_btf_member(g->bpf->btf, id, name, &field))
		return NULL;
	*offset = field.bit_offset / 8;
	return note_place(g->bpf->object, structure, name, *offset) ? object : NULL;
}

LLVMValueRef fay_bpf_current_task(struct fay_codegen *g)
{
	return LLVMBuildIntToPtr(g->builder,
				 fay_bpf_helper(g, BPF_FUNC_get_current_task_btf, NULL, 0),
				 g->pointer, "");
}

void fay_bpf_require_native(struct fay_codegen *g)
{
	uint32_t info, status;
	LLVMValueRef task = fay_bpf_current_task(g);
	if (!fay_bpf_member_offset(g, task, "task_struct", "thread_info", &info) ||
	    !fay_bpf_member_offset(g, task, "thread_info", "status", &status))
		return;
	LLVMValueRef bits = LLVMBuildAnd(g->builder, fay_bpf_load(g, task, info + status, 4),
					 fay_codegen_i64(g, COMPAT_STATUS), "");
	fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntEQ, bits, fay_codegen_i64(g, 0), ""));
}

/* Where PIDS has that number. The mask, which changes none, tells the kernel's verifier the bound.
 * */
static LLVMValueRef place_in_list(struct fay_codegen *g, LLVMValueRef number)
{
	LLVMValueRef index =
		LLVMBuildAnd(g->builder, number, fay_codegen_i64(g, FAY_BPF_PIDS_MAX - 1), "");
	return fay_codegen_at(g, fay_bpf_map_reference(g, FAY_BPF_PIDS, BPF_PSEUDO_MAP_VALUE),
			      index);
}

static LLVMValueRef is_listed(struct fay_codegen *g, LLVMValueRef process)
{
	return LLVMBuildICmp(g->builder, LLVMIntNE,
			     fay_bpf_load(g, place_in_list(g, process), 0, 1),
			     fay_codegen_i64(g, 0), "");
}

bool fay_bpf_is_followed(const struct fay_bpf_options *options)
{
	return options->follow && options->pid_count;
}

static LLVMValueRef is_wanted_process(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMValueRef process = LLVMBuildLShr(g->builder, fay_bpf_identity(g),
					     fay_codegen_i64(g, 32), ""),
		     wanted = NULL;
	if (options->pid_count > 4 || fay_bpf_is_followed(options))
		return is_listed(g, process);
	for (size_t i = 0; i < options->pid_count; i++)
		wanted = any_of(g, wanted,
				LLVMBuildICmp(g->builder, LLVMIntEQ, process,
					      fay_codegen_i64(g, (uint64_t)options->pids[i]), ""));
	return wanted;
}

/* The process's name is that of its first thread. NULL: the kernel's types are not known. */
static LLVMValueRef is_named(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMBuilderRef b = g->builder;
	uint32_t leader, comm;
	LLVMValueRef task = fay_bpf_current_task(g), wanted = NULL;
	if (!fay_bpf_member_offset(g, task, "task_struct", "group_leader", &leader) ||
	    !fay_bpf_member_offset(g, task, "task_struct", "comm", &comm))
		return NULL;
	LLVMValueRef first = LLVMBuildIntToPtr(b, fay_bpf_load(g, task, leader, 8), g->pointer, "");
	LLVMValueRef arguments[] = { g->bpf->buffer, fay_codegen_i64(g, FAY_COMM_SIZE),
				     fay_codegen_at(g, first, fay_codegen_i64(g, comm)) };
	fay_bpf_clear_buffer(g);
	fay_bpf_helper(g, BPF_FUNC_probe_read_kernel_str, arguments, 3);
	LLVMValueRef low = fay_bpf_load(g, g->bpf->buffer, 0, 8),
		     high = fay_bpf_load(g, g->bpf->buffer, 8, 8);
	for (size_t i = 0; i < options->comm_count; i++) {
		uint64_t words[2] = { 0 };
		memcpy(words, options->comms[i], strnlen(options->comms[i], FAY_COMM_SIZE - 1));
		LLVMValueRef other =
			LLVMBuildOr(b, LLVMBuildXor(b, low, fay_codegen_i64(g, words[0]), ""),
				    LLVMBuildXor(b, high, fay_codegen_i64(g, words[1]), ""), "");
		wanted = any_of(g, wanted,
				LLVMBuildICmp(b, LLVMIntEQ, other, fay_codegen_i64(g, 0), ""));
	}
	return wanted;
}

bool fay_bpf_require_program(struct fay_codegen *g)
{
	uint32_t mm, stack;
	LLVMValueRef task = fay_bpf_current_task(g);
	if (!fay_bpf_member_offset(g, task, "task_struct", "mm", &mm) ||
	    !fay_bpf_member_offset(g, task, "mm_struct", "start_stack", &stack))
		return false;
	LLVMValueRef memory =
		LLVMBuildIntToPtr(g->builder, fay_bpf_load(g, task, mm, 8), g->pointer, "");
	LLVMValueRef asked = fay_bpf_helper(g, BPF_FUNC_get_attach_cookie, &g->event, 1);
	fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntEQ, fay_bpf_load(g, memory, stack, 8),
					 asked, ""));
	return true;
}

static void require_thread(struct fay_codegen *g, const struct fay_bpf_options *options)
{
	LLVMValueRef thread = LLVMBuildAnd(g->builder, fay_bpf_identity(g),
					   fay_codegen_i64(g, UINT32_MAX), ""),
		     wanted = NULL;
	for (size_t i = 0; i < options->tid_count; i++)
		wanted = any_of(g, wanted,
				LLVMBuildICmp(g->builder, LLVMIntEQ, thread,
					      fay_codegen_i64(g, (uint64_t)options->tids[i]), ""));
	fay_bpf_require(g, wanted);
}

bool fay_bpf_require_process(struct fay_codegen *g)
{
	const struct fay_bpf_options *options = g->bpf->options;
	LLVMValueRef wanted = NULL;
	if (options->tid_count)
		require_thread(g, options);
	if (options->not_self && (options->comm_count || !options->pid_count)) {
		LLVMValueRef process =
			LLVMBuildLShr(g->builder, fay_bpf_identity(g), fay_codegen_i64(g, 32), "");
		fay_bpf_require(g, LLVMBuildICmp(g->builder, LLVMIntNE, process,
						 fay_bpf_machine_value(g, FAY_BPF_VALUE_SELF), ""));
	}
	if (options->pid_count)
		wanted = is_wanted_process(g, options);
	if (options->comm_count) {
		LLVMValueRef named = is_named(g, options);
		if (!named)
			return false;
		wanted = any_of(g, wanted, named);
	}
	if (wanted)
		fay_bpf_require(g, wanted);
	return true;
}

/*
 * sched_process_fork hands over parent and child, before the child runs. The child's number is
 * listed, or not, as its parent's process is: one that is given out again says nothing of who had
 * it before. So are the numbers of threads, which may have been processes' and may become such
 * again.
 */
bool fay_bpf_note_child(struct fay_codegen *g)
{
	uint32_t tgid, pid;
	LLVMValueRef tasks[2];
	for (unsigned i = 0; i < 2; i++)
		tasks[i] = LLVMBuildIntToPtr(g->builder, fay_bpf_context(g, i), g->pointer, "");
	if (!fay_bpf_member_offset(g, tasks[0], "task_struct", "tgid", &tgid) ||
	    !fay_bpf_member_offset(g, tasks[1], "task_struct", "pid", &pid))
		return false;
	LLVMValueRef parent = place_in_list(g, fay_bpf_load(g, tasks[0], tgid, 4)),
		     child = place_in_list(g, fay_bpf_load(g, tasks[1], pid, 4));
	LLVMValueRef listed = LLVMBuildTrunc(g->builder, fay_bpf_load(g, parent, 0, 1),
					     LLVMInt8TypeInContext(g->context), "");
	LLVMBuildStore(g->builder, listed, child);
	LLVMBuildBr(g->builder, g->leave);
	fay_codegen_continue(g, g->leave);
	return true;
}
