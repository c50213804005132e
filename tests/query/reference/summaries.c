/* SPDX-License-Identifier: MIT */
#include "summaries.h"

#include <math.h>

const char *const aggregate_names[KINDS] = { "Count",     "Count",    "Sum",          "Min",
					     "Max",       "First",    "Last",         "Average",
					     "Any",       "All",      "StdDev",       "TopK",
					     "Histogram", "Quantile", "DistinctCount" };

static struct tally pool[16384];
static size_t pooled;

void forget_tallies(void)
{
	pooled = 0;
}

/* How often each of the values came, which `value_of` makes of a sample's. */
static struct tallies tally(const struct sample *samples, size_t count,
			    int64_t (*value_of)(int64_t))
{
	struct tally *tallies = pool + pooled;
	struct tallies list = { .total = count, .tallies = tallies };
	for (size_t i = 0; i < count; i++) {
		int64_t value = value_of(samples[i].value);
		size_t at = 0;
		while (at < list.count && tallies[at].value != value)
			at++;
		assert_true(pooled + at < sizeof(pool) / sizeof(*pool));
		if (at == list.count)
			tallies[list.count++] = (struct tally){ .value = value };
		tallies[at].count++;
	}
	pooled += list.count;
	return list;
}

static int64_t itself(int64_t value)
{
	return value;
}

/* 0 for what is not above 0, else how many binary digits it has. */
static int64_t bucket(int64_t value)
{
	int64_t digits = 0;
	for (; value > 0; value /= 2)
		digits++;
	return digits;
}

/* --- how many are different --- */

#define REGISTERS 2048

/* Splitmix64's output function (Steele et al., OOPSLA 2014) of a state that is one step on: in
 * which register a value lies. */
static unsigned register_of(uint64_t value)
{
	uint64_t z = value + 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (unsigned)((z ^ (z >> 31)) % REGISTERS);
}

/* Linear counting (Whang et al., TODS 1990), which estimators for HyperLogLog agree with where most
 * registers are empty. */
static double linear_count(size_t occupied)
{
	return REGISTERS * log((double)REGISTERS / (double)(REGISTERS - occupied));
}

/* What may come out if so many registers are occupied, from `least` to `most`. */
static struct cell estimate(size_t exact, size_t least, size_t most)
{
	static const double rounded = 0.75;
	return (struct cell){ .kind = ESTIMATE,
			      .exact = exact,
			      .least = (int64_t)ceil(linear_count(least) - rounded),
			      .integer = (int64_t)floor(linear_count(most) + rounded) };
}

/* Which registers the values occupy is known, so that an estimate that misses one of them, or has
 * one too many, is found out. */
static struct cell distinct_numbers(const struct sample *samples, size_t count)
{
	bool occupied[REGISTERS] = { false };
	size_t before = pooled, exact = tally(samples, count, itself).count, registers = 0;
	pooled = before;
	for (size_t i = 0; i < count; i++)
		occupied[register_of((uint64_t)samples[i].value)] = true;
	for (size_t i = 0; i < REGISTERS; i++)
		registers += occupied[i];
	return estimate(exact, registers, registers);
}

/* Which ones is not known: of n values some n^2 / 2m meet in a register, more than six standard
 * deviations above it hardly ever. */
struct cell distinct_names(const struct sample *samples, size_t count)
{
	size_t before = pooled, exact = tally(samples, count, itself).count;
	double meet = (double)(exact * exact) / (2.0 * REGISTERS);
	size_t most = (size_t)(meet + 6 * sqrt(meet) + 3);
	pooled = before;
	return estimate(exact, !exact ? 0 : most < exact ? exact - most : 1, exact);
}

/* --- exact ones --- */

/* The average, which does not wrap. */
struct cell mean_of(const struct sample *samples, size_t count)
{
	__int128 sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += samples[i].value;
	return count ? real_cell((double)((__float128)sum / (__float128)count))
		     : (struct cell){ NONE };
}

