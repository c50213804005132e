/* SPDX-License-Identifier: MIT */
/*
 * fay/extension.h. What a function takes and gives is read from the debug information: in IR a
 * structure may have become an integer, and `int` and `unsigned` are one type.
 */
#include <stdlib.h>
#include <string.h>

#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/DebugInfo.h>
#include <llvm-c/Error.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "fay/extension.h"
#include "front_private.h"

/* DWARF 5, section 7.5.3 */
enum {
	TAG_ENUMERATION = 0x04,
	TAG_POINTER = 0x0f,
	TAG_STRUCTURE = 0x13,
	TAG_TYPEDEF = 0x16,
	TAG_UNION = 0x17,
	TAG_BASE = 0x24,
	TAG_CONST = 0x26,
	TAG_VOLATILE = 0x35,
	TAG_RESTRICT = 0x37,
	TAG_ATOMIC = 0x47
};
/* Operands of nodes, as LLVM lays them out (IR/DebugInfoMetadata.h): the C interface has no names
 * for them. */
enum { SUBPROGRAM_TYPE = 4, SUBROUTINE_TYPES = 3, DERIVED_BASE = 3 };
#define OPERANDS_MAX 32u

/* Operand `index` of a node; NULL: there is none. */
static LLVMMetadataRef operand(LLVMContextRef context, LLVMMetadataRef node, unsigned index)
{
	LLVMValueRef value = LLVMMetadataAsValue(context, node), operands[OPERANDS_MAX];

	if (index >= (unsigned)LLVMGetMDNodeNumOperands(value) ||
	    LLVMGetMDNodeNumOperands(value) > (int)OPERANDS_MAX)
		return NULL;
	LLVMGetMDNodeOperands(value, operands);
	return operands[index] ? LLVMValueAsMetadata(operands[index]) : NULL;
}

/* Without typedefs, const and the like. */
static LLVMMetadataRef plain(LLVMContextRef context, LLVMMetadataRef type)
{
	while (type) {
		unsigned tag = LLVMGetDINodeTag(type);

		if (tag != TAG_TYPEDEF && tag != TAG_CONST && tag != TAG_VOLATILE &&
		    tag != TAG_RESTRICT && tag != TAG_ATOMIC)
			break;
		type = operand(context, type, DERIVED_BASE);
	}
	return type;
}

static bool is_char(LLVMMetadataRef type)
{
	size_t length = 0;
	const char *name = type && LLVMGetDINodeTag(type) == TAG_BASE
				   ? LLVMDITypeGetName(type, &length)
				   : NULL;

	return name && length == 4 && !memcmp(name, "char", 4);
}

/* What a C type is to a query; NULL, or why it is nothing to it. `ir` is the same in IR. */
static const char *read_type(LLVMContextRef context, LLVMMetadataRef type, LLVMTypeRef ir,
			     struct fay_extension_type *result)
{
	size_t length = 0;
	LLVMMetadataRef bare = plain(context, type);
	unsigned tag = bare ? LLVMGetDINodeTag(bare) : 0;

	if (tag == TAG_POINTER) {
		*result = (struct fay_extension_type){ .kind = FAY_EXTENSION_STRING };
		return is_char(plain(context, operand(context, bare, DERIVED_BASE)))
			       ? NULL
			       : "a pointer that is not a string (const char *)";
	}
	if (tag == TAG_STRUCTURE || tag == TAG_UNION)
		return tag == TAG_UNION ? "a union" : "a structure";
	if (tag == TAG_ENUMERATION)
		bare = plain(context, operand(context, bare, DERIVED_BASE));
	if (!bare || LLVMGetDINodeTag(bare) != TAG_BASE)
		return "something that is not an integer";
	const char *name = LLVMDITypeGetName(bare, &length);
	if (!strcmp(name, "complex")) /* clang's name for all of them */
		return "a complex number";
	if (LLVMGetTypeKind(ir) != LLVMIntegerTypeKind)
		return "a floating-point number";
	if (LLVMGetIntTypeWidth(ir) > 64 || strstr(name, "_BitInt"))
		return "an integer of an unusual size";
	bool is_bool = !strcmp(name, "_Bool");
	*result = (struct fay_extension_type){ .kind = is_bool ? FAY_EXTENSION_BOOL
							       : FAY_EXTENSION_INTEGER,
					       .bits = (uint8_t)LLVMGetIntTypeWidth(ir),
					       .is_signed = strncmp(name, "unsigned", 8) != 0 &&
							    strncmp(name, "char1", 5) != 0 &&
							    strncmp(name, "char3", 5) != 0 };
	return NULL;
}

