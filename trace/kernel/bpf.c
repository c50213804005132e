/* SPDX-License-Identifier: MIT */
/*
 * What BPF this kernel grants, by trying it: programs that do nothing are loaded, attached and
 * removed. The same findings choose the back end of a query about the kernel.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fay/bpf.h"
#include "fay/kernel.h"

#include "kernel.h"

/* Loads "return 0". Returns the program's descriptor or -errno. */
static int load_nothing(enum bpf_prog_type type, enum bpf_attach_type attach, uint32_t btf_id)
{
	static const struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
						{ .code = BPF_JMP | BPF_EXIT } };
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach,
		    .attach_btf_id = btf_id);
	return bpf_prog_load(type, NULL, "Dual MIT/GPL", code, 2, &options);
}

#define WHY_SIZE 256u

static const char *why_refused(int code, char text[WHY_SIZE])
{
	char line[32];
	const char *unprivileged = fay_doctor_first_line(
		"/proc/sys/kernel/unprivileged_bpf_disabled", line, sizeof(line));
	bool held = fay_doctor_has_capability(CAP_SYS_ADMIN) ||
		    (fay_doctor_has_capability(CAP_BPF) && fay_doctor_has_capability(CAP_PERFMON));
	snprintf(text, WHY_SIZE,
		 "%s (CAP_BPF and CAP_PERFMON: %s; kernel.unprivileged_bpf_disabled: %s)",
		 strerror(-code), held ? "held" : "missing",
		 unprivileged ? unprivileged : "absent");
	return text;
}

void fay_doctor_btf(struct finding *finding)
{
	const struct btf *btf;
	struct fay_error error;
	if (fay_btf_open(NULL, &btf, &error)) {
		fay_doctor_found(finding, false, "%.400s", error.message);
		return;
	}
	fay_doctor_found(finding, true,
			 "%u types, %zu tracepoints: arguments are known by name and type",
			 btf__type_cnt(btf), fay_btf_tracepoints(btf, NULL, 0));
	fay_btf_close(btf);
}

/* By what name and kind in the kernel's types; 0: it is not there. */
static uint32_t find_type(unsigned kind, const char *name)
{
	const struct btf *btf;
	if (fay_btf_open(NULL, &btf, NULL))
		return 0;
	uint32_t id = fay_btf_find(btf, kind, name);
	fay_btf_close(btf);
	return id;
}

static void try_to_attach(struct finding *finding, uint32_t type, const char *what,
			  const char *shown)
{
	char why[WHY_SIZE];
	int program = load_nothing(BPF_PROG_TYPE_TRACING,
				   type == BTF_KIND_FUNC ? BPF_TRACE_FENTRY : BPF_TRACE_RAW_TP,
				   find_type(type, what));
	if (program < 0) {
		bool lacking = program == -EPERM && type == BTF_KIND_FUNC &&
			       fay_doctor_has_capability(CAP_BPF);
		fay_doctor_found(
			finding, false, "loading a program for %s: %s%s", shown,
			why_refused(program, why),
			lacking ? "; the kernel lacks hotpatch points, or an LSM refuses it" : "");
		return;
	}
	int link = bpf_raw_tracepoint_open(NULL, program); /* by the program's own type */
	close(program);
	if (link < 0) {
		fay_doctor_found(finding, false,
				 "a program for %s loads, but cannot be attached: %s", shown,
				 strerror(-link));
		return;
	}
	close(link);
	fay_doctor_found(finding, true, "a program was attached to %s and removed", shown);
}

void fay_doctor_bpf(struct finding *finding)
{
	if (!find_type(BTF_KIND_TYPEDEF, "btf_trace_sys_enter"))
		fay_doctor_found(
			finding, false,
			"the kernel's types do not describe tracepoints (or BTF cannot be read)");
	else
		try_to_attach(finding, BTF_KIND_TYPEDEF, "btf_trace_sys_enter",
			      "tracepoint sys_enter");
}

void fay_doctor_fentry(struct finding *finding)
{
	if (fay_bpf_functions_off())
		fay_doctor_found(finding, false, "%s", fay_bpf_functions_off());
	else if (!find_type(BTF_KIND_FUNC, "vfs_read"))
		fay_doctor_found(
			finding, false,
			"no BTF for kernel functions: fentry programs have nothing to attach to");
	else
		try_to_attach(finding, BTF_KIND_FUNC, "vfs_read", "vfs_read");
}

void fay_doctor_kprobe_multi(struct finding *finding)
{
	const char *symbols[] = { "vfs_read" };
	char why[WHY_SIZE];
	LIBBPF_OPTS(bpf_link_create_opts, options, .kprobe_multi.syms = symbols,
		    .kprobe_multi.cnt = 1);
	int program = load_nothing(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0);
	if (program < 0) {
		fay_doctor_found(finding, false, "loading a program: %s",
				 why_refused(program, why));
		return;
	}
	int link = bpf_link_create(program, 0, BPF_TRACE_KPROBE_MULTI, &options);
	close(program);
	if (link < 0) {
		fay_doctor_found(finding, false, "attaching to vfs_read: %s (CONFIG_FPROBE)",
				 strerror(-link));
		return;
	}
	close(link);
	fay_doctor_found(finding, true, "a program was attached to vfs_read and removed");
}

const char *fay_kernel_back_end(enum fay_kernel_kind kind, char text[FAY_BACK_END_SIZE])
{
	struct finding bpf = { 0 }, fentry = { 0 }, multi = { 0 };
	const char *refused = fay_kernel_modules_refused(),
		   *no_native = refused ? refused : "there is no fay.ko for this kernel";
	if (kind == FAY_KERNEL_FUNCTIONS && fay_bpf_functions_off()) {
		snprintf(text, FAY_BACK_END_SIZE, "none: %s", fay_bpf_functions_off());
		return text;
	}
	if (kind == FAY_KERNEL_FUNCTIONS && !refused && fay_kernel_present())
		return "native code through fay.ko";
	fay_doctor_bpf(&bpf);
	if (kind != FAY_KERNEL_FUNCTIONS) {
		snprintf(text, FAY_BACK_END_SIZE,
			 bpf.ok ? "BPF: %s" : "none: BPF is not permitted here: %s", bpf.why);
		return text;
	}
	fay_doctor_fentry(&fentry);
	fay_doctor_kprobe_multi(&multi);
	if (fentry.ok)
		snprintf(text, FAY_BACK_END_SIZE, "BPF, fentry and fexit: %s; no native code: %s",
			 fentry.why, no_native);
	else
		snprintf(text, FAY_BACK_END_SIZE,
			 "none: %s, and BPF cannot attach to functions (fentry: %s; kprobe.multi: "
			 "%s); cluster.Syscall and cluster.Tracepoint work",
			 no_native, fentry.why, multi.why);
	return text;
}

bool fay_kernel_bpf_functions(void)
{
	struct finding fentry = { 0 };
	fay_doctor_fentry(&fentry);
	return fentry.ok;
}
