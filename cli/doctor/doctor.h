/* SPDX-License-Identifier: MIT */
/* What this machine can and cannot do, found by trying it: `fay doctor`, and which back end runs a
 * query about the kernel. */
#ifndef FAY_CLI_DOCTOR_H
#define FAY_CLI_DOCTOR_H

#include <stdbool.h>

#include "fay/query.h"

int fay_doctor_main(int argc, char **argv);

/* Whether BPF is granted functions of the kernel. */
bool fay_cli_kernel_bpf_functions(void);
/* What runs a query about the kernel on this machine, and why; or why it does not run. Overwritten
 * by the next call. */
const char *fay_cli_kernel_back_end(enum fay_kernel_kind kind);

#endif
