/* SPDX-License-Identifier: MIT */
/*
 * Proves the checker's rules: docs/internals/proofs.md.
 *
 * prove_rules [--all 1] [--ms N] [--only PART]... FILE.bc...
 *
 * The files are the statements of rules/, with the checker's functions that they include. Each
 * function rule_... is run on all paths; it says with prove() what must hold at its place.
 */
#include "exec.h"

#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static LLVMModuleRef load(const char *path)
{
	LLVMMemoryBufferRef buffer;
	LLVMModuleRef module;
	char *message = NULL;

	if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &message) ||
	    LLVMParseBitcode2(buffer, &module)) {
		fprintf(stderr, "prove_rules: %s: %s\n", path, message ? message : "not bitcode");
		exit(2);
	}
	LLVMDisposeMemoryBuffer(buffer);
	return module;
}

/*
 * The files as one module, optimised like with -O1, but with every function of the checker kept as
 * the function that it is in the source.
 */
static LLVMModuleRef load_all(char **paths, int count)
{
	unsigned noinline = LLVMGetEnumAttributeKindForName("noinline", 8);
	LLVMModuleRef module = load(paths[0]);
	LLVMContextRef context = LLVMGetModuleContext(module);
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMErrorRef error;

	for (int i = 1; i < count; i++)
		if (LLVMLinkModules2(module, load(paths[i])))
			exit(2);
	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f))
			continue;
		LLVMSetLinkage(f, LLVMExternalLinkage);
		LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
					LLVMCreateEnumAttribute(context, noinline, 0));
	}
	error = LLVMRunPasses(module, "default<O1>", NULL, options);
	if (error) {
		fprintf(stderr, "prove_rules: %s\n", LLVMGetErrorMessage(error));
		exit(2);
	}
	LLVMDisposePassBuilderOptions(options);
	return module;
}

static void start_path(struct exec *x)
{
	memory_drop(x);
	x->at = x->fact_count = x->products = x->inputs = x->symbols = x->replacements = 0;
	x->steps = 0;
	x->opaque = x->ordered = x->defined = false;
}

/* The next path: the last decision that is open, made the other way. */
static bool next_path(struct exec *x)
{
	while (x->ways && x->way[x->ways - 1].value == x->way[x->ways - 1].last)
		x->ways--;
	if (!x->ways)
		return false;
	x->way[x->ways - 1].value++;
	return true;
}

/* False: not proved; x->failure says why. */
static bool run_rule(struct exec *x, LLVMValueRef function)
{
	x->ways = 0;
	x->paths = x->queries = x->proved = 0;
	x->claims = 0;
	x->second = false;
	do {
		start_path(x);
		switch (setjmp(x->out)) {
		case 0: run_function(x, function, NULL, 0); break;
		case 1: break;
		default: return false;
		}
		x->paths++;
	} while (next_path(x));
	for (unsigned i = 0; i < x->claims; i++)
		if (!x->claim[i].reached) {
			snprintf(x->failure, sizeof(x->failure), "nothing comes to \"%s\"",
				 x->claim[i].what);
			return false;
		}
	return x->claims > 0;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void complain(Z3_context z, Z3_error_code e)
{
	fprintf(stderr, "prove_rules: z3: %s\n", Z3_get_error_msg(z, e));
	exit(2);
}

static bool wanted(const char *name, const char *const *only, int count)
{
	for (int i = 0; i < count; i++)
		if (strstr(name, only[i]))
			return true;
	return !count;
}

int main(int argc, char **argv)
{
	static struct exec x;
	const char *only[64];
	int parts = 0, i = 1, failed = 0, done = 0;

	x.limit_ms = 120000;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--ms"))
			x.limit_ms = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--all"))
			x.thorough = true;
		else if (!strcmp(argv[i], "--only") && parts < 64)
			only[parts++] = argv[i + 1];
		else
			return 2;
	}
	if (i >= argc)
		return 2;
	x.module = load_all(argv + i, argc - i);
	x.layout = LLVMGetModuleDataLayout(x.module);
	for (LLVMValueRef f = LLVMGetFirstFunction(x.module); f; f = LLVMGetNextFunction(f)) {
		size_t length;
		const char *name = LLVMGetValueName2(f, &length);
		Z3_config config;
		double start = now();
		bool ok;

		if (!strncmp(name, "run_", 4) && !LLVMIsDeclaration(f) &&
		    strcmp(name, "run_rules") && wanted(name + 4, only, parts))
			printf("%-28s run only\n", name + 4);
		if (strncmp(name, "rule_", 5) || LLVMIsDeclaration(f) ||
		    !wanted(name + 5, only, parts))
			continue;
		config = Z3_mk_config();
		x.z = Z3_mk_context(config);
		Z3_del_config(config);
		Z3_set_error_handler(x.z, complain);
		ok = run_rule(&x, f);
		memory_drop(&x);
		Z3_del_context(x.z);
		printf("%-28s %-10s %7.0f ms %5u paths %5u queries%s%s\n", name + 5,
		       ok ? "proved" : "NOT PROVED", now() - start, x.paths, x.queries,
		       ok ? "" : "  ", ok ? "" : x.failure);
		fflush(stdout);
		failed += !ok;
		done++;
	}
	printf("%d passed, %d failed\n", done - failed, failed);
	return failed || !done;
}
