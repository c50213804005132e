/* SPDX-License-Identifier: MIT */
/*
 * What LLVM's BPF target makes of the programs' IR: one section of instructions a program.
 */
#include "programs_private.h"
#include "query/runtime/runtime.h"

#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

/* The first error that LLVM reports, which would otherwise end the process. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
	struct fay_error *error = context;
	if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || error->code)
		return;
	char *text = LLVMGetDiagInfoDescription(info);
	fay_error_set(error, FAY_E_REFUSED, "this query cannot be made into a BPF program: %s",
		      text);
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
	return LLVMCreateTargetMachine(target, "bpfel", "v3", "", LLVMCodeGenLevelDefault,
				       LLVMRelocDefault, LLVMCodeModelDefault);
}

/* Copies the code of each program's section. A relocation would mean something that we did not ask
 * for. */
static int take_sections(struct fay_bpf_object *object, Elf *elf, struct fay_error *error)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names))
		return fay_error_set(error, FAY_E_INTERNAL, "LLVM's object cannot be read: %s",
				     elf_errmsg(-1));
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(elf, names, header->sh_name) : NULL;
		Elf_Data *data = elf_getdata(section, NULL);
		unsigned index;
		if (name && !strncmp(name, ".relprogram", 11))
			return fay_error_set(error, FAY_E_REFUSED,
					     "this query cannot be made into a BPF program: it "
					     "needs a function that does not exist");
		if (!name || !data || sscanf(name, "program%u", &index) != 1 ||
		    index >= object->program_count)
			continue;
		struct fay_bpf_program *program = &object->programs[index];
		program->count = (uint32_t)(data->d_size / sizeof(struct bpf_insn));
		program->code = malloc(data->d_size + 1);
		if (!program->code)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		memcpy(program->code, data->d_buf, data->d_size);
	}
	return FAY_OK;
}

static int read_object(struct fay_bpf_object *object, LLVMMemoryBufferRef buffer,
		       struct fay_error *error)
{
	elf_version(EV_CURRENT);
	Elf *elf = elf_memory((char *)LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
	int code = elf ? take_sections(object, elf, error)
		       : fay_error_set(error, FAY_E_INTERNAL, "LLVM's object cannot be read: %s",
				       elf_errmsg(-1));
	elf_end(elf);
	return code;
}

static int verify(struct fay_codegen *g, struct fay_error *error)
{
	char *message = NULL;
	int code = FAY_OK;
	if (getenv("FAY_BPF_DUMP"))
		LLVMDumpModule(g->module);
	if (LLVMVerifyModule(g->module, LLVMReturnStatusAction, &message))
		code = fay_error_set(error, FAY_E_INTERNAL,
				     "query: the generated code is malformed: %s",
				     message ? message : "");
	LLVMDisposeMessage(message);
	return code;
}

/* NULL on failure. What LLVM complains of on the way is in `said`. */
static LLVMMemoryBufferRef optimise_and_emit(struct fay_codegen *g, LLVMTargetMachineRef machine,
					     struct fay_error *said, struct fay_error *error)
{
	LLVMMemoryBufferRef buffer = NULL;
	char *message = NULL;
	LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
	LLVMContextSetDiagnosticHandler(g->context, on_diagnostic, said);
	LLVMErrorRef failed = LLVMRunPasses(g->module, "default<O2>", machine, options);
	LLVMConsumeError(failed);
	if (failed || LLVMTargetMachineEmitToMemoryBuffer(machine, g->module, LLVMObjectFile,
							  &message, &buffer))
		fay_error_set(error, FAY_E_INTERNAL, "LLVM: %s",
			      message ? message : "the optimiser failed");
	LLVMContextSetDiagnosticHandler(g->context, NULL, NULL);
	LLVMDisposeMessage(message);
	LLVMDisposePassBuilderOptions(options);
	return buffer;
}

static int emit(struct fay_codegen *g, LLVMTargetMachineRef machine, struct fay_bpf_object *object,
		struct fay_error *error)
{
	struct fay_error said = { 0 };
	if (verify(g, error))
		return FAY_E_INTERNAL;
	LLVMMemoryBufferRef buffer = optimise_and_emit(g, machine, &said, error);
	int code = FAY_E_INTERNAL;
	if (buffer && said.code) {
		if (error)
			*error = said;
		code = said.code;
	} else if (buffer) {
		code = read_object(object, buffer, error);
	}
	if (buffer)
		LLVMDisposeMemoryBuffer(buffer);
	return code;
}

/* What reads strings whole, as part of each program that calls it. */
static int link_texts(struct fay_codegen *g, struct fay_error *error)
{
	int code = fay_codegen_link_bitcode(g, fay_query_texts_bpf, fay_query_texts_bpf_end, error);
	unsigned kind = LLVMGetEnumAttributeKindForName("alwaysinline", strlen("alwaysinline"));
	for (LLVMValueRef f = LLVMGetFirstFunction(g->module); !code && f;
	     f = LLVMGetNextFunction(f)) {
		if (LLVMIsDeclaration(f) || LLVMGetSection(f))
			continue;
		LLVMSetLinkage(f, LLVMInternalLinkage);
		LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
					LLVMCreateEnumAttribute(g->context, kind, 0));
	}
	return code;
}

int fay_bpf_emit(struct fay_codegen *g, struct fay_bpf_object *object, struct fay_error *error)
{
	LLVMTargetMachineRef machine = target_machine();
	if (!machine)
		return fay_error_set(error, FAY_E_INTERNAL, "this LLVM has no BPF target");
	LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
	LLVMSetModuleDataLayout(g->module, layout);
	LLVMDisposeTargetData(layout);
	LLVMSetTarget(g->module, "bpfel");
	int code = g->texts_read ? link_texts(g, error) : FAY_OK;
	if (!code)
		code = emit(g, machine, object, error);
	LLVMDisposeTargetMachine(machine);
	return code;
}
