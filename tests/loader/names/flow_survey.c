/* SPDX-License-Identifier: MIT */
/*
 * flow_survey [-e] [-v] FILE...: of how many of a file's functions all exits can be patched, or the
 * entry with them (-e), and why not of the others. -v names these. The analysis is the loader's, on
 * the file as it would be mapped. What has no symbol, whose start nothing calls and no data names,
 * and that is jumped to from elsewhere behind its start is a part of a function.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loader/bisect.h"
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

/* Direct calls (e8) and direct jumps of 32 bits (e9, 0f 8x) in the largest piece of code. */
struct branches {
	uint64_t start;
	size_t size;
	uint8_t *called; /* a bit for each byte: a call leads there */
	struct jump {
		uint64_t from, to;
	} *jumps; /* by where they lead */
	size_t jump_count;
};

static int by_target(const void *a, const void *b)
{
	const struct jump *x = a, *y = b;

	return x->to < y->to ? -1 : x->to > y->to;
}

static void find_branches(const struct survey *survey, struct branches *branches)
{
	const struct fay_object *object = survey->module->object;
	const struct fay_segment *text = NULL;
	uint8_t *bytes;

	for (size_t i = 0; i < object->segment_count; i++)
		if (object->segments[i].executable &&
		    (!text || object->segments[i].file_size > text->file_size))
			text = &object->segments[i];
	if (!text)
		return;
	branches->start = text->vaddr;
	branches->size = text->file_size;
	bytes = malloc(branches->size + 1);
	branches->called = calloc(branches->size / 8 + 1, 1);
	branches->jumps = malloc((branches->size + 1) * sizeof(*branches->jumps));
	if (!bytes || !branches->called || !branches->jumps ||
	    pread(object->fd, bytes, branches->size, (off_t)text->offset) !=
		    (ssize_t)branches->size)
		exit(1);
	for (size_t i = 0; i + 6 <= branches->size; i++) {
		bool two = bytes[i] == 0x0f && (bytes[i + 1] & 0xf0) == 0x80;
		int32_t distance;
		uint64_t to;

		if (!two && bytes[i] != 0xe8 && bytes[i] != 0xe9)
			continue;
		memcpy(&distance, bytes + i + 1 + two, 4);
		to = i + 5 + two + (uint64_t)(int64_t)distance;
		if (to >= branches->size)
			continue;
		if (bytes[i] == 0xe8)
			branches->called[to / 8] |= (uint8_t)(1u << to % 8);
		else
			branches->jumps[branches->jump_count++] =
				(struct jump){ branches->start + i, branches->start + to };
	}
	qsort(branches->jumps, branches->jump_count, sizeof(*branches->jumps), by_target);
	free(bytes);
}

static bool is_part(const struct survey *survey, const struct branches *branches,
		    const struct fay_function *function)
{
	uint64_t start = function->address, end = start + function->size, from, to;
	uint64_t at = start - branches->start;
	size_t count = 0;

	if (at >= branches->size || branches->called[at / 8] >> at % 8 & 1 ||
	    fay_target_place(survey->target, start, &from, &to) == FAY_PLACE_FUNCTION)
		return false;
	if (survey->taken)
		fay_taken_in(survey->taken, FAY_TAKEN_WORD, start, start + 1, &count);
	if (count)
		return false;
	for (size_t i = FAY_COUNT_BELOW(branches->jumps, branches->jump_count, to, start + 1);
	     i < branches->jump_count && branches->jumps[i].to < end; i++)
		if (branches->jumps[i].from < start || branches->jumps[i].from >= end)
			return true;
	return false;
}

static void survey_file(const char *path, bool entry, bool verbose)
{
	struct tally tallies[REASONS_MAX] = { 0 };
	struct fay_function_list list = { 0 };
	struct survey survey = { 0 };
	struct timespec begin, end;
	struct fay_error error;
	struct branches branches = { 0 };
	size_t parts = 0, whole = 0, exits = 0, windows = 0, blocks = 0;

	if (fay_target_open_file(path, &survey.target, &error) ||
	    fay_target_find(survey.target, "*!*", &list, &error)) {
		printf("%s: %s\n", path, error.message);
		return;
	}
	survey.module = &survey.target->modules[0];
	survey.taken = fay_taken_create(survey.module->object->elf);
	find_branches(&survey, &branches);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t i = 0; i < list.count; i++) {
		const struct fay_flow_program program = {
			&survey,    false, survey.taken && fay_taken_faults(survey.taken),
			read_bytes, place, taken
		};
		const struct fay_function *function = &list.items[i];
		struct fay_flow flow;

		if (!fay_flow_read(&program, function->address, function->address + function->size,
				   entry, &flow))
			exit(1);
		if (is_part(&survey, &branches, function))
			parts++;
		else if (*flow.reason)
			count_reason(tallies, flow.reason, function->name);
		else
			whole++;
		if (*flow.reason && verbose)
			printf("%s %s\n", function->name, flow.reason);
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
	printf("%zu exits, %zu windows, %zu blocks; %.1f ms%s\n", exits, windows, blocks,
	       1e3 * (double)(end.tv_sec - begin.tv_sec) +
		       1e-6 * (double)(end.tv_nsec - begin.tv_nsec),
	       survey.taken ? "" : "; its tables are not understood");
	qsort(tallies, REASONS_MAX, sizeof(*tallies), by_count);
	for (size_t i = 0; i < REASONS_MAX && tallies[i].count; i++)
		printf("  %6zu %s (%s)\n", tallies[i].count, tallies[i].reason, tallies[i].example);
	free(branches.called);
	free(branches.jumps);
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
