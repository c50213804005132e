/* SPDX-License-Identifier: MIT */
/*
 * What the verifier is asked and what it says of a probe: rules, policies, facts. The types alone,
 * which the small checker needs wherever it runs; fay/verify.h has the functions.
 */
#ifndef FAY_FACTS_H
#define FAY_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/image/parts.h"

/* Identifiers of rules; fay/rules.def is the table, docs/rules.md explains each. */
enum fay_rule {
	FAY_RULE_NONE = 0,
#define FAY_RULE(symbol, id, outcome, title) FAY_RULE_##symbol,
#include "fay/rules.def"
#undef FAY_RULE
	FAY_RULE_COUNT
};

/* Limits that an operator sets; fay/verify.h makes and reads them. */
struct fay_policy {
	uint64_t max_instructions;       /* worst case of one invocation */
	uint64_t max_stack;              /* bytes below the return address */
	uint64_t max_local;              /* bytes */
	uint64_t max_global;             /* bytes */
	uint64_t allow_helpers;          /* bit per enum fay_helper */
	uint32_t solver_ms;              /* per obligation */
	uint32_t total_ms;               /* whole verification */
	bool speculation_confined;       /* guarantee 7 */
	bool allow_vectors, allow_rdtsc; /* SSE and AVX in probes; the time stamp counter */
	/* what an image brings may decide, instead of the prover; whose word alone does not do */
	bool allow_certificates, require_certificate;
	uint32_t allow_kinds;  /* bit per enum fay_probe_kind */
	uint32_t allow_fields; /* of the event: mask of enum fay_event_field */
	uint32_t denied_count; /* instructions by the names of docs/internals/instructions.md */
	char denied[32][12];
	/* 0: any tracepoint; else fay_policy_allows() each probe's pattern */
	uint32_t pattern_count;
	char patterns[32][FAY_IMAGE_MAX_STRING];
};

/* What may run in a kernel at most. */
#define FAY_KERNEL_MAX_INSTRUCTIONS 50000u
#define FAY_KERNEL_MAX_STACK 1024u

enum fay_helper {
	FAY_HELPER_FLUSH = 0,
	FAY_HELPER_EMIT = 1,
	FAY_HELPER_TRY_READ = 2,
	FAY_HELPER_COUNT
};

/* General registers in encoding order; masks below use bit 1 << number. */
enum fay_gpr {
	FAY_RAX,
	FAY_RCX,
	FAY_RDX,
	FAY_RBX,
	FAY_RSP,
	FAY_RBP,
	FAY_RSI,
	FAY_RDI,
	FAY_R8,
	FAY_R9,
	FAY_R10,
	FAY_R11,
	FAY_R12,
	FAY_R13,
	FAY_R14,
	FAY_R15,
};

/* CPU features beyond the x86-64 baseline (SSE2). */
enum fay_cpu_feature {
	FAY_CPU_SSE3 = 1u << 0,
	FAY_CPU_SSSE3 = 1u << 1,
	FAY_CPU_SSE41 = 1u << 2,
	FAY_CPU_SSE42 = 1u << 3,
	FAY_CPU_AVX = 1u << 4,
	FAY_CPU_AVX2 = 1u << 5,
	FAY_CPU_FMA = 1u << 6,
	FAY_CPU_POPCNT = 1u << 7,
	FAY_CPU_LZCNT = 1u << 8,
	FAY_CPU_BMI1 = 1u << 9,
	FAY_CPU_BMI2 = 1u << 10,
	FAY_CPU_MOVBE = 1u << 11,
};

/* What is proved of one probe. */
struct fay_probe_facts {
	const char *pattern; /* owned by the verdict */
	uint32_t kind;       /* enum fay_probe_kind */
	uint64_t parameter;
	uint32_t code_offset;  /* bytes from the start of the layout (see fay_layout) */
	uint32_t event_fields; /* mask of enum fay_event_field that may be read */
	/* mask: may differ at return from what it was at entry (helpers' clobbers included) */
	uint32_t clobbered_gprs;
	/* mask of FAY_RDI, FAY_RSI, FAY_RDX bits: which argument registers the probe reads */
	uint32_t arguments_used;
	uint32_t helpers;           /* mask of enum fay_helper called */
	uint32_t clobbered_vectors; /* mask of vector registers 0..15 that are written */
	bool clobbers_upper;        /* some by VEX instructions, which change all bits above 128 */
	/* floating point: reads the rounding mode, sets sticky flags, faults where exceptions are
	 * unmasked */
	bool uses_mxcsr;
	/* what follows from the code is known: all the above but pattern, kind, parameter,
	 * code_offset */
	bool analysed;
	/* relies on rsp being 8 modulo 16 at entry (aligned vector accesses to its stack, locked
	 * ones) */
	bool aligned_stack;
	/* mask of enum fay_cpu_feature without which the probe must not run */
	uint32_t cpu_features;
	/* a helper call counts one (its own work is bounded and documented), rep movs and stos one
	 * and one an element */
	uint64_t worst_instructions;
	uint64_t worst_stack; /* bytes below the return address slot's top, helpers excluded */
};

#endif
