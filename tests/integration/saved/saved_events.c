/* SPDX-License-Identifier: MIT */
#include "saved_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fay/image.h"

static struct saved_reader readers[2];
static uint32_t streams[2]; /* by side */
static bool paired;
struct event events[EVENTS_MAX];
size_t event_count;

void fail(int code, const char *what, const char *which)
{
	fprintf(stderr, "saved_reference: %s%s\n", what, which);
	exit(code);
}

/* --- values
 * -------------------------------------------------------------------------------------------------
 * */

struct column find_column(const char *name)
{
	struct column c = { .side = paired && name[0] == 'r' };
	for (unsigned f = 0; f < 2; f++)
		if (!(c.is[f] = saved_reader_column(&readers[f], streams[c.side],
						    paired ? name + 2 : name)))
			fail(1, "no column ", name);
	return c;
}

int64_t number(const struct column *c, const struct event *e, unsigned file)
{
	int64_t value;
	memcpy(&value, e->row[c->side][file] + c->is[file]->offset, sizeof(value));
	return value;
}

bool is_duration(const struct column *c)
{
	return !strcmp(c->is[0]->name, "Duration");
}

/*
 * Of two sessions one sees a call both begin and end before the other does: in a program the one
 * that came last, in the kernel the one that came first.
 */
struct range range_of(const struct column *c, const struct event *e)
{
	int64_t a = number(c, e, 0), b = number(c, e, 1);
	if (is_duration(c)) {
		struct column time = find_column(!paired ? "time" : c->side ? "r.time" : "l.time");
		int64_t ends[2] = { number(&time, e, 0), number(&time, e, 1) },
			begins[2] = { ends[0] - a, ends[1] - b };
		a = (ends[0] < ends[1] ? ends[0] : ends[1]) -
		    (begins[0] < begins[1] ? begins[1] : begins[0]);
		b = (ends[0] < ends[1] ? ends[1] : ends[0]) -
		    (begins[0] < begins[1] ? begins[0] : begins[1]);
	}
	return (struct range){ (double)(a < b ? a : b), (double)(a < b ? b : a) };
}

/* Names of functions and of addresses, as the file has them. */
static void print_named(FILE *out, uint64_t word, bool quoted)
{
	char name[512];
	if (!saved_reader_name(&readers[0], word, name, sizeof(name)))
		snprintf(name, sizeof(name), "0x%" PRIx64, word);
	fprintf(out, quoted ? "\"%s\"" : "%s", name);
}

static void print_frames(FILE *out, const struct fay_saved_column *c, const uint8_t *words)
{
	bool stack = !(c->flags & FAY_SAVED_CALLER);
	if (stack)
		fputc('[', out);
	for (uint32_t at = 0; at < c->size; at += 8) {
		uint64_t address;
		memcpy(&address, words + at, sizeof(address));
		if (!address && stack)
			break;
		fputs(at ? "," : "", out);
		print_named(out, fay_saved_address(address, !at && stack), true);
	}
	if (stack)
		fputc(']', out);
}

void print_value(FILE *out, const struct column *column, const struct event *e, bool quoted)
{
	const struct fay_saved_column *c = column->is[0];
	int64_t value = number(column, e, 0);
	if (c->flags)
		print_frames(out, c, e->row[column->side][0] + c->offset);
	else if (c->type == FAY_TYPE_STRING)
		fprintf(out, quoted ? "\"%.16s\"" : "%.16s",
			(const char *)e->row[column->side][0] + c->offset);
	else if (c->type == FAY_TYPE_FUNCTION)
		print_named(out, (uint64_t)value, quoted);
	else if (c->type == FAY_TYPE_BOOL)
		fputs(value ? "true" : "false", out);
	else
		fprintf(out, "%" PRId64, value);
}

/* --- conditions
 * -------------------------------------------------------------------------------------------------
 * */

struct condition make_condition(char *text)
{
	struct condition c;
	char *name = strsep(&text, ":"), *operator= strsep(&text, ":");
	if (!text || strlen(operator) != 2)
		fail(1, "no condition: ", name);
	c.column = find_column(name);
	strcpy(c.operator, operator);
	c.operand = text;
	return c;
}

bool holds(const struct condition *c, const struct event *e)
{
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	print_value(out, &c->column, e, false);
	fclose(out);
	if (!strcmp(c->operator, "eq") || !strcmp(c->operator, "ne"))
		return !strcmp(text, c->operand) == (c->operator[0] == 'e');
	long long value = atoll(text), operand = atoll(c->operand);
	return c->operator[0] == 'l' ? value < operand : value> operand;
}

/* --- events
 * -------------------------------------------------------------------------------------------------
 * */

