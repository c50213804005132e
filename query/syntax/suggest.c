/* SPDX-License-Identifier: MIT */
/*
 * "did you mean": the candidate nearest to a misspelt word by optimal string alignment distance
 * (insertion, deletion, substitution, swap of neighbours), case ignored at half a step. Words over
 * MAX_WORD characters get no suggestion. If none is near, the shortest of which the word is an
 * abbreviation: `Avg`, Average. Words of other tools are told what they are here.
 */
#include <ctype.h>
#include <string.h>

#include "syntax.h"

#define MAX_WORD 32u

static unsigned minimum(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Twice the distance, so that a difference in case alone costs 1. */
static unsigned distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned rows[3][MAX_WORD + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];
	if (n > MAX_WORD || m > MAX_WORD)
		return ~0u;
	for (size_t j = 0; j <= m; j++)
		last[j] = 2 * (unsigned)j;
	for (size_t i = 1; i <= n; i++) {
		row[0] = 2 * (unsigned)i;
		for (size_t j = 1; j <= m; j++) {
			bool alike = tolower((unsigned char)a[i - 1]) ==
				     tolower((unsigned char)b[j - 1]);
			unsigned cost = a[i - 1] == b[j - 1] ? 0 : alike ? 1 : 2;
			row[j] = minimum(last[j - 1] + cost, minimum(last[j], row[j - 1]) + 2);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = minimum(row[j], before[j - 2] + 2);
		}
		unsigned *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[m];
}

/* The word's letters come in this order in the candidate, which begins with the first of them. */
static bool abbreviates(const char *word, const char *candidate)
{
	if (strlen(word) < 3 || tolower((unsigned char)*word) != tolower((unsigned char)*candidate))
		return false;
	for (; *word && *candidate; candidate++)
		if (tolower((unsigned char)*word) == tolower((unsigned char)*candidate))
			word++;
	return !*word;
}

static const char *abbreviated(const char *word, const char *const *candidates, size_t count)
{
	const char *best = NULL;
	for (size_t i = 0; i < count; i++)
		if (abbreviates(word, candidates[i]) &&
		    (!best || strlen(candidates[i]) < strlen(best)))
			best = candidates[i];
	return best;
}

const char *fay_query_suggest(const char *word, const char *const *candidates, size_t count)
{
	const char *best = NULL;
	unsigned best_distance = ~0u;
	for (size_t i = 0; i < count; i++) {
		unsigned d = distance(word, candidates[i]);
		/* At most a third of the word may be wrong; a different case alone always counts as
		 * near. */
		size_t allowed = 2 * ((strlen(candidates[i]) + 2) / 3);
		bool only_case = strcasecmp(word, candidates[i]) == 0;
		if (d < best_distance && (only_case || d <= allowed)) {
			best = candidates[i];
			best_distance = d;
		}
	}
	return best ? best : abbreviated(word, candidates, count);
}

/* Words of SQL, bpftrace, DTrace, SystemTap. */
static const struct {
	const char *word, *here;
} others[] = {
	{ "and", "&&" },
	{ "or", "||" },
	{ "not", "!" },
	{ "like", "StartsWith(\"...\")" },
	{ "order", "orderby" },
	{ "desc", "descending" },
	{ "limit", "take 10" },
	{ "having", "where" },
	{ "printf", "select new { ... }" },
	{ "median", "Quantile(0.5, x => ...)" },
	{ "p50", "Quantile(0.5, x => ...)" },
	{ "percentile", "Quantile(0.99, x => ...)" },
	{ "p99", "Quantile(0.99, x => ...)" },
	{ "hist", "Histogram(x => ...)" },
	{ "lhist", "Histogram(x => ...)" },
	{ "quantize", "Histogram(x => ...)" },
	{ "lquantize", "Histogram(x => ...)" },
	{ "latency", "cluster.Return(...).Histogram(r => r.Duration)" },
	{ "kprobe", "cluster.Function(kernel, \"name\")" },
	{ "kretprobe", "cluster.Return(kernel, \"name\")" },
	{ "fentry", "cluster.Function(kernel, \"name\")" },
	{ "fexit", "cluster.Return(kernel, \"name\")" },
	{ "uprobe", "cluster.Function(\"module!name\")" },
	{ "uretprobe", "cluster.Return(\"module!name\")" },
	{ "profile", "cluster.Timer(10ms)" },
	{ "arg0", "Arg(0)" },
	{ "arg1", "Arg(1)" },
	{ "arg2", "Arg(2)" },
	{ "arg3", "Arg(3)" },
	{ "arg4", "Arg(4)" },
	{ "arg5", "Arg(5)" },
	{ "execname", "comm" },
	{ "probefunc", "function" },
	{ "nsecs", "time" },
	{ "timestamp", "time" },
	{ "ustack", "UserStack" },
	{ "kstack", "KernelStack" },
};

static const char *word_of_others(const char *word)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcasecmp(word, others[i].word))
			return others[i].here;
	return NULL;
}

const char *fay_query_did_you_mean(struct fay_query *query, const char *word,
				   const char *const *candidates, size_t count)
{
	const struct fay_query_options *options = query->options;
	if (options && options->candidates)
		options->candidates(options->candidates_context, word, candidates, count);
	const char *best = fay_query_suggest(word, candidates, count), *here = word_of_others(word);
	const char *text = here && !(best && !strcasecmp(word, best))
				   ? fay_query_format(query, "; that is `%s` here", here)
			   : best ? fay_query_format(query, "; did you mean `%s`?", best)
				  : "";
	return text ? text : "";
}
