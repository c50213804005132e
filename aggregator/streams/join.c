/* SPDX-License-Identifier: MIT */
/*
 * fay/join.h. Each side is a ring of entries in the order they came, and chains of entries with the
 * same hash of their key, the youngest first. An entry also knows the latest time in its chain from
 * itself on to the oldest: a search ends where all that is left is too old, which for rows that
 * come nearly in order is right behind the last that matches.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "aggregator/rows/rows.h"
#include "fay/join.h"

#define FIRST_ROOM 256u
#define PASSED_OVER 8u
#define SETTLED UINT64_MAX

struct entry {
	uint64_t hash, time, latest; /* latest: time of this and all older ones of the chain */
	/* number of the next one of the chain + 1, 0: none; it may be gone. Or SETTLED, and it is
	 * in no chain. */
	uint64_t older;
	uint8_t row[];
};

/* Entries `first` to `next` - 1 by number; entry n lies in slot n modulo `room`. */
struct side {
	uint8_t *slots;
	uint64_t *heads;                  /* `room` chains: number of the youngest + 1 */
	uint64_t first, next, room, most; /* room: a power of two, or 0; most: the largest */
	uint32_t row_size, slot_size, time_offset;
	const struct fay_join_column *keys;
	uint64_t came, evicted, late;
};

struct fay_join {
	struct fay_join_options options;
	struct side sides[2];
	fay_join_pair_function *function;
	fay_join_alone_function *alone;
	void *context;
	uint64_t horizon, pairs;
};

static const char *check_options(const struct fay_join_options *options)
{
	if (!options->key_count || options->key_count > FAY_JOIN_KEYS)
		return "number of keys";
	for (unsigned s = 0; s < 2; s++) {
		uint32_t size = options->sides[s].row_size;
		if (size < 8 || size > 4096 || size % 8 || options->sides[s].time_offset > size - 8)
			return "size of a row";
		for (uint32_t k = 0; k < options->key_count; k++) {
			struct fay_join_column key = options->sides[s].keys[k];
			if (key.size % 8 || key.size != options->sides[0].keys[k].size ||
			    key.offset > size || key.size > size - key.offset)
				return "a key";
		}
	}
	return NULL;
}

static void side_init(struct side *side, const struct fay_join_options *options, unsigned index)
{
	uint64_t bytes = options->bytes ? options->bytes : FAY_JOIN_BYTES;
	side->row_size = options->sides[index].row_size;
	side->time_offset = options->sides[index].time_offset;
	side->slot_size = (uint32_t)sizeof(struct entry) + side->row_size;
	side->keys = options->sides[index].keys;
	side->most = 1;
	while (side->most * 2 * (side->slot_size + sizeof(uint64_t)) <= bytes)
		side->most *= 2;
}

int fay_join_create(const struct fay_join_options *options, fay_join_pair_function *function,
		    fay_join_alone_function *alone, void *context, struct fay_join **result,
		    struct fay_error *error)
{
	const char *wrong = check_options(options);
	if (wrong)
		return fay_error_set(error, FAY_E_INTERNAL, "a join cannot be made: %s", wrong);
	struct fay_join *join = calloc(1, sizeof(*join));
	if (!join)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	join->options = *options;
	join->function = function;
	join->alone = alone;
	join->context = context;
	for (unsigned s = 0; s < 2; s++)
		side_init(&join->sides[s], &join->options, s);
	*result = join;
	return FAY_OK;
}

void fay_join_destroy(struct fay_join *join)
{
	for (unsigned s = 0; join && s < 2; s++) {
		free(join->sides[s].slots);
		free(join->sides[s].heads);
	}
	free(join);
}

static struct entry *entry_at(const struct side *side, uint64_t number)
{
	return (struct entry *)(side->slots + (number & (side->room - 1)) * side->slot_size);
}

static uint64_t hash_row(const struct fay_join *join, const struct side *side, const uint8_t *row)
{
	struct fay_hash hash = fay_hash_begin(fay_hash_key());
	for (uint32_t k = 0; k < join->options.key_count; k++)
		fay_hash_add(&hash, row + side->keys[k].offset, side->keys[k].size);
	return fay_hash_end(&hash);
}

