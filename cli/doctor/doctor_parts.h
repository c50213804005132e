/* SPDX-License-Identifier: MIT */
/* Between doctor.c and doctor_bpf.c. */
#ifndef FAY_CLI_DOCTOR_PARTS_H
#define FAY_CLI_DOCTOR_PARTS_H

#include <stdarg.h>

#include "doctor.h"

struct finding {
	bool ok;
	char why[512];
};
void __attribute__((format(printf, 3, 4))) fay_doctor_found(struct finding *finding, bool ok,
							    const char *format, ...);
/* First line of a file; NULL if it cannot be read. */
const char *fay_doctor_first_line(const char *path, char *buffer, size_t size);
bool fay_doctor_has_capability(unsigned capability);

/* doctor_bpf.c */
void fay_doctor_btf(struct finding *finding);
void fay_doctor_bpf(struct finding *finding);
void fay_doctor_fentry(struct finding *finding);
void fay_doctor_kprobe_multi(struct finding *finding);

#endif
