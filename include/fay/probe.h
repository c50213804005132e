/* SPDX-License-Identifier: MIT */
/*
 * C for probe authors. A whole probe file:
 *
 *     #include <fay/probe.h>
 *
 *     FAY_COUNT(reads);
 *     FAY_TABLE(by_thread, 1024, FAY_KEYS(FAY_KEY_U64(tid)), FAY_VALUES(FAY_VALUE_SUM(bytes),
 *       FAY_VALUE_MAX(largest)));
 *
 *     FAY_ENTRY("libc!read")
 *     {
 *             struct by_thread_row *row = by_thread_at((struct by_thread_key){.tid = event->tid});
 *
 *             fay_count(&reads);
 *             if (row) {
 *                     fay_sum(&row->bytes, event->arg[2]);
 *                     fay_max(&row->largest, event->arg[2]);
 *             }
 *     }
 *
 * `fay cc reads.c -o reads.fay` makes an image of it, `fay trace --probe reads.fay -p PID` runs it.
 * State is one copy per thread, merged by Fay; names of state objects are the names of the results.
 * FAY_SCRATCH() is memory that is no result. There is no other writable memory: globals and statics
 * that are not declared so are refused. `event` (fay/event.h) is what the probe sees of the traced
 * program; its memory is read by fay_try_read(). Loops need a constant bound, or they are left, and
 * the probe with them, after 1024 rounds.
 *
 * The declarations leave descriptions in sections .fay.decl.*, which the compiler turns into the
 * image's tables.
 */
#ifndef FAY_PROBE_H
#define FAY_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "fay/event.h"
#include "fay/image.h"
#include "fay/sketch.h"

/* ---- what the compiler reads ---- */

struct fay_decl_column {
	const char *name;
	uint32_t type, merge, offset, size;
	int64_t param[2];
};
struct fay_decl_state {
	const char *name;
	const void *object;
	uint32_t kind, scope, rows, row_size, keys, values;
	uint64_t size;
	const struct fay_decl_column *columns;
};
struct fay_decl_scratch {
	const void *object;
	uint64_t scope, size;
};
typedef void fay_probe_function(const struct fay_event *event, void *fay_local, void *fay_global);
struct fay_decl_probe {
	const char *pattern;
	uint64_t kind, parameter;
	fay_probe_function *code;
};

#define FAY_CAT_(a, b) a##b
#define FAY_CAT(a, b) FAY_CAT_(a, b)
#define FAY_DECL_(kind) __attribute__((used, section(".fay.decl." kind)))

/* ---- probes ---- */

#define FAY_PROBE_(pattern_, kind_, parameter_, id)                                                \
	fay_probe_function FAY_CAT(fay_probe_, id);                                                \
	static const struct fay_decl_probe FAY_CAT(fay_decl_probe_, id)                            \
		FAY_DECL_("probe") = { pattern_, kind_, parameter_, FAY_CAT(fay_probe_, id) };     \
	void FAY_CAT(fay_probe_, id)(const struct fay_event *event __attribute__((unused)),        \
				     void *fay_local __attribute__((unused)),                      \
				     void *fay_global __attribute__((unused)))

/* Each is followed by the probe's body in braces, in which `event` is known. */
#define FAY_ENTRY(pattern) FAY_PROBE_(pattern, FAY_PROBE_ENTRY, 0, __COUNTER__)
#define FAY_RETURN(pattern) FAY_PROBE_(pattern, FAY_PROBE_RETURN, 0, __COUNTER__)
#define FAY_EXCEPTION(pattern) FAY_PROBE_(pattern, FAY_PROBE_EXCEPTION, 0, __COUNTER__)
#define FAY_OFFSET(pattern, bytes) FAY_PROBE_(pattern, FAY_PROBE_OFFSET, bytes, __COUNTER__)
/* A USDT marker: "module!provider:name"; event->arg[] are its arguments. */
#define FAY_MARKER(pattern) FAY_PROBE_(pattern, FAY_PROBE_MARKER, 0, __COUNTER__)
#define FAY_BEGIN() FAY_PROBE_("", FAY_PROBE_BEGIN, 0, __COUNTER__)
#define FAY_END() FAY_PROBE_("", FAY_PROBE_END, 0, __COUNTER__)
#define FAY_THREAD_BEGIN() FAY_PROBE_("", FAY_PROBE_THREAD_BEGIN, 0, __COUNTER__)
#define FAY_THREAD_END() FAY_PROBE_("", FAY_PROBE_THREAD_END, 0, __COUNTER__)
#define FAY_TIMER(nanoseconds) FAY_PROBE_("", FAY_PROBE_TIMER, nanoseconds, __COUNTER__)

