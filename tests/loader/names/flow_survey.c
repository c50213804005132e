/* SPDX-License-Identifier: MIT */
/*
 * flow_survey [-e] [-v] FILE...: of how many of a file's functions all exits can be patched, or the
 * entry with them (-e), of how many more they are known, so that the kernel may trap there, and why
 * they cannot be patched. -v names these. The analysis is the loader's, on
 * the file as it would be mapped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fay/bpf.h"
#include "loader/flow/flow.h"
#include "loader/names/target.h"

#define REASONS_MAX 64u

struct survey {
	struct fay_target *target;
	struct fay_module *module;
	struct fay_taken *taken;
};

static size_t read_bytes(void *context, uint64_t address, void *to, size_t size)
{
	const struct fay_object *object = ((struct survey *)context)->module->object;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct fay_segment *segment = &object->segments[i];
		uint64_t at = address - segment->vaddr;
		ssize_t got;

		if (at >= segment->file_size)
			continue;
		if (size > segment->file_size - at)
			size = (size_t)(segment->file_size - at);
		got = pread(object->fd, to, size, (off_t)(segment->offset + at));
		return got < 0 ? 0 : (size_t)got;
	}
	return 0;
}

static enum fay_flow_place place(void *context, uint64_t address, uint64_t *start, uint64_t *end)
{
	return fay_target_place(((struct survey *)context)->target, address, start, end);
}

static const uint64_t *taken(void *context, enum fay_taken_kind kind, uint64_t start, uint64_t end,
			     size_t *count)
{
	struct survey *survey = context;

	return survey->taken ? fay_taken_in(survey->taken, kind, start, end, count) : NULL;
}

struct tally {
	char reason[FAY_REASON_MAX], example[100];
	size_t count;
};

static int by_count(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	return x->count > y->count ? -1 : x->count < y->count;
}

/* Reasons without their numbers. */
static void count_reason(struct tally *tallies, const char *reason, const char *name)
{
	char plain[FAY_REASON_MAX];
	size_t length = 0, i = 0;

	for (const char *at = reason; *at && length + 2 < sizeof(plain); at++) {
		if (at[0] == '0' && at[1] == 'x') {
			at += 1 + strspn(at + 2, "0123456789abcdef");
			plain[length++] = 'N';
		} else {
			plain[length++] = *at;
		}
	}
	plain[length] = 0;
	while (i < REASONS_MAX && tallies[i].count && strcmp(tallies[i].reason, plain))
		i++;
	if (i == REASONS_MAX)
		return;
	snprintf(tallies[i].reason, sizeof(tallies[i].reason), "%s", plain);
	if (!tallies[i].count++)
		snprintf(tallies[i].example, sizeof(tallies[i].example), "%.99s", name);
}

static void survey_file(const char *path, bool entry, bool verbose)
{
	struct tally tallies[REASONS_MAX] = { 0 };
	struct fay_function_list list = { 0 };
	struct survey survey = { 0 };
	struct timespec begin, end;
	struct fay_error error;
	size_t parts = 0, whole = 0, known = 0, exits = 0, windows = 0, blocks = 0;

	if (fay_target_open_file(path, &survey.target, &error) ||
	    fay_target_find(survey.target, "*!*", &list, &error)) {
		printf("%s: %s\n", path, error.message);
		return;
	}
	survey.module = &survey.target->modules[0];
	survey.taken = fay_taken_create(survey.module->object->elf);
	if (survey.taken)
		fay_object_find_parts(survey.module->object, survey.taken);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t i = 0; i < list.count; i++) {
		const struct fay_flow_program program = {
			.context = &survey,
			.keeps_faults = survey.taken && fay_taken_faults(survey.taken),
			.read = read_bytes,
			.place = place,
			.taken = taken
		};
		const struct fay_function *function = &list.items[i];
		struct fay_flow flow;
		uint64_t from, to;

		if (!fay_flow_read(&program, function->address, function->address + function->size,
				   entry, &flow))
			exit(1);
		bool part = fay_target_place(survey.target, function->address, &from, &to) ==
			    FAY_PLACE_PART;

		if (part)
			parts++;
		else if (*flow.reason)
			count_reason(tallies, flow.reason, function->name);
		else
			whole++;
		known += !part && *flow.reason && flow.exit_count &&
			 flow.exit_count <= FAY_TRAP_TOGETHER;
		if (*flow.reason && verbose)
			printf("%s%s %s\n", function->name, part ? " (a part)" : "", flow.reason);
		else if (part && verbose)
			printf("%s (a part) ok\n", function->name);
		exits += flow.exit_count;
		windows += flow.window_count;
		blocks += flow.block_count;
		fay_flow_deinit(&flow);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%s: %zu functions, and %zu parts of some; %zu (%.2f %%) %s; ", path,
	       list.count - parts, parts, whole,
	       100.0 * (double)whole / (double)(list.count - parts),
	       entry ? "with entry" : "without entry");
	printf("%zu more by traps; ", known);
	printf("%zu exits, %zu windows, %zu blocks; %.1f ms%s\n", exits, windows, blocks,
	       1e3 * (double)(end.tv_sec - begin.tv_sec) +
		       1e-6 * (double)(end.tv_nsec - begin.tv_nsec),
	       survey.taken ? "" : "; its tables are not understood");
	qsort(tallies, REASONS_MAX, sizeof(*tallies), by_count);
	for (size_t i = 0; i < REASONS_MAX && tallies[i].count; i++)
		printf("  %6zu %s (%s)\n", tallies[i].count, tallies[i].reason, tallies[i].example);
	fay_taken_destroy(survey.taken);
	fay_function_list_deinit(&list);
	fay_target_close(survey.target);
}

int main(int argc, char **argv)
{
	bool entry = false, verbose = false;
	int option;

	while ((option = getopt(argc, argv, "ev")) > 0) {
		entry |= option == 'e';
		verbose |= option == 'v';
	}
	for (int i = optind; i < argc; i++)
		survey_file(argv[i], entry, verbose);
	return 0;
}