static char *say(const char *format, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), format, what);
	return strdup(text);
}

/* Types of a function: of the result (NULL: void), then of the parameters. Returns how many. */
static unsigned source_types(LLVMContextRef context, LLVMValueRef function,
			     LLVMMetadataRef types[OPERANDS_MAX])
{
	LLVMMetadataRef subprogram = LLVMGetSubprogram(function),
			routine = subprogram ? operand(context, subprogram, SUBPROGRAM_TYPE) : NULL;
	LLVMMetadataRef list = routine ? operand(context, routine, SUBROUTINE_TYPES) : NULL;
	unsigned count =
		list ? (unsigned)LLVMGetMDNodeNumOperands(LLVMMetadataAsValue(context, list)) : 0;

	for (unsigned i = 0; i < count && count <= OPERANDS_MAX; i++)
		types[i] = operand(context, list, i);
	return count;
}

/* Fills in the types; returns why it is unfit, the caller's, or NULL. */
static char *read_types(LLVMContextRef context, LLVMValueRef function,
			struct fay_extension_function *f)
{
	LLVMMetadataRef types[OPERANDS_MAX] = { 0 };
	LLVMTypeRef ir = LLVMGlobalGetValueType(function), parameters[FAY_EXTENSION_PARAMETERS];
	unsigned count = source_types(context, function, types);
	const char *wrong;

	if (!count)
		return say("has no debug information%s", "");
	if (LLVMIsFunctionVarArg(ir))
		return say("takes variable arguments%s", "");
	if (LLVMGetFunctionCallConv(function) != LLVMCCallConv)
		return say("has another calling convention than C%s", "");
	if (!types[0])
		return say("returns nothing%s", "");
	f->parameter_count = count - 1;
	if (f->parameter_count > FAY_EXTENSION_PARAMETERS)
		return say("has more than six parameters%s", "");
	/* else a structure is there in parts, or by its address */
	bool same = LLVMCountParamTypes(ir) == f->parameter_count;
	if (same)
		LLVMGetParamTypes(ir, parameters);
	for (unsigned i = 0; i < f->parameter_count; i++)
		if ((wrong = read_type(context, types[i + 1],
				       same ? parameters[i] : LLVMFloatTypeInContext(context),
				       &f->parameters[i])))
			return say("takes %s", wrong);
	wrong = read_type(context, types[0], LLVMGetReturnType(ir), &f->result);
	if (!wrong && f->result.kind == FAY_EXTENSION_STRING)
		wrong = "a pointer";
	return wrong ? say("returns %s", wrong) : NULL;
}

/* Takes stock of the functions that others can call, and gives them the symbols by which they are.
 * */
static int read_functions(LLVMModuleRef module, struct fay_extension *extension,
			  struct fay_error *error)
{
	LLVMContextRef context = LLVMGetModuleContext(module);
	uint32_t count = 0;

	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
		count++;
	extension->functions = calloc(count + 1, sizeof(*extension->functions));
	if (!extension->functions)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
		struct fay_extension_function *to =
			&extension->functions[extension->function_count];
		char symbol[512];
		size_t length;

		if (LLVMIsDeclaration(f) || LLVMGetLinkage(f) == LLVMInternalLinkage)
			continue;
		to->name = strdup(LLVMGetValueName2(f, &length));
		if (!to->name)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		to->unfit = read_types(context, f, to);
		snprintf(symbol, sizeof(symbol), FAY_EXTENSION_PREFIX "%s", to->name);
		LLVMSetValueName2(f, symbol, strlen(symbol));
		LLVMSetLinkage(f, LLVMExternalLinkage);
		extension->function_count++;
	}
	for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g))
		if (!LLVMIsDeclaration(g) && LLVMGetLinkage(g) != LLVMAppendingLinkage)
			LLVMSetLinkage(g, LLVMInternalLinkage);
	return extension->function_count
		       ? 0
		       : fay_error_set(error, FAY_E_REFUSED,
				       "%s: there is no function in it that is not static",
				       extension->path);
}

