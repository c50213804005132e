/* SPDX-License-Identifier: MIT */
/* `fay list --tracepoints`: the running kernel's, with their arguments in C, of its types (BTF). */
#include <bpf/btf.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "cli/output/output.h"
#include "fay/bpf.h"

#include "commands.h"

#define TRACEPOINTS_MAX 8192u

struct declarations {
	const struct btf *btf;
	struct btf_dump *dump;
	FILE *out; /* where the dump writes */
};

static void print_piece(void *context, const char *format, va_list arguments)
{
	const struct declarations *declarations = context;
	vfprintf(declarations->out, format, arguments);
}

/* "bool preempt, struct task_struct *prev"; malloc'ed; NULL: no memory. */
static char *declare_arguments(struct declarations *declarations, const char *name)
{
	struct fay_btf_tracepoint point;
	char *text = NULL;
	size_t size;
	declarations->out = open_memstream(&text, &size);
	if (!declarations->out)
		return NULL;
	if (!fay_btf_tracepoint(declarations->btf, name, &point))
		point.argument_count = 0;
	for (uint32_t i = 0; i < point.argument_count; i++) {
		LIBBPF_OPTS(btf_dump_emit_type_decl_opts, named,
			    .field_name = point.arguments[i].name);
		fputs(i ? ", " : "", declarations->out);
		btf_dump__emit_type_decl(declarations->dump, point.arguments[i].type, &named);
	}
	return fclose(declarations->out) ? NULL : text;
}

static void print_tracepoint(struct declarations *declarations, const char *name, bool json)
{
	char *arguments = declare_arguments(declarations, name);
	if (json) {
		fay_json_text(stdout, "{\"type\":\"tracepoint\",\"tracepoint\":", name);
		fay_json_text(stdout, ",\"arguments\":", arguments ? arguments : "");
		puts("}");
	} else {
		printf("%s(%s)\n", name, arguments ? arguments : "...");
	}
	free(arguments);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int fay_list_tracepoints(const char *pattern, bool json)
{
	/* the system's name is no part of what the types know */
	const char *colon = strrchr(pattern, ':'), *wanted = colon ? colon + 1 : pattern;
	const char **names = calloc(TRACEPOINTS_MAX, sizeof(*names));
	struct declarations declarations = { 0 };
	struct fay_error error = { .code = FAY_E_LIMIT, .message = "out of memory" };
	size_t count = 0, matches = 0;
	if (!names || fay_btf_open(getenv("FAY_BTF"), &declarations.btf, &error)) {
		free(names);
		return fay_cli_fail(&error);
	}
	declarations.dump = btf_dump__new(declarations.btf, print_piece, &declarations, NULL);
	if (declarations.dump)
		count = fay_btf_tracepoints(declarations.btf, names, TRACEPOINTS_MAX);
	count = count < TRACEPOINTS_MAX ? count : TRACEPOINTS_MAX;
	qsort(names, count, sizeof(*names), compare);
	for (size_t i = 0; i < count; i++) {
		if (fnmatch(wanted, names[i], 0))
			continue;
		print_tracepoint(&declarations, names[i], json);
		matches++;
	}
	btf_dump__free(declarations.dump);
	fay_btf_close(declarations.btf);
	free(names);
	if (matches)
		return FAY_OK;
	fprintf(stderr, "fay: no tracepoint matches `%s` among %zu; try '*%s*'\n", wanted, count,
		wanted);
	return FAY_E_USAGE;
}
