/* SPDX-License-Identifier: MIT */
/*
 * Run-time systems that do not stand a return point of ours (dispatcher/user/calls.c) in place of a return address: they find callers by return addresses and stop the
 * program, or crash, at one they do not know, or they copy parts of the stack away and back, so that the place of a call holds something else in between. They are
 * recognised by names that only they have, of functions or of files. Which functions are left out, and why others are not: docs/dispatcher.md, Programs that read or
 * copy their stacks.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

#define MARKS 4u

/* Lists of names are of beginnings, with | between them. */
struct walker {
	const char *system;         /* for messages; NULL: of the process as a whole */
	const char *symbols[MARKS]; /* a module that defines one is the system's own */
	const char *used;           /* and so is one that defines or uses a name which begins so */
	const char *refused;        /* functions of such a module that are left out; NULL: all */
	const char *kept;           /* but these */
	const char *reason;
	const char *untraced; /* functions of such a module of which entries cannot be traced either; NULL: none */
	const char *untraced_reason;
};

static const struct walker walkers[] = { /* the first is Go */
	{ .system = "Go", .symbols = { "runtime.newstack", "runtime.mallocgc" },
	  .reason = "is Go code, whose run-time system walks the stack by return addresses; its return cannot be watched" },
	{ .system = "OCaml", .symbols = { "caml_garbage_collection" },
	  .reason = "is OCaml code, whose run-time system walks the stack by return addresses; its return cannot be watched" },
	/* What V8's code calls are its own functions and those that a module registers, which are C++ (or Rust): their return address is how V8 finds the caller. */
	{ .system = "V8", .used = "_ZN2v8|_ZNK2v8", .refused = "_Z|_R|Builtins_|v8_",
	  .reason = "may be called by code that V8 has made, whose frames V8 finds by return addresses; its return cannot be watched",
	  /* So that calls from what it compiles are short. The copy is of the file, where nothing is patched, or of what lies there when it is made. */
	  .untraced = "Builtins_", .untraced_reason = "is copied by V8 to where its code is made, and the copy runs instead; it cannot be traced" },
	/* What its compiler has made ahead of time; the run-time system itself is C. It reads the code of the calls to other such modules when they are first made. */
	{ .system = "Mono", .used = "mono_aot_file_info|mono_aot_module_",
	  .reason = "is code that Mono has compiled, whose frames it finds by return addresses; its return cannot be watched",
	  .untraced = "plt_", .untraced_reason = "is code that Mono reads when it is first called; it cannot be traced" },
	/* Of what compiled code calls only native methods leave their return address alone: where they were called from is noted beside the stack. */
	{ .system = "HotSpot", .symbols = { "JNI_CreateJavaVM" }, .kept = "JVM_|JNI_|jni_",
	  .reason = "may be called by code that the Java VM has compiled, whose frames it finds by return addresses; its return cannot be watched" },
};

/* Systems whose being in a process matters to all that may have their code above or below it on a stack. */
static const struct {
	const char *system;
	const char *files[MARKS];   /* globs for names of modules */
	const char *symbols[MARKS]; /* or the program itself defines one */
	const char *reason;
} copiers[] = {
	{ "greenlet", { "_greenlet", "greenlet" }, { NULL }, "may be on the stack when greenlet copies that away; its return cannot be watched" },
	{ "PyPy", { "libpypy*" }, { NULL }, "may be on the stack when PyPy's coroutines copy that away; its return cannot be watched" },
	{ "Ruby's callcc", { "continuation" }, { NULL }, "may be on the stack when Ruby's callcc copies that away; its return cannot be watched" },
	{ ".NET", { "libcoreclr*" }, { "DotNetRuntimeInfo", "DotNetRuntimeDebugHeader" },
	  "may be on the stack when .NET looks for callers by return addresses; its return cannot be watched" },
};