static int by_thread(const void *left, const void *right)
{
	const struct event *a = left, *b = right;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static int by_time(const void *left, const void *right)
{
	const struct event *a = left, *b = right;
	if (a->thread == b->thread)
		return a->number < b->number ? -1 : 1;
	return (a->time[0] > b->time[0]) - (a->time[0] < b->time[0]);
}

static const struct fay_saved_column *own_column(unsigned file, uint32_t stream, const char *name)
{
	const struct fay_saved_column *c = saved_reader_column(&readers[file], stream, name);
	if (!c)
		fail(1, "no column ", name);
	return c;
}

static uint64_t word_at(const uint8_t *row, const struct fay_saved_column *c)
{
	uint64_t word;
	memcpy(&word, row + c->offset, sizeof(word));
	return word;
}

/* Each thread's rows one behind the other, as it made them. */
static size_t read_rows(unsigned file, uint32_t stream, struct event *to)
{
	const struct fay_saved_column *thread = own_column(file, stream, "tid");
	struct saved_reader reader = readers[file];
	size_t count = 0;
	uint32_t of;
	for (const uint8_t *row; (row = saved_reader_next(&reader, &of));) {
		if (of != stream)
			continue;
		if (count == EVENTS_MAX)
			fail(1, "too many events", "");
		to[count] = (struct event){ .row = { { row, row } },
					    .thread = (int64_t)word_at(row, thread),
					    .number = count };
		count++;
	}
	qsort(to, count, sizeof(*to), by_thread);
	return count;
}

/* Both sessions saw the same call. */
static void check_equal(const struct event *e, uint32_t stream)
{
	static const char *const own[] = { "time", "cycles", "cpu", "Duration" };
	for (uint32_t i = 0; i < readers[0].streams[stream].is.column_count; i++) {
		const struct fay_saved_column *c = &readers[0].streams[stream].columns[i];
		bool differs = false;
		for (size_t o = 0; o < sizeof(own) / sizeof(*own); o++)
			differs |= !strcmp(c->name, own[o]);
		if (!differs &&
		    memcmp(e->row[0][0] + c->offset,
			   e->row[0][1] + own_column(1, stream, c->name)->offset, c->size))
			fail(1, "the sessions saved different events: ", c->name);
	}
}

/* A stream's events in the order of time; returns how many. */
static size_t read_events(uint32_t stream, struct event *to)
{
	static struct event other[EVENTS_MAX];
	size_t count = read_rows(0, stream, to);
	if (read_rows(1, stream, other) != count)
		fail(1, "the sessions saved different numbers of events", "");
	for (size_t i = 0; i < count; i++) {
		struct event *e = &to[i];
		e->row[0][1] = other[i].row[0][1];
		check_equal(e, stream);
		uint64_t a = word_at(e->row[0][0], own_column(0, stream, "time")),
			 b = word_at(e->row[0][1], own_column(1, stream, "time"));
		e->time[0] = a < b ? a : b;
		e->time[1] = a < b ? b : a;
	}
	qsort(to, count, sizeof(*to), by_time);
	for (size_t i = 0; i < count; i++)
		to[i].number = i;
	return count;
}

void select_events(const struct condition *c)
{
	size_t kept = 0;
	for (size_t i = 0; i < event_count; i++)
		if (holds(c, &events[i]))
			events[kept++] = events[i];
	event_count = kept;
}

void require_order(const struct event *a, const struct event *b)
{
	if (a->thread != b->thread && a->time[1] + APART > b->time[0])
		fail(UNSURE, "calls of two threads came too close to each other", "");
}

/* --- pairs
 * -------------------------------------------------------------------------------------------------
 * */

static struct column joined[4][2];
static size_t joined_count;
static uint64_t within = UINT64_MAX;
static bool ordered;

/* Whether a word says which pairs there are. */
static bool take_pair_word(const char *word)
{
	char *copy = strdup(word), *rest = copy;
	const char *kind = strsep(&rest, ":");
	bool is_on = !strcmp(kind, "on"), is_within = !strcmp(kind, "within");
	if (is_on) {
		joined[joined_count][0] = find_column(strsep(&rest, ":"));
		joined[joined_count++][1] = find_column(rest);
	}
	if (is_within)
		within = strtoull(rest, NULL, 10);
	ordered |= !strcmp(kind, "ordered");
	is_on |= !strcmp(kind, "ordered");
	free(copy);
	return is_on || is_within;
}

static bool is_pair(const struct event *left, const struct event *right, const struct event *both)
{
	for (size_t i = 0; i < joined_count; i++)
		if (number(&joined[i][0], both, 0) != number(&joined[i][1], both, 0))
			return false;
	const struct event *first = left->time[0] < right->time[0] ? left : right,
			   *last = first == left ? right : left;
	uint64_t most = last->time[1] + APART - first->time[0],
		 least = last->time[0] > first->time[1] + APART
				 ? last->time[0] - first->time[1] - APART
				 : 0;
	if (least <= within && most > within)
		fail(UNSURE, "two events are just as far apart as they may be", "");
	if (ordered)
		require_order(first, last);
	return most <= within && (!ordered || first == left);
}

static void make_pairs(void)
{
	static struct event sides[2][EVENTS_MAX];
	size_t counts[2] = { read_events(streams[0], sides[0]), read_events(streams[1], sides[1]) };
	for (size_t l = 0; l < counts[0]; l++)
		for (size_t r = 0; r < counts[1]; r++) {
			const struct event *left = &sides[0][l], *right = &sides[1][r];
			struct event both = left->time[0] > right->time[0] ? *left : *right;
			memcpy(both.row[0], left->row[0], sizeof(both.row[0]));
			memcpy(both.row[1], right->row[0], sizeof(both.row[1]));
			if (!is_pair(left, right, &both))
				continue;
			if (event_count == EVENTS_MAX)
				fail(1, "too many pairs", "");
			events[event_count++] = both;
		}
}

int read_saved(const char *first, const char *last, const char *which, char **words)
{
	int used = 0;
	saved_reader_open(&readers[0], first);
	saved_reader_open(&readers[1], last);
	paired = sscanf(which, "%u,%u", &streams[0], &streams[1]) == 2;
	while (paired && words[used] && take_pair_word(words[used]))
		used++;
	if (paired)
		make_pairs();
	else
		event_count = read_events(streams[0], events);
	return used;
}