/* ---- values and what is done with them; all zero bytes is "nothing yet" for each ---- */

struct fay_count {
	uint64_t n;
};
struct fay_sum {
	int64_t sum;
};
struct fay_min {
	uint64_t held;
};
struct fay_max {
	uint64_t held;
};
struct fay_average {
	int64_t sum;
	uint64_t n;
};
struct fay_histogram {
	uint64_t bucket[FAY_HIST_LOG2_BUCKETS];
};

static inline void fay_count(struct fay_count *c)
{
	c->n++;
}

static inline void fay_sum(struct fay_sum *s, int64_t x)
{
	s->sum = (int64_t)((uint64_t)s->sum + (uint64_t)x);
}

static inline void fay_max(struct fay_max *m, int64_t x)
{
	uint64_t v = (uint64_t)x ^ (UINT64_C(1) << 63);

	m->held = v > m->held ? v : m->held;
}

static inline void fay_min(struct fay_min *m, int64_t x)
{
	uint64_t v = ~((uint64_t)x ^ (UINT64_C(1) << 63));

	m->held = v > m->held ? v : m->held;
}

static inline void fay_average(struct fay_average *a, int64_t x)
{
	a->sum = (int64_t)((uint64_t)a->sum + (uint64_t)x);
	a->n++;
}

/* Bucket 0 for x <= 0, else 1 + floor(log2 x): the highest bit of 2x + 1. */
static inline void fay_hist(struct fay_histogram *h, int64_t x)
{
	uint64_t positive = x > 0 ? (uint64_t)x : 0;

	h->bucket[63 ^ __builtin_clzll(positive << 1 | 1)]++;
}

/* A value in GLOBAL, which all threads share. */
static inline void fay_count_shared(struct fay_count *c)
{
	__atomic_fetch_add(&c->n, 1, __ATOMIC_RELAXED);
}

static inline void fay_sum_shared(struct fay_sum *s, int64_t x)
{
	__atomic_fetch_add(&s->sum, x, __ATOMIC_RELAXED);
}

/* ---- columns: (member, name, type, merge) ---- */

#define FAY_KEY_U64(name) (uint64_t name, name, FAY_TYPE_U64, FAY_MERGE_KEY)
#define FAY_KEY_I64(name) (int64_t name, name, FAY_TYPE_I64, FAY_MERGE_KEY)
#define FAY_KEY_BOOL(name) (uint64_t name, name, FAY_TYPE_BOOL, FAY_MERGE_KEY)
#define FAY_KEY_TIME(name) (uint64_t name, name, FAY_TYPE_TIME, FAY_MERGE_KEY)
#define FAY_KEY_FUNCTION(name) (uint64_t name, name, FAY_TYPE_FUNCTION, FAY_MERGE_KEY)
/* `bytes` a multiple of 8; NUL padded */
#define FAY_KEY_STRING(name, bytes)                                                                \
	(char name[bytes] __attribute__((aligned(8))), name, FAY_TYPE_STRING, FAY_MERGE_KEY)

#define FAY_VALUE_COUNT(name) (struct fay_count name, name, FAY_TYPE_U64, FAY_MERGE_COUNT)
#define FAY_VALUE_SUM(name) (struct fay_sum name, name, FAY_TYPE_I64, FAY_MERGE_SUM)
#define FAY_VALUE_MIN(name) (struct fay_min name, name, FAY_TYPE_I64, FAY_MERGE_MIN)
#define FAY_VALUE_MAX(name) (struct fay_max name, name, FAY_TYPE_I64, FAY_MERGE_MAX)
#define FAY_VALUE_AVERAGE(name) (struct fay_average name, name, FAY_TYPE_I64, FAY_MERGE_AVERAGE)
#define FAY_VALUE_HISTOGRAM(name)                                                                  \
	(struct fay_histogram name, name, FAY_TYPE_I64, FAY_MERGE_HIST_LOG2)

/* Summaries: fay/sketch.h says what each is and how exact. K: how many are kept; the type is what
 * the values are shown as. */
#define FAY_VALUE_LOGLINEAR(name)                                                                  \
	(struct fay_loglinear name, name, FAY_TYPE_I64, FAY_MERGE_HIST_LOGLINEAR)
#define FAY_VALUE_QUANTILES(name)                                                                  \
	(struct fay_quantiles name, name, FAY_TYPE_I64, FAY_MERGE_QUANTILE)
