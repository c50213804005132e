/* SPDX-License-Identifier: MIT */
/* Between doctor.c, which prints, and what finds: machine.c, kernel.c, bpf.c. */
#ifndef FAY_CLI_DOCTOR_PARTS_H
#define FAY_CLI_DOCTOR_PARTS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "doctor.h"

struct finding {
	bool ok;
	char why[512];
};
void __attribute__((format(printf, 3, 4))) fay_doctor_found(struct finding *finding, bool ok,
							    const char *format, ...);
/* First line of a file; NULL if it cannot be read, errno says why (0: it is empty). */
const char *fay_doctor_first_line(const char *path, char *buffer, size_t size);
bool fay_doctor_has_capability(unsigned capability);

/* The value behind `key` in /proc/self/status. */
uint64_t fay_doctor_status_value(const char *key, int base);

/* machine.c */
void fay_doctor_fsgsbase(struct finding *finding);
void fay_doctor_tsc(struct finding *finding);
void fay_doctor_seccomp(struct finding *finding);
void fay_doctor_ptrace(struct finding *finding);
void fay_doctor_map_files(struct finding *finding);
void fay_doctor_memfd(struct finding *finding);
/* kernel.c */
void fay_doctor_modules(struct finding *finding);
void fay_doctor_ftrace(struct finding *finding);
void fay_doctor_kallsyms(struct finding *finding);
void fay_doctor_perf(struct finding *finding);
void fay_doctor_uprobes(struct finding *finding);
void fay_doctor_clang(struct finding *finding);
/* bpf.c */
void fay_doctor_btf(struct finding *finding);
void fay_doctor_bpf(struct finding *finding);
void fay_doctor_fentry(struct finding *finding);
void fay_doctor_kprobe_multi(struct finding *finding);

#endif
