/* SPDX-License-Identifier: MIT */
#include "shares.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define P QUERIES_OF_PROGRAMS
#define K QUERIES_OF_KERNEL
#define S QUERIES_OF_SAVED

/* An operator is in a query if one of the texts is; `in`: the queries of which some have it. */
static struct operator
{
	const char *name, *texts[3];
	unsigned in, pairs;
}
operators[] = {
	{ "Function", { ".Function(" }, P | S, 0 },
	{ "Return", { ".Return(" }, P | S, 0 },
	{ "Usdt", { ".Usdt(" }, P, 0 },
	{ "Syscall", { ".Syscall(" }, K | S, 0 },
	{ "file", { "file(" }, S, 0 },
	{ "columns with names of their own", { "x.when", "x.stamp", "x.more" }, S, 0 },
	{ "functions of the kernel", { "(kernel, " }, P, 0 },
	{ "process", { "process(" }, P, 0 },
	{ "machine", { "machine(" }, P, 0 },
	{ "WhenFull", { ".WhenFull(" }, P, 0 },
	{ "where", { " where ", ".Where(x" }, P | K | S, 0 },
	{ "let", { " let " }, P | K | S, 0 },
	{ "group by", { " group ", ".GroupBy(" }, P | K | S, 0 },
	{ "element", { " group x.", " group (x.", ", x => " }, P | K | S, 0 },
	{ "group of a group", { " group g ", ".GroupBy(g" }, P | K | S, 0 },
	{ "condition on groups", { " into g where g.", " let v = g.", ".Where(g" }, P | K | S, 0 },
	{ "part of a group", { "g.Where(x" }, P | K | S, 0 },
	{ "select", { " select ", ".Select(" }, P | K | S, 0 },
	{ "into behind select", { " into y" }, P | K | S, 0 },
	{ "orderby", { " orderby ", ".OrderBy(" }, P | K | S, 0 },
	{ "descending", { " descending", "Descending(" }, P | K | S, 0 },
	{ "take", { " take ", ".Take(" }, P | K | S, 0 },
	{ "skip", { " skip ", ".Skip(" }, P | K | S, 0 },
	{ "distinct", { " distinct", ".Distinct()" }, P | K | S, 0 },
	{ "fold of rows", { "(z", ").Count()" }, P | K | S, 0 },
	{ "Tumbling", { ".Tumbling(" }, P | S, 0 },
	{ "Sliding", { ".Sliding(" }, P | S, 0 },
	{ "Every", { ".Every(" }, P | K | S, 0 },
	{ "KMeans", { ".KMeans(" }, P | K | S, 0 },
	{ "Count", { "Count()" }, P | K | S, 0 },
	{ "Count of a condition", { "Count(x" }, P | K | S, 0 },
	{ "Any", { "Any(" }, P | K | S, 0 },
	{ "All", { "All(" }, P | K | S, 0 },
	{ "Sum", { "Sum(" }, P | K | S, 0 },
	{ "Min", { "Min(" }, P | K | S, 0 },
	{ "Max", { "Max(" }, P | K | S, 0 },
	{ "Average", { "Average(" }, P | K | S, 0 },
	{ "StdDev", { "StdDev(" }, P | K | S, 0 },
	{ "Histogram", { "Histogram(" }, P | K | S, 0 },
	{ "Quantile", { "Quantile(" }, P | K | S, 0 },
	{ "DistinctCount", { "DistinctCount(" }, P | K | S, 0 },
	{ "TopK", { "TopK(" }, P | K | S, 0 },
	{ "First", { "First(" }, P | K | S, 0 },
	{ "Last", { "Last(" }, P | K | S, 0 },
	{ "real numbers", { "1.0 * " }, P | K | S, 0 },
	{ "time", { "x.time" }, P | S, 0 },
	{ "pid", { "x.pid" }, P | K | S, 0 },
	{ "tid", { "x.tid" }, P | K | S, 0 },
	{ "cpu", { "x.cpu" }, P | K | S, 0 },
	{ "comm", { "x.comm" }, P | K | S, 0 },
	{ "function", { "x.function" }, P | K | S, 0 },
	{ "module", { "x.module" }, P, 0 },
	{ "cycles", { "x.cycles" }, P | S, 0 },
	{ "Duration", { "x.Duration" }, P | S, 0 },
	{ "ReturnValue", { "x.ReturnValue" }, P | K | S, 0 },
	{ "Failed", { "x.Failed" }, P | K | S, 0 },
	{ "Arg", { "x.Arg(" }, P | K | S, 0 },
	{ "Stack", { "x.Stack(" }, P, 0 },
	{ "UserStack", { "x.UserStack" }, P, 0 },
	{ "Caller", { "x.Caller" }, P, 0 },
	{ "StartsWith", { ".StartsWith(" }, P | K | S, 0 },
	{ "EndsWith", { ".EndsWith(" }, P | K | S, 0 },
	{ "Contains", { ".Contains(" }, P | K | S, 0 },
	{ "Length", { ".Length" }, P | K | S, 0 },
	{ "Now.Add", { "Now.Add" }, P | S, 0 },
	{ "times computed with", { "x.time - Now" }, P | S, 0 },
	{ "? :", { " ? " }, P | K | S, 0 },
	{ "&&", { " && " }, P | K | S, 0 },
	{ "||", { " || " }, P | K | S, 0 },
	{ "== !=", { " == ", " != " }, P | K | S, 0 },
	{ "< <= > >=", { " < ", " <= ", " >= " }, P | K | S, 0 },
	{ "+ -", { " + ", " - " }, P | K | S, 0 },
	{ "*", { " * " }, P | K | S, 0 },
	{ "/ %", { " / ", " % " }, P | K | S, 0 },
	{ "<< >> >>>", { " << ", " >> ", " >>> " }, P | K | S, 0 },
	{ "& | ^", { " & ", " | ", " ^ " }, P | K | S, 0 },
	{ "! ~", { "(!", "(~" }, P | K | S, 0 },
};
#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

void count_operators(const char *text, unsigned pairs)
{
	for (size_t i = 0; i < OPERATORS; i++) {
		bool there = false;
		for (unsigned t = 0; t < 3 && operators[i].texts[t]; t++)
			there |= strstr(text, operators[i].texts[t]) != NULL;
		operators[i].pairs += there ? pairs : 0;
	}
}

const char *print_shares(enum queries queries)
{
	const char *missing = NULL, *comma = "";
	printf("pairs that have it:");
	for (size_t i = 0; i < OPERATORS; i++) {
		bool wanted = operators[i].in & queries;
		if (operators[i].pairs || wanted) {
			printf("%s %s %u", comma, operators[i].name, operators[i].pairs);
			comma = ",";
		}
		if (wanted && !operators[i].pairs && !missing)
			missing = operators[i].name;
	}
	printf("\n");
	return missing;
}