/* Functions of the C library that call what they are given, or a program's first function: the system's code may run below them. */
static const char *const calling_back[] = {
	"qsort", "__qsort", "_quicksort", "msort", "bsearch", "lfind", "lsearch", "__lsearch", "tsearch", "__tsearch", "tfind", "__tfind", "tdelete",
	"__tdelete", "tdestroy", "__tdestroy", "ftw", "nftw", "__new_nftw", "__old_nftw", "fts_", "glob", "__glob", "scandir", "__scandir", "dl_iterate_phdr",
	"__dl_iterate_phdr", "__pthread_once", "pthread_once", "call_once", "start_thread", "exit", "__run_exit_handlers", "__cxa_finalize", "__libc_start",
	"__call_tls_dtors", "argp_", "__argp", "_obstack", "obstack", "_IO_cookie", "_dl_catch", "_dl_init", "_dl_open", "_dl_close",
};

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

static bool is_systems(const struct fay_target *target, struct fay_module *module, const struct walker *walker)
{
	const struct fay_object *object;

	for (size_t k = 0; k < MARKS && walker->symbols[k]; k++)
		if (fay_module_defines(target, module, walker->symbols[k]))
			return true;
	object = walker->used ? fay_module_object(target, module) : NULL;
	for (size_t i = 0; object && i < object->symbol_count; i++)
		if (begins(object->symbols[i].name, object->symbols[i].length, walker->used))
			return true;
	return false;
}

/* *registers: its functions of Go get their arguments in registers. */
static const struct walker *walker_of(const struct fay_session *session, const char *module, bool *registers)
{
	const struct fay_target *target = session->target;

	for (size_t i = 0; i < target->module_count; i++)
		for (size_t k = 0; !strcmp(target->modules[i].name, module) && k < sizeof(walkers) / sizeof(walkers[0]); k++) {
			if (!is_systems(target, &target->modules[i], &walkers[k]))
				continue;
			*registers = fay_module_defines(target, &target->modules[i], "runtime.goexit.abi0") ||
				     fay_module_defines(target, &target->modules[i], "runtime.asyncPreempt.abi0");
			return &walkers[k];
		}
	return NULL;
}

static bool any_watched(const struct fay_session *session)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].watched)
			return true;
	return false;
}

/* An index of copiers, or -1. */
static int copier_of(const struct fay_target *target)
{
	for (size_t i = 0; i < sizeof(copiers) / sizeof(copiers[0]); i++)
		for (size_t m = 0; m < target->module_count; m++)
			for (size_t k = 0; k < MARKS; k++)
				if ((copiers[i].files[k] && fay_module_matches(&target->modules[m], copiers[i].files[k])) ||
				    (copiers[i].symbols[k] && target->modules[m].main && fay_module_defines(target, &target->modules[m], copiers[i].symbols[k])))
					return (int)i;
	return -1;
}

/* While these run, nothing else of the program does, in the same thread. */
static bool is_leaf(const struct fay_function *function)
{
	if (strcmp(function->module, "libm") && strcmp(function->module, "libc"))
		return false;
	for (size_t i = 0; i < sizeof(calling_back) / sizeof(calling_back[0]); i++)
		if (!strncmp(function->name, calling_back[i], strlen(calling_back[i])))
			return false;
	return true;
}

static const char *refusal(const struct walker *walker, int copier, const struct fay_point *point)
{
	const char *name = point->function.name;
	size_t length = strlen(name);

	if (walker && (!walker->refused || begins(name, length, walker->refused)) && !(walker->kept && begins(name, length, walker->kept)))
		return walker->reason;
	return copier >= 0 && !point->hook && !is_leaf(&point->function) ? copiers[copier].reason : NULL;
}

/* What GCC and clang add to the names of C functions: .part.0, .cold */
static bool is_cloned(const char *name)
{
	static const char *const added[] = { ".part.", ".constprop.", ".isra.", ".lto_priv.", ".llvm.", ".cold" };

	for (size_t i = 0; i < sizeof(added) / sizeof(added[0]); i++) {
		const char *at = strstr(name, added[i]);

		if (at && !at[strlen(added[i]) + strspn(at + strlen(added[i]), "0123456789")])
			return true;
	}
	return false;
}

