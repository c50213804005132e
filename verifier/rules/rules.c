/* SPDX-License-Identifier: MIT */
/*
 * Names: of rules, outcomes, helpers and registers. All come from tables; fay/rules.def is the one
 * list of rules.
 */
#include "rules.h"

static const struct rule_row {
	const char *id;
	enum fay_outcome outcome;
	const char *title;
} rules[FAY_RULE_COUNT] = {
	[FAY_RULE_NONE] = { "NONE", FAY_ACCEPTED, "no rule is broken" },
#define FAY_RULE(symbol, id, outcome, title) [FAY_RULE_##symbol] = { id, outcome, title },
#include "fay/rules.def"
#undef FAY_RULE
};

const char *fay_rule_id(enum fay_rule rule)
{
	return (unsigned)rule < FAY_RULE_COUNT ? rules[rule].id : "?";
}

const char *fay_rule_title(enum fay_rule rule)
{
	return (unsigned)rule < FAY_RULE_COUNT ? rules[rule].title : "?";
}

enum fay_outcome fay_rule_outcome(enum fay_rule rule)
{
	return (unsigned)rule < FAY_RULE_COUNT ? rules[rule].outcome : FAY_UNSAFE;
}

const char *fay_outcome_name(enum fay_outcome outcome)
{
	static const char *const names[] = {
		[FAY_ACCEPTED] = "accepted",   [FAY_UNSAFE] = "unsafe",
		[FAY_UNPROVED] = "unproved",   [FAY_UNSUPPORTED] = "unsupported",
		[FAY_MALFORMED] = "malformed", [FAY_EXHAUSTED] = "exhausted",
	};
	return (unsigned)outcome < sizeof(names) / sizeof(*names) ? names[outcome] : "?";
}

const char *fay_probe_kind_name(unsigned kind)
{
	static const char *const names[] = { "?",          "entry", "return", "exception",
					     "offset",     "begin", "end",    "thread begin",
					     "thread end", "timer", "marker" };
	return kind < sizeof(names) / sizeof(*names) ? names[kind] : NULL;
}

const char *fay_event_field_name(unsigned bit)
{
	static const char *const names[] = { "arg[0]",        "arg[1]",   "arg[2]",   "arg[3]",
					     "arg[4]",        "arg[5]",   "retval",   "time",
					     "cycles",        "function", "module",   "pid",
					     "tid",           "cpu",      "reserved", "comm",
					     "stack_pointer", "duration", "address",  "retval2",
					     "retval_float",  "reg",      "flags" };
	return bit < sizeof(names) / sizeof(*names) ? names[bit] : NULL;
}

const char *fay_helper_name(unsigned helper)
{
	static const char *const names[FAY_HELPER_COUNT] = {
		[FAY_HELPER_FLUSH] = "fay_flush",
		[FAY_HELPER_EMIT] = "fay_emit",
		[FAY_HELPER_TRY_READ] = "fay_try_read",
	};
	return helper < FAY_HELPER_COUNT ? names[helper] : NULL;
}

const char *fay_gpr_name(unsigned gpr, unsigned width)
{
	static const char names[4][16][5] = {
		{ "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b",
		  "r12b", "r13b", "r14b", "r15b" },
		{ "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w",
		  "r12w", "r13w", "r14w", "r15w" },
		{ "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d",
		  "r11d", "r12d", "r13d", "r14d", "r15d" },
		{ "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11",
		  "r12", "r13", "r14", "r15" },
	};
	if (gpr > 15)
		return "?";
	return names[width == 8 ? 0 : width == 16 ? 1 : width == 32 ? 2 : 3][gpr];
}

const char *fay_cpu_feature_name(unsigned bit)
{
	static const char *const names[] = {
		"sse3", "ssse3",  "sse4.1", "sse4.2", "avx",  "avx2",
		"fma",  "popcnt", "lzcnt",  "bmi1",   "bmi2", "movbe"
	};

	return bit < sizeof(names) / sizeof(*names) ? names[bit] : NULL;
}
