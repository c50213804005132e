/* SPDX-License-Identifier: MIT */
/* Words that both forms of a report use. */
#ifndef FAY_VERIFIER_REPORT_NAMES_H
#define FAY_VERIFIER_REPORT_NAMES_H

#include "explain.h"

static const char *const merge_names[] = { "key",
					   "count",
					   "sum",
					   "min",
					   "max",
					   "average",
					   "log2 histogram",
					   "linear histogram",
					   "log-linear histogram",
					   "quantiles",
					   "distinct",
					   "top",
					   "first",
					   "last",
					   "sample" };
static const char *const type_names[] = { "?", "i64", "u64", "string", "function", "time", "bool" };
static const char *const state_names[] = { "?", "cell", "table", "stream" };

static inline const char *name_of(const char *const *names, size_t count, unsigned index)
{
	return index < count ? names[index] : "?";
}
#define NAME(names, index) name_of(names, sizeof(names) / sizeof(*names), index)

static inline const char *kind_name(unsigned index)
{
	const char *name = fay_probe_kind_name(index);

	return name ? name : "?";
}

static inline const char *field_name(unsigned index)
{
	const char *name = fay_event_field_name(index);

	return name ? name : "?";
}

static inline const char *helper_name(unsigned index)
{
	const char *name = fay_helper_name(index);

	return name ? name : "?";
}

static inline const char *gpr_name(unsigned index)
{
	return fay_gpr_name(index, 64);
}

static inline const char *vector_name(unsigned index)
{
	static const char *const names[] = { "xmm0",  "xmm1",  "xmm2",  "xmm3", "xmm4",  "xmm5",
					     "xmm6",  "xmm7",  "xmm8",  "xmm9", "xmm10", "xmm11",
					     "xmm12", "xmm13", "xmm14", "xmm15" };

	return NAME(names, index);
}

static inline const char *feature_name(unsigned index)
{
	const char *name = fay_cpu_feature_name(index);

	return name ? name : "?";
}

static inline const char *native_name(enum fay_native native)
{
	return native == FAY_NATIVE_CONFIRMED       ? "confirmed"
	       : native == FAY_NATIVE_NOT_CONFIRMED ? "not confirmed"
						    : "not run";
}

static inline void print_hex(FILE *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", bytes[i]);
}

#endif
