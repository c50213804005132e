/* SPDX-License-Identifier: MIT */
/*
 * `fay cc -S` says why each guard is there. The reason travels as a place in the source: a guard's
 * instructions get a location in a file of that name, and such a file's line directives become
 * comments in the assembly. So the code is the same with and without -S, wherever the optimiser
 * puts it.
 *
 *     # probe.c:12
 *     # guard for probe.c:12: index of the state object, clamped to 15
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "ir.h"

#define PREFIX "fay:"
#define FILES_MAX 4096

void fay_mark(struct fay_unit *unit, LLVMBuilderRef b, LLVMValueRef at, const char *format, ...)
{
	LLVMMetadataRef location = LLVMIsAInstruction(at) ? LLVMInstructionGetDebugLoc(at) : NULL,
			scope, file, user;
	char reason[200] = PREFIX;
	LLVMDIBuilderRef d;
	va_list args;

	LLVMSetCurrentDebugLocation2(b, location);
	if (!unit->marks || !location || !format[0])
		return;
	va_start(args, format);
	vsnprintf(reason + strlen(PREFIX), sizeof(reason) - strlen(PREFIX), format, args);
	va_end(args);
	user = fay_user_location(location);
	d = LLVMCreateDIBuilderDisallowUnresolved(unit->module);
	file = LLVMDIBuilderCreateFile(d, reason, strlen(reason), "", 0);
	scope = LLVMDIBuilderCreateLexicalBlockFile(d, LLVMDILocationGetScope(location), file, 0);
	LLVMSetCurrentDebugLocation2(
		b, LLVMDIBuilderCreateDebugLocation(unit->context, LLVMDILocationGetLine(user), 0,
						    scope, LLVMDILocationGetInlinedAt(location)));
	LLVMDIBuilderFinalize(d);
	LLVMDisposeDIBuilder(d);
}

/* The last string of a .file directive: the name; of two the second, after its folder. */
static void file_name(const char *directive, size_t length, char *name, size_t size)
{
	const char *last = NULL, *end = directive + length;

	for (const char *p = directive; p < end; p++)
		if (*p == '"') {
			const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));

			if (!close)
				break;
			last = p + 1;
			p = close;
		}
	name[0] = 0;
	if (last)
		snprintf(name, size, "%.*s", (int)strcspn(last, "\""), last);
}

static void write_place(FILE *out, char *const *files, const char *directive, const char *source)
{
	unsigned file = 0, line = 0;

	if (sscanf(directive, ".loc %u %u", &file, &line) != 2 || file >= FILES_MAX ||
	    !files[file] || !line)
		return;
	if (!strncmp(files[file], PREFIX, strlen(PREFIX)))
		fprintf(out, "\t# guard for %s:%u: %s\n", source, line,
			files[file] + strlen(PREFIX));
	else
		fprintf(out, "\t# %s:%u\n", files[file], line);
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int fay_comment_lines(struct fay_buffer *assembly, struct fay_error *error)
{
	char **files = calloc(FILES_MAX, sizeof(*files)), *text = NULL;
	const char *at = assembly->data, *end = at + assembly->size, *source = "probe";
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool debug = false;

	if (!files || !out)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (const char *next; at < end; at = next) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)),
			   *word = at + strspn(at, " \t");
		unsigned number;

		next = newline ? newline + 1 : end;
		if (!strncmp(word, ".section\t.debug", 15)) {
			debug = true;
		} else if (!strncmp(word, ".section", 8) || !strncmp(word, ".text", 5)) {
			debug = false;
		}
		if (sscanf(word, ".file %u", &number) == 1 && number < FILES_MAX) {
			char name[300];

			file_name(word, (size_t)(next - word), name, sizeof(name));
			free(files[number]);
			files[number] = strdup(name);
			if (files[number] && (!number || !strcmp(source, "probe")))
				source = base_of(files[number]);
		} else if (!strncmp(word, ".loc ", 5) || !strncmp(word, ".loc\t", 5)) {
			write_place(out, files, word, source);
		} else if (!debug && strncmp(word, ".Ltmp", 5) &&
			   strncmp(word, ".cfi_sections", 13)) {
			fwrite(at, 1, (size_t)(next - at), out);
		}
	}
	fclose(out);
	for (unsigned i = 0; i < FILES_MAX; i++)
		free(files[i]);
	free(files);
	free(assembly->data);
	assembly->data = text;
	assembly->size = size;
	return 0;
}
