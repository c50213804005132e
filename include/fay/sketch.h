/* SPDX-License-Identifier: MIT */
/*
 * Summaries of streams in bounded memory: what probes feed, and what it means. Included by
 * fay/probe.h; plain C, so that tests and other producers of images can use the same code. All zero
 * bytes is "nothing yet"; how two partials become one is said in fay/image.h.
 *
 *   struct fay_loglinear   histogram with 8 equal buckets in each power of two: a value is known to
 *			    1/8
 *   struct fay_quantiles   quantiles: 16 buckets in each power of two, so the middle of a bucket is
 *			    within 1/32 (3.2 %) of each value in it; any quantile is therefore
 *			    within 3.2 % of the exact one (Masson et al., DDSketch, VLDB 2019, for
 *			    the argument)
 *   struct fay_distinct    how many different values: HyperLogLog with 2048 registers (Flajolet et
 *			    al., AofA 2007), standard error 1.04 / sqrt(2048) = 2.3 %
 *   FAY_TOP_STRUCT(k)      the most frequent values: Misra and Gries' k counters, merged as in
 *			    Agarwal et al., Mergeable Summaries, PODS 2012. Of n values, each count
 *			    is too low by at most `error`, which is at most n / (k + 1), and never
 *			    too high; so every value that makes up more than 1 / (k + 1) of all is
 *			    there
 *   FAY_SAMPLE_STRUCT(k)   k values chosen uniformly from all (those with the k largest random
 *			    numbers), or all if there are fewer
 *   struct fay_at_time     the first or the last value, by time
 */
#ifndef FAY_SKETCH_H
#define FAY_SKETCH_H

#include <stdint.h>

#include "fay/image.h"

/* A mixer of 64 bits, one to one (splitmix64's: Steele et al., OOPSLA 2014). */
static inline uint64_t fay_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Bucket of x with 2^bits buckets in each power of two: 0 for x <= 0, x itself below 2^bits. At
 * most ((64 - bits) << bits) - 1. */
static inline uint32_t fay_loglinear_bucket(int64_t x, unsigned bits)
{
	uint64_t value = x < 0 ? 0 : (uint64_t)x;
	unsigned exponent = 63u - (unsigned)__builtin_clzll(value | 1);

	if (exponent < bits)
		return (uint32_t)value;
	exponent -= bits;
	return ((exponent + 1) << bits) + ((uint32_t)(value >> exponent) & ((1u << bits) - 1));
}

struct fay_loglinear {
	uint64_t bucket[FAY_HIST_LOGLINEAR_BUCKETS];
};
struct fay_quantiles {
	uint32_t bucket[FAY_QUANTILE_BUCKETS];
};
struct fay_distinct {
	uint8_t rank[2048];
};
struct fay_top {
	uint64_t total, error;
};
struct fay_pair {
	uint64_t key, count;
};
struct fay_at_time {
	uint64_t time;
	uint64_t value;
};
#define FAY_TOP_STRUCT(k)                                                                          \
	struct {                                                                                   \
		struct fay_top head;                                                               \
		struct fay_pair entry[k];                                                          \
	}
#define FAY_SAMPLE_STRUCT(k)                                                                       \
	struct {                                                                                   \
		struct fay_pair entry[k];                                                          \
	}

static inline void fay_loglinear(struct fay_loglinear *h, int64_t x)
{
	h->bucket[fay_loglinear_bucket(x, FAY_HIST_LOGLINEAR_BITS)]++;
}

static inline void fay_quantiles(struct fay_quantiles *q, int64_t x)
{
	uint32_t *count = &q->bucket[fay_loglinear_bucket(x, FAY_QUANTILE_BITS)];

	*count += *count != UINT32_MAX;
}

static inline void fay_distinct(struct fay_distinct *d, uint64_t x)
{
	uint64_t hash = fay_mix(x + UINT64_C(0x9e3779b97f4a7c15));
	uint8_t rank = (uint8_t)(1 + __builtin_ctzll(hash >> 11 | UINT64_C(1) << 53));
	uint8_t *held = &d->rank[hash & 2047];

	if (*held < rank)
		*held = rank;
}

/* Misra and Gries: a value that is there counts; one that is not takes a free place, or every count
 * goes down by one. */
static inline void fay_top_add(struct fay_top *head, struct fay_pair *entry, unsigned k,
			       uint64_t key)
{
	unsigned empty = k;

	head->total++;
	for (unsigned i = 0; i < k; i++) {
		if (entry[i].count && entry[i].key == key) {
			entry[i].count++;
			return;
		}
		if (!entry[i].count)
			empty = i;
	}
	if (empty < k) {
		entry[empty].key = key;
		entry[empty].count = 1;
		return;
	}
	head->error++;
	for (unsigned i = 0; i < k; i++)
		entry[i].count--;
}
#define fay_top(t, x)                                                                              \
	fay_top_add(&(t)->head, (t)->entry, sizeof((t)->entry) / sizeof((t)->entry[0]),            \
		    (uint64_t)(x))

/* Keeps the k largest of `random`, in order; count holds the random number, made odd so that it is
 * not 0. */
static inline void fay_sample_add(struct fay_pair *entry, unsigned k, uint64_t value,
				  uint64_t random)
{
	struct fay_pair carried = { value, random | 1 };

	if (carried.count <= entry[k - 1].count)
		return;
	for (unsigned i = 0; i < k; i++)
		if (carried.count > entry[i].count) {
			struct fay_pair before = entry[i];

			entry[i] = carried;
			carried = before;
		}
}
/* The random number is made of the event: its time stamps, thread and arguments. */
#define fay_sample(s, event, x)                                                                    \
	fay_sample_add(                                                                            \
		(s)->entry, sizeof((s)->entry) / sizeof((s)->entry[0]), (uint64_t)(x),             \
		fay_mix((event)->cycles ^ fay_mix((event)->time ^ (uint64_t)(event)->tid << 40)))

/* Times are kept so that the larger wins and zero is "nothing yet"; of equal times the larger
 * value. */
static inline void fay_first(struct fay_at_time *f, uint64_t time, uint64_t value)
{
	if (~time > f->time || (~time == f->time && value > f->value)) {
		f->time = ~time;
		f->value = value;
	}
}

static inline void fay_last(struct fay_at_time *l, uint64_t time, uint64_t value)
{
	if (time > l->time || (time == l->time && value > l->value)) {
		l->time = time;
		l->value = value;
	}
}

#endif
