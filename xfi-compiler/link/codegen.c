/* SPDX-License-Identifier: MIT */
/*
 * Machine code. A probe runs in the middle of someone else's function, so only general registers
 * are used unless vectors were asked for (vector.c), there is no red zone and no stack protector,
 * and the code is position-independent.
 *
 * A few code generation passes are switched off for the whole process because they undo what a
 * proof needs: loop strength reduction turns an index into a moving pointer and its bound into an
 * equality of pointers, and the cmov converter turns a clamp into a branch. LLVM has them as
 * process-wide options only.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Support.h>

#include "link.h"

static void initialise(void)
{
	static const char *const options[] = {
		"fay",
		"-disable-lsr",
		"-x86-cmov-converter=false",
		"-disable-select-optimize",
		"-enable-shrink-wrap=true",
	};

	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	LLVMInitializeX86AsmParser(); /* initialise.c */
	LLVMParseCommandLineOptions(sizeof(options) / sizeof(*options), options, "");
}

int fay_machine_create(LLVMTargetMachineRef *machine, const char *cpu, const char *features,
		       struct fay_error *error)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const char triple[] = "x86_64-unknown-linux-gnu";
	LLVMTargetRef target;
	char *message = NULL;

	pthread_once(&once, initialise);
	if (LLVMGetTargetFromTriple(triple, &target, &message)) {
		int result = fay_error_set(error, FAY_E_INTERNAL, "LLVM: %s", message);

		LLVMDisposeMessage(message);
		return result;
	}
	*machine = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault,
					   LLVMRelocPIC, LLVMCodeModelSmall);
	return *machine ? 0
			: fay_error_set(error, FAY_E_INTERNAL, "LLVM has no x86-64 target machine");
}

int fay_unit_object(struct fay_unit *unit, LLVMMemoryBufferRef *object)
{
	char *message = NULL;
	int result = 0;

	if (LLVMTargetMachineEmitToMemoryBuffer(unit->machine, unit->module, LLVMObjectFile,
						&message, object))
		result = fay_error_set(unit->error, FAY_E_INTERNAL, "code generation: %s", message);
	LLVMDisposeMessage(message);
	return result;
}

int fay_unit_assembly(struct fay_unit *unit, struct fay_buffer *text)
{
	LLVMModuleRef copy = LLVMCloneModule(unit->module); /* emission changes the module */
	LLVMMemoryBufferRef buffer = NULL;
	char *message = NULL;
	int result = 0;

	if (LLVMTargetMachineEmitToMemoryBuffer(unit->machine, copy, LLVMAssemblyFile, &message,
						&buffer)) {
		result = fay_error_set(unit->error, FAY_E_INTERNAL, "code generation: %s", message);
	} else {
		text->size = LLVMGetBufferSize(buffer);
		text->data = malloc(text->size + 1);
		if (text->data)
			memcpy(text->data, LLVMGetBufferStart(buffer), text->size);
		else
			result = fay_error_set(unit->error, FAY_E_LIMIT, "out of memory");
		LLVMDisposeMemoryBuffer(buffer);
	}
	LLVMDisposeMessage(message);
	LLVMDisposeModule(copy);
	return result;
}
