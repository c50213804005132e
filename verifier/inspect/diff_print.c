/* SPDX-License-Identifier: MIT */
/* A difference as people read it, and as JSON (docs/cli-json.md). Names are the images'. */
#include <string.h>

#include "diff.h"
#include "verifier/explain/report.h"

static const char *const function_changes[] = { "new", "gone", "changed" };

static void print_change(FILE *out, const struct fay_change *change)
{
	fputs(change->grew ? "  + " : "  ~ ", out);
	if (*change->where)
		fay_report_text(out, "", change->where, false);
	fprintf(out, "%s%s:", *change->where ? ", " : "", change->kind);
	if (*change->before)
		fay_report_text(out, " ", change->before, false);
	fay_report_text(out, *change->before ? " -> " : " ", change->after, false);
	fputc('\n', out);
}

void fay_diff_print(FILE *out, const char *old, const char *new, const struct fay_diff *d)
{
	fay_report_text(out, "", old, false);
	fay_report_text(out, " -> ", new, false);
	fprintf(out, ": %s\n", d->grew ? "capabilities grew" : "no capability grew");
	for (uint32_t i = 0; i < d->change_count; i++)
		print_change(out, &d->changes[i]);
	for (uint32_t i = 0; i < d->function_count; i++) {
		fay_report_text(out, "  function ", d->functions[i].name, false);
		fprintf(out, ": %s\n", function_changes[d->functions[i].change]);
	}
}

static void put_text(FILE *out, const char *key, const char *text)
{
	fputs(key, out);
	fay_report_string_json(out, text);
}

void fay_diff_print_json(FILE *out, const char *old, const char *new, const struct fay_diff *d)
{
	put_text(out, "{\"version\":1,\"old\":", old);
	put_text(out, ",\"new\":", new);
	fprintf(out, ",\"grew\":%s,\"changes\":[", d->grew ? "true" : "false");
	for (uint32_t i = 0; i < d->change_count; i++) {
		const struct fay_change *change = &d->changes[i];

		fprintf(out, "%s{\"kind\":\"%s\",\"grew\":%s", i ? "," : "", change->kind,
			change->grew ? "true" : "false");
		put_text(out, ",\"where\":", change->where);
		put_text(out, ",\"before\":", change->before);
		put_text(out, ",\"after\":", change->after);
		fputc('}', out);
	}
	fputs("],\"functions\":[", out);
	for (uint32_t i = 0; i < d->function_count; i++) {
		put_text(out, i ? ",{\"name\":" : "{\"name\":", d->functions[i].name);
		fprintf(out, ",\"change\":\"%s\"}", function_changes[d->functions[i].change]);
	}
	fputs("]}\n", out);
}
