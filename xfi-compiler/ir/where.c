/* SPDX-License-Identifier: MIT */
/*
 * Where in the source something is, and a refusal that shows it:
 *
 *     read.c:12:9: call of malloc; a probe has no heap ...
 *        12 |         p = malloc(16);
 *           |             ^
 *
 * The place of code that comes from Fay's own headers is where the author's file uses it.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/DebugInfo.h>

#include "fay/extension.h"
#include "ir.h"

#define LINE_MAX_SHOWN 160

struct place {
	char file[512], path[1024]; /* as the author named it; where it can be read */
	unsigned line, column;      /* column 0: unknown */
};

static bool of_library(const char *file)
{
	return strstr(file, "/include/fay/") || !strncmp(file, "fay/", 4);
}

static bool set_place(struct place *p, LLVMMetadataRef file, unsigned line, unsigned column)
{
	unsigned length = 0, directory_length = 0;
	const char *name = file ? LLVMDIFileGetFilename(file, &length) : NULL;
	const char *directory = file ? LLVMDIFileGetDirectory(file, &directory_length) : NULL;

	if (!name || !length || !line)
		return false;
	snprintf(p->file, sizeof(p->file), "%.*s", (int)length, name);
	if (p->file[0] == '/' || !directory_length)
		snprintf(p->path, sizeof(p->path), "%s", p->file);
	else
		snprintf(p->path, sizeof(p->path), "%.*s/%s", (int)directory_length, directory,
			 p->file);
	p->line = line;
	p->column = column;
	return true;
}

static bool place_of_location(struct place *p, LLVMMetadataRef location)
{
	return set_place(p, LLVMDIScopeGetFile(LLVMDILocationGetScope(location)),
			 LLVMDILocationGetLine(location), LLVMDILocationGetColumn(location));
}

LLVMMetadataRef fay_user_location(LLVMMetadataRef location)
{
	struct place p;

	while (location && LLVMDILocationGetInlinedAt(location) &&
	       (!place_of_location(&p, location) || of_library(p.file)))
		location = LLVMDILocationGetInlinedAt(location);
	return location;
}

/* An instruction that uses a constant, perhaps through constant expressions; NULL if none is near.
 * */
static LLVMValueRef user_of(LLVMValueRef constant, int depth)
{
	for (LLVMUseRef u = LLVMGetFirstUse(constant); u && depth < 4; u = LLVMGetNextUse(u)) {
		LLVMValueRef user = LLVMGetUser(u);
		LLVMValueRef found = LLVMIsAInstruction(user) ? user : user_of(user, depth + 1);

		if (found)
			return found;
	}
	return NULL;
}

static bool place_of_variable(struct place *p, LLVMValueRef global)
{
	size_t count = 0;
	LLVMValueMetadataEntry *entries = LLVMGlobalCopyAllMetadata(global, &count);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		LLVMMetadataRef m = LLVMValueMetadataEntriesGetMetadata(entries, (unsigned)i);

		if (LLVMGetMetadataKind(m) != LLVMDIGlobalVariableExpressionMetadataKind)
			continue;
		m = LLVMDIGlobalVariableExpressionGetVariable(m);
		found = set_place(p, LLVMDIVariableGetFile(m), LLVMDIVariableGetLine(m), 0);
	}
	LLVMDisposeValueMetadataEntries(entries);
	return found;
}

/* Of an instruction without a place of its own: the one before it, and at last its function. */
static bool place_of_instruction(struct place *p, LLVMValueRef i)
{
	LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(i));
	LLVMMetadataRef location, s = LLVMGetSubprogram(function);

	for (; i; i = LLVMGetPreviousInstruction(i)) {
		location = LLVMInstructionGetDebugLoc(i);
		if (location)
			return place_of_location(p, fay_user_location(location));
	}
	return s && set_place(p, LLVMDIScopeGetFile(s), LLVMDISubprogramGetLine(s), 0);
}

static bool place_of(struct place *p, LLVMValueRef value)
{
	if (LLVMIsAInstruction(value))
		return place_of_instruction(p, value);
	if (LLVMIsAFunction(value) && !LLVMIsDeclaration(value)) {
		LLVMMetadataRef s = LLVMGetSubprogram(value);

		return s && set_place(p, LLVMDIScopeGetFile(s), LLVMDISubprogramGetLine(s), 0);
	}
	if (LLVMIsAGlobalVariable(value) && place_of_variable(p, value))
		return true;
	value = LLVMIsAConstant(value) ? user_of(value, 0) : NULL;
	return value && place_of(p, value);
}