int fay_extension_open(const char *path, struct fay_extension **result, struct fay_error *error)
{
	struct fay_extension *extension = calloc(1, sizeof(*extension));
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module = NULL;
	int code;

	*result = extension;
	if (extension)
		extension->path = strdup(path);
	code = extension && extension->path
		       ? fay_source_module(path, NULL, 0, context, &module, error)
		       : fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!code && (LLVMGetFirstGlobalAlias(module) || LLVMGetFirstGlobalIFunc(module)))
		code = fay_error_set(
			error, FAY_E_REFUSED,
			"%s: a function with two names (alias, ifunc) cannot be called by a query",
			path);
	if (!code)
		code = read_functions(module, extension, error);
	if (!code)
		extension->bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
	if (module)
		LLVMDisposeModule(module);
	LLVMContextDispose(context);
	if (code) {
		fay_extension_close(extension);
		*result = NULL;
	}
	return code;
}

void fay_extension_close(struct fay_extension *extension)
{
	if (!extension)
		return;
	for (uint32_t i = 0; i < extension->function_count; i++) {
		free(extension->functions[i].name);
		free(extension->functions[i].unfit);
	}
	if (extension->bitcode)
		LLVMDisposeMemoryBuffer(extension->bitcode);
	free(extension->functions);
	free(extension->path);
	free(extension);
}

/* Only what `module` calls stays, with what that needs: what else the file has is not the query's.
 * */
static int keep_called(LLVMModuleRef part, LLVMModuleRef module, struct fay_error *error)
{
	LLVMPassBuilderOptionsRef options;
	LLVMErrorRef failed;
	size_t length;

	for (LLVMValueRef f = LLVMGetFirstFunction(part); f; f = LLVMGetNextFunction(f))
		if (!LLVMIsDeclaration(f) &&
		    !LLVMGetNamedFunction(module, LLVMGetValueName2(f, &length)))
			LLVMSetLinkage(f, LLVMInternalLinkage);
	options = LLVMCreatePassBuilderOptions();
	failed = LLVMRunPasses(part, "globaldce", NULL, options);
	LLVMDisposePassBuilderOptions(options);
	if (!failed)
		return 0;
	LLVMConsumeError(failed);
	return fay_error_set(error, FAY_E_INTERNAL, "functions cannot be taken apart");
}

/* An instruction that uses `value`, be it within a constant expression; NULL. Constants outlive the
 * functions that used them, and have no cycles but through variables. */
static LLVMValueRef user_of(LLVMValueRef value)
{
	LLVMValueRef found = NULL;

	for (LLVMUseRef use = value ? LLVMGetFirstUse(value) : NULL; use && !found;
	     use = LLVMGetNextUse(use)) {
		LLVMValueRef user = LLVMGetUser(use);

		found = LLVMIsAInstruction(user)                             ? user
			: LLVMIsAConstant(user) && !LLVMIsAGlobalValue(user) ? user_of(user)
									     : NULL;
	}
	return found;
}

static int check_part(LLVMModuleRef part, struct fay_error *error)
{
	for (LLVMValueRef g = LLVMGetFirstGlobal(part); g; g = LLVMGetNextGlobal(g))
		if (!LLVMIsGlobalConstant(g) && !LLVMIsDeclaration(g) && LLVMGetFirstUse(g) &&
		    LLVMGetLinkage(g) != LLVMAppendingLinkage)
			return fay_error_at(error, FAY_E_REFUSED, g,
					    "%s is a static variable; a function called by a query "
					    "sees its parameters and keeps no state: make it const",
					    fay_source_name(g));
	for (unsigned i = 0; i < FAY_HELPERS; i++) {
		LLVMValueRef user = user_of(LLVMGetNamedFunction(part, fay_helpers[i]));

		if (user)
			return fay_error_at(error, FAY_E_REFUSED, user,
					    "%s is for probes; a function called by a query sees "
					    "only its parameters",
					    fay_helpers[i]);
	}
	return 0;
}

int fay_extension_link(const struct fay_extension *extension, LLVMModuleRef module,
		       struct fay_error *error)
{
	LLVMModuleRef part;
	int code;

	if (LLVMParseBitcodeInContext2(LLVMGetModuleContext(module), extension->bitcode, &part))
		return fay_error_set(error, FAY_E_INTERNAL, "%s: bitcode cannot be read",
				     extension->path);
	code = keep_called(part, module, error);
	if (!code)
		code = check_part(part, error);
	if (code) {
		LLVMDisposeModule(part);
		return code;
	}
	if (LLVMLinkModules2(module, part)) /* takes the part in every case */
		return fay_error_set(error, FAY_E_INTERNAL, "%s: its functions cannot be linked in",
				     extension->path);
	return 0;
}
