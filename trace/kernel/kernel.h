/* SPDX-License-Identifier: MIT */
/* What BPF this kernel grants, found by trying it, and which back end runs a query about it. */
#ifndef FAY_TRACE_KERNEL_H
#define FAY_TRACE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/query.h"

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

/* bpf.c */
void fay_doctor_btf(struct finding *finding);
void fay_doctor_bpf(struct finding *finding);
void fay_doctor_fentry(struct finding *finding);
void fay_doctor_kprobe_multi(struct finding *finding);

#define FAY_BACK_END_SIZE 1600u
/* Whether BPF is granted functions of the kernel. */
bool fay_kernel_bpf_functions(void);
/* What runs a query about the kernel on this machine, and why; or why it does not run. It lies in
 * `text`, or is static. */
const char *fay_kernel_back_end(enum fay_kernel_kind kind, char text[FAY_BACK_END_SIZE]);

#endif