/* Line `number` of a file without its end; false if it cannot be read or is too long to show. */
static bool read_line(const char *path, unsigned number, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length = -1;

	if (!file)
		return false;
	for (unsigned n = 0; n < number; n++) {
		length = getline(&line, &room, file);
		if (length < 0)
			break;
	}
	fclose(file);
	while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
		length--;
	if (length > 0 && (size_t)length < size) {
		memcpy(text, line, (size_t)length);
		text[length] = 0;
	}
	free(line);
	return length > 0 && (size_t)length < size;
}

/* "\n 12 | code\n | ^" after a message; the caret stands under the column, or where none is known
 * under `name`, whose column it then is. */
static void show_line(struct place *p, const char *name, char *out, size_t size)
{
	char line[LINE_MAX_SHOWN], under[LINE_MAX_SHOWN];
	const char *at;
	size_t column = p->column, length;

	out[0] = 0;
	if (!read_line(p->path, p->line, line, sizeof(line)))
		return;
	length = strlen(line);
	if (!column) {
		at = name && *name ? strstr(line, name) : NULL;
		column = at ? (size_t)(at - line) + 1 : strspn(line, " \t") + 1;
	}
	if (column > length)
		column = length;
	p->column = (unsigned)column;
	for (size_t i = 0; i + 1 < column; i++)
		under[i] = line[i] == '\t' ? '\t' : ' ';
	under[column - 1] = 0;
	snprintf(out, size, "\n%5u | %s\n      | %s^", p->line, line, under);
}

/* A static variable of a function is FUNCTION.NAME in IR, a function that a query calls has a
 * prefix. */
const char *fay_source_name(LLVMValueRef value)
{
	size_t length;
	const char *name = LLVMGetValueName2(value, &length), *dot = strrchr(name, '.');

	if (LLVMIsAFunction(value) &&
	    !strncmp(name, FAY_EXTENSION_PREFIX, strlen(FAY_EXTENSION_PREFIX)))
		return name + strlen(FAY_EXTENSION_PREFIX);
	return dot && !LLVMIsAFunction(value) ? dot + 1 : name;
}

int fay_error_at_text(struct fay_error *error, LLVMModuleRef module, const char *words,
		      const char *message)
{
	char line[LINE_MAX_SHOWN], shown[2 * LINE_MAX_SHOWN + 64] = "";
	struct place p = { 0 };

	for (LLVMValueRef f = LLVMGetFirstFunction(module); f && !p.line;
	     f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f))
			place_of(&p, f);
	for (unsigned n = 1; p.line && n < 100000; n++) {
		if (read_line(p.path, n, line, sizeof(line)) && strstr(line, words)) {
			p.line = n;
			p.column = (unsigned)(strstr(line, words) - line) + 1;
			show_line(&p, words, shown, sizeof(shown));
			return fay_error_set(error, FAY_E_REFUSED, "%s:%u:%u: %s%s", p.file, p.line,
					     p.column, message, shown);
		}
		if (n > p.line + 10000)
			break;
	}
	return fay_error_set(error, FAY_E_REFUSED, "%s", message);
}

int fay_error_at(struct fay_error *error, enum fay_error_code code, LLVMValueRef value,
		 const char *format, ...)
{
	char what[1000], where[600] = "", shown[2 * LINE_MAX_SHOWN + 64] = "";
	struct place p = { 0 };
	size_t length = 0;
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	if (value && place_of(&p, value)) {
		show_line(&p, LLVMIsAInstruction(value) ? NULL : fay_source_name(value), shown,
			  sizeof(shown));
		if (p.column)
			snprintf(where, sizeof(where), "%s:%u:%u: ", p.file, p.line, p.column);
		else
			snprintf(where, sizeof(where), "%s:%u: ", p.file, p.line);
	} else if (value && LLVMIsAInstruction(value)) {
		LLVMValueRef function = LLVMGetBasicBlockParent(LLVMGetInstructionParent(value));

		snprintf(where, sizeof(where), "in %s: ", LLVMGetValueName2(function, &length));
	}
	return fay_error_set(error, code, "%s%s%s", where, what, shown);
}

void fay_settle_lines(struct fay_unit *unit)
{
	for (LLVMValueRef i = fay_first_of_module(unit->module); i; i = fay_next_of_module(i)) {
		LLVMMetadataRef location = LLVMInstructionGetDebugLoc(i);

		if (location)
			LLVMInstructionSetDebugLoc(i, fay_user_location(location));
	}
}