static bool same_keys(const struct fay_join *join, const uint8_t *left, const uint8_t *right)
{
	for (uint32_t k = 0; k < join->options.key_count; k++) {
		struct fay_join_column a = join->options.sides[0].keys[k],
				       b = join->options.sides[1].keys[k];
		if (memcmp(left + a.offset, right + b.offset, a.size))
			return false;
	}
	return true;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Pairs of a row with what the other side keeps. true: the row is a left one and settled. */
static bool search(struct fay_join *join, unsigned index, const uint8_t *row, uint64_t hash,
		   uint64_t time, uint64_t since)
{
	const struct side *other = &join->sides[!index];
	uint64_t *link = other->room ? &other->heads[hash & (other->room - 1)] : NULL;
	while (link && *link > other->first) {
		uint64_t number = *link;
		struct entry *e = entry_at(other, number - 1);
		if (plus(e->latest, join->options.within) < time || e->latest < since)
			return false;
		uint64_t apart = e->time > time ? e->time - time : time - e->time;
		const uint8_t *left = index ? e->row : row, *right = index ? row : e->row;
		if (e->hash == hash && e->time >= since && apart <= join->options.within &&
		    same_keys(join, left, right)) {
			join->pairs++;
			if (join->function(join->context, index ? number - 1 : join->sides[0].next,
					   left, right)) {
				if (!index)
					return true;
				*link = e->older;
				e->older = SETTLED;
				continue;
			}
		}
		link = &e->older;
	}
	return false;
}

static void link_entry(struct side *side, uint64_t number)
{
	struct entry *e = entry_at(side, number);
	uint64_t *head = &side->heads[e->hash & (side->room - 1)];
	e->older = *head;
	e->latest = e->time;
	if (e->older > side->first && entry_at(side, e->older - 1)->latest > e->time)
		e->latest = entry_at(side, e->older - 1)->latest;
	*head = number + 1;
}

/* Twice the room, or what there is at first. Entries keep their numbers. */
static bool grow(struct side *side)
{
	struct side larger = *side;
	larger.room = side->room                ? side->room * 2
		      : side->most < FIRST_ROOM ? side->most
						: FIRST_ROOM;
	if (larger.room > side->most)
		return false;
	larger.slots = malloc(larger.room * side->slot_size);
	larger.heads = calloc(larger.room, sizeof(*larger.heads));
	if (!larger.slots || !larger.heads) {
		free(larger.slots);
		free(larger.heads);
		return false;
	}
	for (uint64_t n = side->first; n < side->next; n++) {
		memcpy(entry_at(&larger, n), entry_at(side, n), side->slot_size);
		if (entry_at(&larger, n)->older != SETTLED)
			link_entry(&larger, n);
	}
	free(side->slots);
	free(side->heads);
	*side = larger;
	return true;
}

/* Whether no row that comes now can make a pair with it. */
static bool is_over(const struct fay_join *join, const struct entry *e)
{
	return e->older == SETTLED || join->horizon == UINT64_MAX ||
	       plus(e->time, join->options.within) < join->horizon;
}

static void drop_first(struct fay_join *join, struct side *side)
{
	const struct entry *e = entry_at(side, side->first);
	if (!is_over(join, e))
		side->evicted++;
	else if (side == &join->sides[0] && join->alone && e->older != SETTLED)
		join->alone(join->context, side->first, e->row);
	side->first++;
}

/* Of left rows that wait for a pair to settle them most are settled soon: in a full ring the first
 * few that are not go behind all others, which is the same slot, and others make room. */
static void pass_over(struct fay_join *join, struct side *side)
{
	for (unsigned i = 0; join->alone && side == &join->sides[0] && i < PASSED_OVER &&
			     !is_over(join, entry_at(side, side->first));
	     i++) {
		side->first++;
		link_entry(side, side->next++);
	}
}

static void keep(struct fay_join *join, struct side *side, const uint8_t *row, uint64_t hash,
		 uint64_t time, bool settled)
{
	if (side->next - side->first == side->room && !grow(side)) {
		if (!side->room) { /* no memory at all */
			side->evicted++;
			side->first = ++side->next;
			return;
		}
		pass_over(join, side);
		drop_first(join, side);
	}
	struct entry *e = entry_at(side, side->next);
	e->hash = hash;
	e->time = time;
	e->older = SETTLED;
	memcpy(e->row, row, side->row_size);
	if (!settled)
		link_entry(side, side->next);
	side->next++;
}

uint64_t fay_join_add(struct fay_join *join, unsigned index, const uint8_t *row, uint64_t since)
{
	struct side *side = &join->sides[index];
	uint64_t time, hash = hash_row(join, side, row);
	memcpy(&time, row + side->time_offset, sizeof(time));
	side->came++;
	side->late += time < join->horizon;
	keep(join, side, row, hash, time, search(join, index, row, hash, time, since));
	return side->next - 1;
}

void fay_join_advance(struct fay_join *join, uint64_t horizon)
{
	if (horizon <= join->horizon)
		return;
	join->horizon = horizon;
	for (unsigned s = 0; s < 2; s++) {
		struct side *side = &join->sides[s];
		while (side->first < side->next && is_over(join, entry_at(side, side->first)))
			drop_first(join, side);
	}
}

void fay_join_counts(const struct fay_join *join, struct fay_join_counts *counts)
{
	*counts = (struct fay_join_counts){ .pairs = join->pairs };
	for (unsigned s = 0; s < 2; s++) {
		counts->rows[s] = join->sides[s].came;
		counts->evicted[s] = join->sides[s].evicted;
		counts->late[s] = join->sides[s].late;
		counts->kept[s] = join->sides[s].next - join->sides[s].first;
	}
}