#define FAY_VALUE_DISTINCT(name) (struct fay_distinct name, name, FAY_TYPE_U64, FAY_MERGE_DISTINCT)
#define FAY_VALUE_TOP(name, k) (FAY_TOP_STRUCT(k) name, name, FAY_TYPE_U64, FAY_MERGE_TOP)
#define FAY_VALUE_TOP_FUNCTIONS(name, k)                                                           \
	(FAY_TOP_STRUCT(k) name, name, FAY_TYPE_FUNCTION, FAY_MERGE_TOP)
#define FAY_VALUE_FIRST(name) (struct fay_at_time name, name, FAY_TYPE_I64, FAY_MERGE_FIRST)
#define FAY_VALUE_LAST(name) (struct fay_at_time name, name, FAY_TYPE_I64, FAY_MERGE_LAST)
#define FAY_VALUE_SAMPLE(name, k) (FAY_SAMPLE_STRUCT(k) name, name, FAY_TYPE_U64, FAY_MERGE_SAMPLE)

#define FAY_KEYS(...) (__VA_ARGS__)
#define FAY_VALUES(...) (__VA_ARGS__)
#define FAY_COLUMNS(...) (__VA_ARGS__)

/* FAY_EACH_(M, S, (c1, c2, ...)): M(S, c1) M(S, c2) ..., at most 8. */
#define FAY_EACH_(m, s, list) FAY_EACH_1_(m, s, FAY_OPEN_ list)
#define FAY_OPEN_(...) __VA_ARGS__
#define FAY_EACH_1_(...) FAY_EACH_2_(__VA_ARGS__)
#define FAY_EACH_2_(m, s, ...) FAY_CAT(FAY_EACH_N, FAY_NUMBER_(__VA_ARGS__))(m, s, __VA_ARGS__)
#define FAY_NUMBER_(...) FAY_NUMBER_1_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)
#define FAY_NUMBER_1_(a, b, c, d, e, f, g, h, n, ...) n
#define FAY_EACH_N1(m, s, a) m(s, a)
#define FAY_EACH_N2(m, s, a, ...) m(s, a) FAY_EACH_N1(m, s, __VA_ARGS__)
#define FAY_EACH_N3(m, s, a, ...) m(s, a) FAY_EACH_N2(m, s, __VA_ARGS__)
#define FAY_EACH_N4(m, s, a, ...) m(s, a) FAY_EACH_N3(m, s, __VA_ARGS__)
#define FAY_EACH_N5(m, s, a, ...) m(s, a) FAY_EACH_N4(m, s, __VA_ARGS__)
#define FAY_EACH_N6(m, s, a, ...) m(s, a) FAY_EACH_N5(m, s, __VA_ARGS__)
#define FAY_EACH_N7(m, s, a, ...) m(s, a) FAY_EACH_N6(m, s, __VA_ARGS__)
#define FAY_EACH_N8(m, s, a, ...) m(s, a) FAY_EACH_N7(m, s, __VA_ARGS__)

