/* SPDX-License-Identifier: MIT */
/*
 * Which calls can be watched until they return, and the functions that have to be hooked for it: see dispatcher/user/calls.c. By whom they cannot: walkers.c.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"

bool fay_module_defines(const struct fay_target *target, struct fay_module *module, const char *name)
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

/* Where unwind information is looked for in any case: the program, the C library, libgcc's unwinder. */
static bool is_asked(const struct fay_module *module)
{
	return module->main || fay_module_matches(module, "libc") || fay_module_matches(module, "libgcc_s");
}

/*
 * A module's own unwinder. LLVM's, as a library or linked in, finds unwind information in ways that the hooks below do not serve: an exception would end at the first watched call. (nongnu's
 * libunwind, which has other names inside, serves debuggers and allocators and throws nothing.) libgcc's that is linked in is served by the hook of _dl_find_object() if it uses that, else by
 * one of its own, if it has a symbol.
 */
enum unwinder { UNWINDER_NONE, UNWINDER_LLVM, UNWINDER_SYMBOL, UNWINDER_HIDDEN, UNWINDER_UNKNOWN };

static enum unwinder unwinder_of(const struct fay_target *target, struct fay_module *module)
{
	struct fay_unwinding file = { 0 };
	int fd = fay_module_file(target, module, NULL);
	bool own;

	if (fd >= 0) {
		fay_file_unwinding(fd, &file);
		close(fd);
	}
	if (is_asked(module) && !fay_module_object(target, module))
		return UNWINDER_UNKNOWN;
	own = (file.iterates || file.finds) && !file.imports;
	if ((is_asked(module) || own || fay_module_matches(module, "libunwind*")) && fay_module_defines(target, module, "__unw_init_local") &&
	    fay_module_defines(target, module, "_Unwind_RaiseException"))
		return UNWINDER_LLVM;
	if (!own || file.finds)
		return UNWINDER_NONE;
	if (fay_module_defines(target, module, "_Unwind_Find_FDE"))
		return UNWINDER_SYMBOL;
	return file.handles ? UNWINDER_HIDDEN : UNWINDER_NONE;
}

bool fay_unwinder_came(const struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		if (!target->modules[i].known && unwinder_of(target, &target->modules[i]) != UNWINDER_NONE)
			return true;
	return false;
}

static int refuse(const struct fay_session *session, const struct fay_module *module, const char *reason, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED, "process %d: calls cannot be watched until they return: %s (in %s); probes at entries can be used", (int)session->pid, reason,
			     module->name);
}

/*
 * The functions through which the unwinder finds unwind information. The first kind (glibc 2.35, gcc 12) also serves a
 * libgcc_s that is loaded later; a program with neither has no such unwinder. And longjmp.
 */
static int hook_module(struct fay_session *session, struct fay_module *module, size_t *capacity)
{
	static const struct {
		const char *name;
		enum fay_hook hook;
	} hooks[] = { { "_dl_find_object", FAY_HOOK_FIND_OBJECT }, { "_Unwind_Find_FDE", FAY_HOOK_FIND_FDE },
		    { "longjmp", FAY_HOOK_LONGJMP }, { "__longjmp_chk", FAY_HOOK_LONGJMP } };
	int code = 0;

	for (size_t k = 0; k < sizeof(hooks) / sizeof(hooks[0]); k++) {
		struct fay_function_list list = { 0 };
		char pattern[600];

		if (!is_asked(module) && hooks[k].hook != FAY_HOOK_FIND_FDE)
			continue;
		snprintf(pattern, sizeof(pattern), "%s!%s", module->name, hooks[k].name);
		if (!fay_module_defines(session->target, module, hooks[k].name) || fay_target_find(session->target, pattern, &list, NULL))
			continue;
		for (size_t f = 0; f < list.count && !code; f++)
			code = fay_point_append(session, capacity, &list.items[f], NULL, hooks[k].hook);
		fay_function_list_deinit(&list);
	}
	return code;
}

int fay_watch_hooks(struct fay_session *session, size_t *capacity, struct fay_error *error)
{
	struct fay_target *target = session->target;

	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		enum unwinder unwinder = unwinder_of(target, module);

		if (unwinder == UNWINDER_LLVM)
			return refuse(session, module, "its exceptions pass through LLVM's unwinder, which does not know of watched calls", error);
		if (unwinder == UNWINDER_HIDDEN)
			return refuse(session, module, "its exceptions pass through an unwinder that is linked in and has no symbols", error);
		if (unwinder == UNWINDER_UNKNOWN)
			return refuse(session, module, "which unwinder its exceptions pass through is not known, for a file cannot be read", error);
		if ((is_asked(module) || unwinder == UNWINDER_SYMBOL) && hook_module(session, module, capacity))
			return fay_points_full(session, error);
	}
	return 0;
}

/* Functions that are entered where no jump in the code leads, or whose bytes somebody compares. By name, since nothing in their code tells. */
bool fay_unpatchable(const char *name, char reason[FAY_REASON_MAX])
{
	static const struct {
		const char *name, *reason;
	} list[] = {
		{ "runtime.goexit", "is entered behind its first instruction by Go's scheduler" },
		{ "runtime.goexit.abi0", "is entered behind its first instruction by Go's scheduler" },
		{ "runtime.asyncPreempt", "is entered between any two instructions by Go's scheduler" },
		{ "runtime.asyncPreempt.abi0", "is entered between any two instructions by Go's scheduler" },
		{ "__restore_rt", "is known by its bytes to unwinders and debuggers" },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!strcmp(name, list[i].name))
			return snprintf(reason, FAY_REASON_MAX, "%s", list[i].reason) > 0;
	return false;
}

/*
 * Functions whose return address is not what it seems, or is used for more than returning: they return twice, are entered by a jump or
 * with no return address, or ask who called them. By name, since nothing in their code tells.
 */
bool fay_unwatchable(const char *name, char reason[FAY_REASON_MAX])
{
	static const struct {
		const char *names, *reason;
	} lists[] = {
		{ "|setjmp|_setjmp|sigsetjmp|__sigsetjmp|__sigjmp_save|vfork|__vfork|getcontext|__getcontext|", "returns twice" },
		{ "|swapcontext|__swapcontext|setcontext|__setcontext|__start_context|clone|__clone|__clone2|clone3|__clone3|", "switches stacks" },
		{ "|_start|_dl_start|_dl_start_user|__restore_rt|_dl_runtime_|_dl_tlsdesc_return|_dl_tlsdesc_undefweak|_dl_tlsdesc_dynamic|mcount|_mcount|__fentry__|",
		  "is not entered by an ordinary call" },
		{ "|ffi_call_unix64|ffi_call_win64|", "moves its own return address" },
		{ "|__morestack|__morestack_non_split|__morestack_large_model|", "computes from its return address where it goes on" },
		{ "|dlopen|dlmopen|dlsym|dlvsym|__libc_dlopen_mode|__libc_dlsym|_dl_sym|_dl_vsym|", "asks which module called it" },
	};
	char bounded[FAY_IMAGE_MAX_STRING + 2];

	if (!strncmp(name, "_dl_runtime_", strlen("_dl_runtime_"))) /* _dl_runtime_resolve_xsavec, _dl_runtime_profile_avx */
		name = "_dl_runtime_";
	snprintf(bounded, sizeof(bounded), "|%.255s|", name);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strstr(lists[i].names, bounded))
			return snprintf(reason, FAY_REASON_MAX, "%s; its return cannot be watched", lists[i].reason) > 0;
	return false;
}
