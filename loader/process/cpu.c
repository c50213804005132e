/* SPDX-License-Identifier: MIT */
/* Whether this machine has the instructions that a probe, and the dispatcher, need. */
#include <asm/prctl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dispatcher/user/trampoline.h"
#include "fay/loader.h"
#include "process.h"

#define HWCAP2_FSGSBASE 2u

/* In a child, which SIGILL ends where the instruction is not enabled. */
static _Noreturn void compare_fs_bases(void)
{
	const struct rlimit no_core = { 0, 0 };
	uint64_t read = 0, told = 0;

	signal(SIGILL, SIG_DFL);
	setrlimit(RLIMIT_CORE, &no_core);
	__asm__ volatile("rdfsbase %0" : "=r"(read));
	_exit(syscall(SYS_arch_prctl, ARCH_GET_FS, &told) || read != told);
}

/* Only reading is asked for: whatever the kernel sets the base by, the processor has it. */
bool fay_reads_fs_base(void)
{
	static int known; /* 1: it does; 2: it does not */
	int status = -1, tried = __atomic_load_n(&known, __ATOMIC_RELAXED);
	pid_t child;

	if (!tried && !(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE)) {
		child = fork();
		if (child == 0)
			compare_fs_bases();
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		tried = status == 0 ? 1 : 2;
	}
	tried = tried ? tried : 1;
	__atomic_store_n(&known, tried, __ATOMIC_RELAXED);
	return tried == 1;
}

int fay_loader_check_cpu(const struct fay_probe_facts *facts, uint32_t probe,
			 struct fay_error *error)
{
	/* in a virtual machine asking takes some 50 us */
	uint32_t missing = facts->cpu_features ? facts->cpu_features & ~fay_cpu_features() : 0;
	const char *name;

	if (!missing)
		return FAY_OK;
	name = fay_cpu_feature_name((unsigned)__builtin_ctz(missing));
	return fay_error_set(error, FAY_E_REFUSED,
			     "probe %u (%s) uses %s instructions, which this machine does not have",
			     probe, facts->pattern, name ? name : "unknown");
}