#define FAY_MEMBER_(s, column) FAY_MEMBER_1_ column
#define FAY_MEMBER_1_(member, name, type, merge) member;
#define FAY_DESCRIBE_(s, column) FAY_DESCRIBE_1_(s, FAY_OPEN_ column)
#define FAY_DESCRIBE_1_(...) FAY_DESCRIBE_2_(__VA_ARGS__)
#define FAY_DESCRIBE_2_(s, member, name, type, merge)                                              \
	{ #name, type, merge, offsetof(struct s, name), sizeof(((struct s *)0)->name), { 0, 0 } },
#define FAY_COUNT_ONE_(s, column) +1

#define FAY_STATE_(name, kind, scope, rows, row_size, keys, values, size)                          \
	static const struct fay_decl_state FAY_CAT(fay_decl_state_, name) FAY_DECL_(               \
		"state") = { #name,    &name, kind,   scope, rows,                                 \
			     row_size, keys,  values, size,  FAY_CAT(fay_decl_columns_, name) }

/* ---- cells: one value, or several under one name ---- */

#define FAY_ONE_(name, ctype, type, merge, scope)                                                  \
	struct ctype name;                                                                         \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_, name)[1] FAY_DECL_(         \
		"columns") = { { #name, type, merge, 0, sizeof(struct ctype), { 0, 0 } } };        \
	FAY_STATE_(name, FAY_STATE_CELL, scope, 1, sizeof(struct ctype), 0, 1, sizeof(struct ctype))

#define FAY_COUNT(name) FAY_ONE_(name, fay_count, FAY_TYPE_U64, FAY_MERGE_COUNT, FAY_SCOPE_LOCAL)
#define FAY_SUM(name) FAY_ONE_(name, fay_sum, FAY_TYPE_I64, FAY_MERGE_SUM, FAY_SCOPE_LOCAL)
#define FAY_MIN(name) FAY_ONE_(name, fay_min, FAY_TYPE_I64, FAY_MERGE_MIN, FAY_SCOPE_LOCAL)
#define FAY_MAX(name) FAY_ONE_(name, fay_max, FAY_TYPE_I64, FAY_MERGE_MAX, FAY_SCOPE_LOCAL)
#define FAY_AVERAGE(name)                                                                          \
	FAY_ONE_(name, fay_average, FAY_TYPE_I64, FAY_MERGE_AVERAGE, FAY_SCOPE_LOCAL)
#define FAY_HISTOGRAM(name)                                                                        \
	FAY_ONE_(name, fay_histogram, FAY_TYPE_I64, FAY_MERGE_HIST_LOG2, FAY_SCOPE_LOCAL)
#define FAY_SHARED_COUNT(name)                                                                     \
	FAY_ONE_(name, fay_count, FAY_TYPE_U64, FAY_MERGE_COUNT, FAY_SCOPE_GLOBAL)
#define FAY_SHARED_SUM(name) FAY_ONE_(name, fay_sum, FAY_TYPE_I64, FAY_MERGE_SUM, FAY_SCOPE_GLOBAL)

/* One summary under one name: FAY_QUANTILES(latency) is fed by fay_quantiles(&latency, x),
 * FAY_TOP(sizes, 32) by fay_top(&sizes, x). */
#define FAY_SUMMARY_(name, type_, column_type, merge)                                              \
	typedef type_ FAY_CAT(name, _summary);                                                     \
	FAY_CAT(name, _summary) name;                                                              \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_, name)[1] FAY_DECL_(         \
		"columns") = { { #name, column_type, merge, 0, sizeof(name), { 0, 0 } } };         \
	FAY_STATE_(name, FAY_STATE_CELL, FAY_SCOPE_LOCAL, 1, sizeof(name), 0, 1, sizeof(name))
#define FAY_LOGLINEAR(name)                                                                        \
	FAY_SUMMARY_(name, struct fay_loglinear, FAY_TYPE_I64, FAY_MERGE_HIST_LOGLINEAR)
#define FAY_QUANTILES(name)                                                                        \
	FAY_SUMMARY_(name, struct fay_quantiles, FAY_TYPE_I64, FAY_MERGE_QUANTILE)
#define FAY_DISTINCT(name) FAY_SUMMARY_(name, struct fay_distinct, FAY_TYPE_U64, FAY_MERGE_DISTINCT)
#define FAY_TOP(name, k) FAY_SUMMARY_(name, FAY_TOP_STRUCT(k), FAY_TYPE_U64, FAY_MERGE_TOP)
#define FAY_TOP_FUNCTIONS(name, k)                                                                 \
	FAY_SUMMARY_(name, FAY_TOP_STRUCT(k), FAY_TYPE_FUNCTION, FAY_MERGE_TOP)
#define FAY_FIRST(name) FAY_SUMMARY_(name, struct fay_at_time, FAY_TYPE_I64, FAY_MERGE_FIRST)
#define FAY_LAST(name) FAY_SUMMARY_(name, struct fay_at_time, FAY_TYPE_I64, FAY_MERGE_LAST)
#define FAY_SAMPLE(name, k) FAY_SUMMARY_(name, FAY_SAMPLE_STRUCT(k), FAY_TYPE_U64, FAY_MERGE_SAMPLE)

/* FAY_CELL(io, FAY_VALUES(FAY_VALUE_COUNT(n), FAY_VALUE_SUM(bytes))): io.n, io.bytes. */
#define FAY_CELL(name, members)                                                                    \
	struct FAY_CAT(name, _row) {                                                               \
		FAY_EACH_(FAY_MEMBER_, _, members)                                                 \
	} name;                                                                                    \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_, name)[] FAY_DECL_(          \
		"columns") = { FAY_EACH_(FAY_DESCRIBE_, FAY_CAT(name, _row), members) };           \
	FAY_STATE_(name, FAY_STATE_CELL, FAY_SCOPE_LOCAL, 1, sizeof(name), 0,                      \
		   0 FAY_EACH_(FAY_COUNT_ONE_, _, members), sizeof(name))

/* Buckets of equal width from `low` up, one below and one above; NAME_add(x) counts. */
#define FAY_LINEAR_HISTOGRAM(name, low, width, buckets)                                            \
	struct {                                                                                   \
		uint64_t bucket[(buckets) + 2];                                                    \
	} name;                                                                                    \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_,                             \
						    name)[1] FAY_DECL_("columns") = {              \
		{ #name, FAY_TYPE_I64, FAY_MERGE_HIST_LINEAR, 0, sizeof(name), { low, width } }    \
	};                                                                                         \
	FAY_STATE_(name, FAY_STATE_CELL, FAY_SCOPE_LOCAL, 1, sizeof(name), 0, 1, sizeof(name));    \
	static inline __attribute__((unused)) void FAY_CAT(name, _add)(int64_t x)                  \
	{                                                                                          \
		uint64_t n_ = x < (low) ? 0 : ((uint64_t)x - (uint64_t)(int64_t)(low)) / (width);  \
                                                                                                   \
		n_ = x < (low) ? 0 : n_ >= (buckets) ? (buckets) + 1 : n_ + 1;                     \
		name.bucket[n_]++;                                                                 \
	}

/* ---- streams: one row an event ---- */

/* the compiler puts in fay_emit(local, state, row) */
uint64_t fay_object_emit(const void *object, const void *row);
uint64_t fay_object_flush(const void *object);

/* FAY_STREAM(opens, FAY_COLUMNS(FAY_KEY_TIME(when), FAY_KEY_STRING(path, 64))): opens_emit(&row) is
 * 0, or 1 if lost. */
#define FAY_STREAM(name, members)                                                                  \
	struct FAY_CAT(name, _row) {                                                               \
		FAY_EACH_(FAY_MEMBER_, _, members)                                                 \
	};                                                                                         \
	char name;                                                                                 \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_, name)[] FAY_DECL_(          \
		"columns") = { FAY_EACH_(FAY_DESCRIBE_, FAY_CAT(name, _row), members) };           \
	FAY_STATE_(name, FAY_STATE_STREAM, FAY_SCOPE_LOCAL, 1, sizeof(struct FAY_CAT(name, _row)), \
		   0 FAY_EACH_(FAY_COUNT_ONE_, _, members), 0, 0);                                 \
	static inline __attribute__((unused)) uint64_t FAY_CAT(name, _emit)(                       \
		const struct FAY_CAT(name, _row) * row)                                            \
	{                                                                                          \
		return fay_object_emit(&name, row);                                                \
	}

/* ---- tables ---- */

#define FAY_TABLE_PROBES 8u /* rows looked at for one key */

/* One round of a 64-bit mixer over each word (the constants of splitmix64, Steele et al., OOPSLA
 * 2014). */
static inline uint64_t fay_hash(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 31;
}

/*
 * FAY_TABLE(t, rows, FAY_KEYS(...), FAY_VALUES(...)): struct t_key, struct t_row, and t_at(key):
 * the key's row, new if need be, NULL if there is no room anywhere (counted as lost by the helper).
 * A full neighbourhood or a table over 7/8 full is handed to the aggregator and starts anew.
 */
#define FAY_TABLE(name, row_count, key_members, value_members)                                     \
	_Static_assert((row_count) >= 16 && (row_count) <= 65536 &&                                \
			       !((row_count) & ((row_count) - 1)),                                 \
		       #name ": rows must be a power of two from 16 to 65536");                    \
	struct FAY_CAT(name, _key) {                                                               \
		FAY_EACH_(FAY_MEMBER_, _, key_members)                                             \
	};                                                                                         \
	struct FAY_CAT(name, _row) {                                                               \
		uint64_t fay_tag;                                                                  \
		FAY_EACH_(FAY_MEMBER_, _, key_members)                                             \
		FAY_EACH_(FAY_MEMBER_, _, value_members)                                           \
	};                                                                                         \
	struct {                                                                                   \
		struct fay_table_header header;                                                    \
		struct FAY_CAT(name, _row) row[row_count];                                         \
	} name;                                                                                    \
	static const struct fay_decl_column FAY_CAT(fay_decl_columns_, name)[] FAY_DECL_(          \
		"columns") = { FAY_EACH_(FAY_DESCRIBE_, FAY_CAT(name, _row), key_members)          \
				       FAY_EACH_(FAY_DESCRIBE_, FAY_CAT(name, _row),               \
						 value_members) };                                 \
	FAY_STATE_(name, FAY_STATE_TABLE, FAY_SCOPE_LOCAL, row_count,                              \
		   sizeof(struct FAY_CAT(name, _row)),                                             \
		   0 FAY_EACH_(FAY_COUNT_ONE_, _, key_members),                                    \
		   0 FAY_EACH_(FAY_COUNT_ONE_, _, value_members), sizeof(name));                   \
	static inline __attribute__((unused)) struct FAY_CAT(name, _row) *                         \
		FAY_CAT(name, _at)(struct FAY_CAT(name, _key) key)                                 \
	{                                                                                          \
		enum { words_ = sizeof(key) / 8 };                                                 \
		const uint64_t *word_ = (const uint64_t *)&key;                                    \
		uint64_t tag_ = UINT64_C(0x9e3779b97f4a7c15);                                      \
		struct FAY_CAT(name, _row) *found_ = NULL;                                         \
		uint64_t at_;                                                                      \
                                                                                                   \
		for (unsigned w_ = 0; w_ < words_; w_++)                                           \
			tag_ = fay_hash(tag_, word_[w_]);                                          \
		tag_ |= 1;                                                                         \
		at_ = tag_ >> 32;                                                                  \
		_Pragma("clang loop unroll(disable)") for (unsigned i_ = 0; i_ < FAY_TABLE_PROBES; \
							   i_++)                                   \
		{                                                                                  \
			uint64_t r_ = (at_ + i_) & ((row_count) - 1);                              \
			const uint64_t *have_ = &name.row[r_].fay_tag + 1;                         \
			uint64_t differs_ = name.row[r_].fay_tag ^ tag_;                           \
                                                                                                   \
			if (!name.row[r_].fay_tag) {                                               \
				if (name.header.used >= (row_count) / 8 * 7)                       \
					break;                                                     \
				at_ = r_;                                                          \
				goto insert_;                                                      \
			}                                                                          \
			for (unsigned w_ = 0; w_ < words_; w_++)                                   \
				differs_ |= have_[w_] ^ word_[w_];                                 \
			if (!differs_)                                                             \
				return &name.row[r_];                                              \
		}                                                                                  \
		if (fay_object_flush(&name))                                                       \
			return found_;                                                             \
		at_ &= (row_count) - 1;                                                            \
	insert_:                                                                                   \
		at_ &= (row_count) - 1;                                                            \
		name.header.used++;                                                                \
		for (unsigned w_ = 0; w_ < words_; w_++)                                           \
			(&name.row[at_].fay_tag)[1 + w_] = word_[w_];                              \
		name.row[at_].fay_tag = tag_;                                                      \
		return &name.row[at_];                                                             \
	}

/* ---- working memory ---- */

/*
 * FAY_SCRATCH(struct cache, cache): an object of any type without pointers in it, one per thread,
 * zero at the start, that keeps its contents from one event to the next and is not a result.
 * FAY_SHARED_SCRATCH: one for all threads, whose members are for __atomic_*().
 */
#define FAY_SCRATCH_(type, name, scope)                                                            \
	__attribute__((aligned(64))) __typeof__(type) name;                                        \
	static const struct fay_decl_scratch FAY_CAT(fay_decl_scratch_, name)                      \
		FAY_DECL_("scratch") = { &name, scope, sizeof(name) }
#define FAY_SCRATCH(type, name) FAY_SCRATCH_(type, name, FAY_SCOPE_LOCAL)
#define FAY_SHARED_SCRATCH(type, name) FAY_SCRATCH_(type, name, FAY_SCOPE_GLOBAL)

/* ---- the traced program's memory, and text ---- */

/* 0: `size` (at most 4096) bytes read from `address` of the traced program; -1: not readable, `to`
 * is zeroed. */
int64_t fay_try_read(void *to, uint64_t size, uint64_t address);

/* Whether the thread's name is `name`, a string literal of at most 15 bytes. */
#define fay_comm_is(event, name) fay_comm_equal_(event, (const char[FAY_COMM_SIZE]){ name })
static inline int fay_comm_equal_(const struct fay_event *event, const char *name)
{
	uint64_t differs = 0;

	for (unsigned i = 0; i < FAY_COMM_SIZE; i += 8) {
		uint64_t have, want;

		__builtin_memcpy(&have, event->comm + i, 8);
		__builtin_memcpy(&want, name + i, 8);
		differs |= have ^ want;
	}
	return !differs;
}

#endif
