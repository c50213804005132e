/* SPDX-License-Identifier: MIT */
#include "shares.h"

#include <stdio.h>
#include <string.h>

/* An operator is in a query if one of the texts is. */
static struct operator {
	const char *name, *texts[3];
	bool not_kernel;
	unsigned pairs;
} operators[] = {
	{"Function", {".Function("}, true, 0},
	{"Return", {".Return("}, true, 0},
	{"Usdt", {".Usdt("}, true, 0},
	{"Syscall", {".Syscall("}, false, 0},
	{"functions of the kernel", {"(kernel, "}, true, 0},
	{"process", {"process("}, true, 0},
	{"machine", {"machine("}, true, 0},
	{"WhenFull", {".WhenFull("}, true, 0},
	{"where", {" where ", ".Where(x"}, false, 0},
	{"let", {" let "}, false, 0},
	{"group by", {" group ", ".GroupBy("}, false, 0},
	{"element", {" group x.", " group (x.", ", x => "}, false, 0},
	{"group of a group", {" group g ", ".GroupBy(g"}, false, 0},
	{"condition on groups", {" into g where g.", " let v = g.", ".Where(g"}, false, 0},
	{"part of a group", {"g.Where(x"}, false, 0},
	{"select", {" select ", ".Select("}, false, 0},
	{"into behind select", {" into y"}, false, 0},
	{"orderby", {" orderby ", ".OrderBy("}, false, 0},
	{"descending", {" descending", "Descending("}, false, 0},
	{"take", {" take ", ".Take("}, false, 0},
	{"skip", {" skip ", ".Skip("}, false, 0},
	{"distinct", {" distinct", ".Distinct()"}, false, 0},
	{"fold of rows", {"(z", ").Count()"}, false, 0},
	{"Tumbling", {".Tumbling("}, true, 0},
	{"Sliding", {".Sliding("}, true, 0},
	{"Every", {".Every("}, false, 0},
	{"KMeans", {".KMeans("}, false, 0},
	{"Count", {"Count()"}, false, 0},
	{"Count of a condition", {"Count(x"}, false, 0},
	{"Any", {"Any("}, false, 0},
	{"All", {"All("}, false, 0},
	{"Sum", {"Sum("}, false, 0},
	{"Min", {"Min("}, false, 0},
	{"Max", {"Max("}, false, 0},
	{"Average", {"Average("}, false, 0},
	{"StdDev", {"StdDev("}, false, 0},
	{"Histogram", {"Histogram("}, false, 0},
	{"Quantile", {"Quantile("}, false, 0},
	{"DistinctCount", {"DistinctCount("}, false, 0},
	{"TopK", {"TopK("}, false, 0},
	{"First", {"First("}, false, 0},
	{"Last", {"Last("}, false, 0},
	{"real numbers", {"1.0 * "}, false, 0},
	{"time", {"x.time"}, true, 0},
	{"pid", {"x.pid"}, false, 0},
	{"tid", {"x.tid"}, false, 0},
	{"cpu", {"x.cpu"}, false, 0},
	{"comm", {"x.comm"}, false, 0},
	{"function", {"x.function"}, false, 0},
	{"module", {"x.module"}, true, 0},
	{"cycles", {"x.cycles"}, true, 0},
	{"Duration", {"x.Duration"}, true, 0},
	{"ReturnValue", {"x.ReturnValue"}, false, 0},
	{"Failed", {"x.Failed"}, false, 0},
	{"Arg", {"x.Arg("}, false, 0},
	{"Stack", {"x.Stack("}, true, 0},
	{"UserStack", {"x.UserStack"}, true, 0},
	{"Caller", {"x.Caller"}, true, 0},
	{"StartsWith", {".StartsWith("}, false, 0},
	{"EndsWith", {".EndsWith("}, false, 0},
	{"Contains", {".Contains("}, false, 0},
	{"Length", {".Length"}, false, 0},
	{"Now.Add", {"Now.Add"}, true, 0},
	{"times computed with", {"x.time - Now"}, true, 0},
	{"? :", {" ? "}, false, 0},
	{"&&", {" && "}, false, 0},
	{"||", {" || "}, false, 0},
	{"== !=", {" == ", " != "}, false, 0},
	{"< <= > >=", {" < ", " <= ", " >= "}, false, 0},
	{"+ -", {" + ", " - "}, false, 0},
	{"*", {" * "}, false, 0},
	{"/ %", {" / ", " % "}, false, 0},
	{"<< >> >>>", {" << ", " >> ", " >>> "}, false, 0},
	{"& | ^", {" & ", " | ", " ^ "}, false, 0},
	{"! ~", {"(!", "(~"}, false, 0},
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

const char *print_shares(bool kernel)
{
	const char *missing = NULL;
	printf("pairs that have it:");
	const char *comma = "";
	for (size_t i = 0; i < OPERATORS; i++) {
		bool wanted = kernel ? !operators[i].not_kernel : strcmp(operators[i].name, "Syscall") != 0;
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