/* Go's functions have a point in their names, those of C in the same file have none of their own. Those that take their arguments on the stack end in .abi0 (since Go 1.17). */
static void judge_arguments(const struct fay_session *session, bool registers, struct fay_point *point)
{
	const char *name = point->function.name, *end = strrchr(name, '.');
	uint32_t fields = 0;

	for (uint32_t k = 0; k < point->probe_count; k++)
		fields |= session->verdict->probes[point->probes[k]].event_fields;
	if (!(fields & FAY_FIELDS_ARGUMENTS) || point->inside || (end ? is_cloned(name) : strncmp(name, "_cgoexp", 7) != 0))
		return;
	point->go = true;
	if (!registers)
		point->argless = "is code of a Go before 1.17, whose arguments are on the stack; they cannot be read";
	else if (end && !strcmp(end, ".abi0"))
		point->argless = "is a function of Go whose arguments are on the stack; they cannot be read";
}

/*
 * PyPy's compiler looks at the first byte of C functions that it makes calls of, and if a jump is there calls what that leads to instead (follow_jump() in rpython/jit/backend/x86): its code would call
 * trampolines after they are gone.
 */
static bool follows_jumps(const struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		if (fay_module_matches(&target->modules[i], "libpypy*"))
			return true;
	return false;
}

void fay_walkers_judge(struct fay_session *session)
{
	const struct walker *walker = NULL;
	const char *module = NULL;
	bool registers = false;
	int copier = -1;

	session->jumps_followed = follows_jumps(session->target);
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i];

		if (!module)
			copier = any_watched(session) ? copier_of(session->target) : -1;
		if (!module || strcmp(module, point->function.module)) {
			module = point->function.module;
			walker = walker_of(session, module, &registers);
		}
		if (walker && walker->untraced && begins(point->function.name, strlen(point->function.name), walker->untraced))
			point->untraced = walker->untraced_reason;
		if (walker == &walkers[0])
			judge_arguments(session, registers, point);
		if (point->watched)
			point->unwatched = refusal(walker, copier, point);
	}
}

/* Takes out of one session what it should no longer watch: for a copier, or, if that is -1, for an unwinder, all. Calls that are under way there lie above all that the system has on its stacks, and end as they would have. */
static int leave(struct fay_session *session, int copier, struct fay_error *error)
{
	const char *system = copier < 0 ? "an unwinder of its own" : copiers[copier].system;
	size_t *points = calloc(session->point_count + 1, sizeof(*points)), count = 0;
	int code = 0;

	if (!points)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < session->point_count; i++) {
		const struct fay_point *point = &session->points[i];

		if (point->usable && point->watched && !point->taken_out && !point->unloaded && (copier < 0 || refusal(NULL, copier, point)))
			points[count++] = i;
	}
	if (count)
		code = fay_session_take_out(session, points, count, error);
	free(points);
	if (code)
		return code;
	session->unwatched_count += count;
	session->unwatched_for = system;
	return 0;
}

int fay_walkers_came(struct fay_session *session, struct fay_error *error)
{
	int copier = copier_of(session->target), code = 0;
	bool watched = false, unwinder;

	for (size_t i = 0; i < session->options.beside_count; i++)
		watched |= any_watched(session->options.beside[i]);
	if (!watched)
		return 0;
	fay_known_mark(session);
	unwinder = fay_unwinder_came(session->target);
	for (size_t i = 0; i < session->options.beside_count && (unwinder || copier >= 0) && !code; i++)
		code = leave(session->options.beside[i], unwinder ? -1 : copier, error);
	return code;
}

size_t fay_session_unwatched(struct fay_session *session, const char **system)
{
	size_t count = session->unwatched_count;

	*system = session->unwatched_for;
	session->unwatched_count = 0;
	return count;
}
