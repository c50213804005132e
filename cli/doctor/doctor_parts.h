/* SPDX-License-Identifier: MIT */
/* Between doctor.c, which prints, and what finds: machine.c, kernel.c, trace/kernel. */
#ifndef FAY_CLI_DOCTOR_PARTS_H
#define FAY_CLI_DOCTOR_PARTS_H

#include "trace/kernel/kernel.h"

#include "doctor.h"

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

/* leftovers.c */
struct fay_leftovers;
/* One line each, or a JSON object. */
void fay_doctor_leftovers(const struct fay_leftovers *all, bool json);

#endif