/* Of n values with the sum s the root of the sum of (n x - s)^2 / n^3; n x - s is exact, and
 * squares of one sign lose no digits when they are added. */
static struct cell deviation(const struct sample *samples, size_t count)
{
	__int128 sum = 0;
	long double squares = 0, n = (long double)count;
	for (size_t i = 0; i < count; i++)
		sum += samples[i].value;
	for (size_t i = 0; i < count; i++) {
		long double off = (long double)((__int128)count * samples[i].value - sum);
		squares += off * off;
	}
	return count ? real_cell((double)(sqrtl(squares / n) / n)) : (struct cell){ NONE };
}

static int compare_values(const void *left, const void *right)
{
	int64_t x = *(const int64_t *)left, y = *(const int64_t *)right;
	return (x > y) - (x < y);
}

/* The value below which the given part of the others lies, within 1/32 of it; what is negative
 * counts as 0. */
static struct cell quantile(unsigned percent, const struct sample *samples, size_t count)
{
	static int64_t values[4096];
	assert_true(count <= sizeof(values) / sizeof(*values));
	if (!count)
		return (struct cell){ NONE };
	for (size_t i = 0; i < count; i++)
		values[i] = samples[i].value < 0 ? 0 : samples[i].value;
	qsort(values, count, sizeof(*values), compare_values);
	double exact = (double)values[percent * (count - 1) / 100];
	return (struct cell){ .kind = REAL, .real = exact, .slack = exact / 32 };
}

/* --- those of one pass --- */

struct pass {
	uint64_t matches, sum;
	int64_t least, most;
	const struct sample *first, *last;
};

static struct pass pass_over(const struct sample *samples, size_t count)
{
	struct pass p = {
		.least = INT64_MAX, .most = INT64_MIN, .first = samples, .last = samples
	};
	for (const struct sample *s = samples; s < samples + count; s++) {
		p.matches += s->value != 0;
		p.sum += (uint64_t)s->value;
		p.least = s->value < p.least ? s->value : p.least;
		p.most = s->value > p.most ? s->value : p.most;
		/* of equal times the larger value, as it lies in memory */
		if (s->time < p.first->time ||
		    (s->time == p.first->time && (uint64_t)s->value > (uint64_t)p.first->value))
			p.first = s;
		if (s->time > p.last->time ||
		    (s->time == p.last->time && (uint64_t)s->value > (uint64_t)p.last->value))
			p.last = s;
	}
	return p;
}

static struct cell simple(enum kind kind, const struct sample *samples, size_t count)
{
	struct pass p = pass_over(samples, count);
	switch (kind) {
	case COUNT: return integer_cell((int64_t)count);
	case COUNT_IF: return integer_cell((int64_t)p.matches);
	case SUM: return integer_cell((int64_t)p.sum);
	case MIN: /* the extreme itself reads as no value: docs/decisions/0004 */
		return p.least == INT64_MAX ? (struct cell){ NONE } : integer_cell(p.least);
	case MAX: return p.most == INT64_MIN ? (struct cell){ NONE } : integer_cell(p.most);
	case FIRST: return count ? integer_cell(p.first->value) : (struct cell){ NONE };
	case LAST: return count ? integer_cell(p.last->value) : (struct cell){ NONE };
	case AVERAGE: return mean_of(samples, count);
	case ANY: return integer_cell(p.matches != 0);
	default: return integer_cell(p.matches == count);
	}
}

struct cell aggregate_samples(enum kind kind, unsigned percent, const struct sample *samples,
			      size_t count)
{
	switch (kind) {
	case STDDEV: return deviation(samples, count);
	case TOP: return (struct cell){ .kind = TOP_LIST, .list = tally(samples, count, itself) };
	case HISTOGRAM:
		return (struct cell){ .kind = HISTOGRAM_LIST,
				      .list = tally(samples, count, bucket) };
	case QUANTILE: return quantile(percent, samples, count);
	case DISTINCT: return distinct_numbers(samples, count);
	default: return simple(kind, samples, count);
	}
}
