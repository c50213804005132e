/* SPDX-License-Identifier: MIT */
/*
 * Spans of time of one track, as a thread's calls are, that nest: of any two one contains the
 * other, or they do not overlap. Readers of traces take no others: Perfetto drops a call that ends
 * after the one that it is in.
 *
 * Kept of a track are the outermost spans that have come by now, in the order of time: a call ends
 * before the one that it is in, so what comes takes in the last ones, or stands behind them. Both
 * ends of a new span must lie in none of them. When a call began is known to a nanosecond: its
 * duration is one product that is rounded down, and its end another, so it may seem to begin a
 * nanosecond late, after what it called. Then it is moved. What overlaps by more is no call of that
 * thread (or one that left by a jump): the caller shows it elsewhere.
 *
 * Memory is bounded: past ROOTS_MOST the older half of the longest track is forgotten. A call that
 * began before the end of that has many others in it; it is moved by the nanosecond in any case.
 * None ended that shortly before it: between a return and the next call's beginning a probe ran.
 */
#include <stdlib.h>
#include <string.h>

#include "output_parts.h"

#define ROOTS_MOST ((size_t)1 << 20) /* of all tracks, 16 MB */
#define ROOTS_LEAST 16u              /* that there is room for in a track */
#define TRACKS_MOST ((size_t)1 << 16)
#define TRACKS_ROOM (2 * TRACKS_MOST) /* of the hash table */
#define NEAR 1                        /* ns */

struct span {
	int64_t begin, end;
};
struct track {
	int64_t pid, tid;
	struct span *roots;
	size_t count, room; /* room 0: no such track */
	int64_t forgotten;  /* by then others may have been in it */
};
struct fay_nest {
	struct track *tracks; /* TRACKS_ROOM */
	size_t count, room;   /* of tracks; of their roots */
	int64_t latest, forgotten;
};

void fay_output_nest_free(struct fay_nest *nest)
{
	for (size_t i = 0; nest && i < TRACKS_ROOM; i++)
		free(nest->tracks[i].roots);
	if (nest)
		free(nest->tracks);
	free(nest);
}

struct fay_nest *fay_output_nest_create(void)
{
	struct fay_nest *nest = calloc(1, sizeof(*nest));
	if (nest)
		nest->tracks = calloc(TRACKS_ROOM, sizeof(*nest->tracks));
	if (nest && nest->tracks) {
		nest->latest = nest->forgotten = INT64_MIN;
		return nest;
	}
	free(nest);
	return NULL;
}

static void forget_tracks(struct fay_nest *nest)
{
	for (size_t i = 0; i < TRACKS_ROOM; i++)
		free(nest->tracks[i].roots);
	memset(nest->tracks, 0, TRACKS_ROOM * sizeof(*nest->tracks));
	nest->count = nest->room = 0;
	nest->forgotten = nest->latest;
}

static bool set_room(struct fay_nest *nest, struct track *track, size_t room)
{
	struct span *roots = realloc(track->roots, room * sizeof(*roots));
	if (!roots)
		return false;
	nest->room += room - track->room;
	track->roots = roots;
	track->room = room;
	return true;
}

/* NULL: no memory. */
static struct track *find_track(struct fay_nest *nest, int64_t pid, int64_t tid)
{
	if (nest->count == TRACKS_MOST)
		forget_tracks(nest);
	uint64_t hash = ((uint64_t)pid << 32 ^ (uint64_t)tid) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 40) % TRACKS_ROOM;
	struct track *track = &nest->tracks[at];
	while (track->room && (track->pid != pid || track->tid != tid)) {
		at = (at + 1) % TRACKS_ROOM;
		track = &nest->tracks[at];
	}
	if (track->room)
		return track;
	*track = (struct track){ .pid = pid, .tid = tid, .forgotten = nest->forgotten };
	if (!set_room(nest, track, ROOTS_LEAST))
		return NULL;
	nest->count++;
	return track;
}

/* The older half of the track's roots, and room that it has not used. */
static void forget_roots(struct fay_nest *nest, struct track *track)
{
	size_t half = track->count / 2;
	if (track->count > track->room / 4 && half) {
		track->forgotten = track->roots[half - 1].end;
		track->count -= half;
		memmove(track->roots, track->roots + half, track->count * sizeof(*track->roots));
	}
	set_room(nest, track, track->count + 1 > ROOTS_LEAST ? track->count + 1 : ROOTS_LEAST);
}

static bool make_room(struct fay_nest *nest, struct track *track)
{
	struct track *longest = track;
	if (track->count < track->room)
		return true;
	while (nest->room + track->room > ROOTS_MOST && longest->room > ROOTS_LEAST) {
		for (size_t i = 0; i < TRACKS_ROOM; i++)
			if (nest->tracks[i].room > longest->room)
				longest = &nest->tracks[i];
		forget_roots(nest, longest);
		if (track->count < track->room)
			return true;
	}
	return set_room(nest, track, 2 * track->room);
}

/* The first root that ends after the time. */
static size_t first_after(const struct track *track, int64_t time)
{
	size_t low = 0, high = track->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (track->roots[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* As long as it was, if it still has all that it called: the last of that ended at `least`. */
static void move(struct span *span, int64_t by, int64_t least)
{
	span->begin -= by;
	if (span->end - by >= least)
		span->end -= by;
}

bool fay_output_nest(struct fay_nest *nest, int64_t pid, int64_t tid, int64_t *begin, int64_t *end)
{
	struct track *track = find_track(nest, pid, tid);
	if (!track || *begin > *end || !make_room(nest, track))
		return false;
	struct span *roots = track->roots, now = { *begin, *end };
	size_t first = first_after(track, now.begin), last = first;
	while (last < track->count && roots[last].begin < now.end)
		last++;
	nest->latest = nest->latest > now.end ? nest->latest : now.end;
	int64_t least = first < last ? roots[last - 1].end : now.begin,
		late = first < last ? now.begin - roots[first].begin : 0;
	if (now.begin < track->forgotten)
		late = NEAR;
	if (late > NEAR || least > now.end)
		return false;
	if (late > 0)
		move(&now, late, least);
	memmove(roots + first + 1, roots + last, (track->count - last) * sizeof(*roots));
	track->count -= last - first;
	track->count++;
	roots[first] = now;
	*begin = now.begin;
	*end = now.end;
	return true;
}
