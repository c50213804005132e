/* SPDX-License-Identifier: MIT */
/* A sandbox for tests: seccomp(2). */
#ifndef FAY_TESTS_SANDBOX_H
#define FAY_TESTS_SANDBOX_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

/* From now on this system call fails with EPERM in the calling thread and what it starts. 0, or -1
 * with errno. */
static inline int refuse_call(unsigned number)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
			       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)
		       ? -1
		       : 0;
}

#endif
