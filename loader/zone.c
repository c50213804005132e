/* SPDX-License-Identifier: MIT */
/*
 * Reading and removing zones. Removal works from what lies in the target alone, so that it is one function for a session's own end, for the
 * children that a traced process forked, and for what a killed fay left behind.
 *
 * Chains. Sessions A, then B, on one entry: the program jumps to B's trampoline, B's link leads to A's trampoline, A's ends in A's copy of the
 * program's instructions. B saved A's jump as `original`. When A leaves first, B inherits: B's original becomes A's original, and B's
 * link becomes where A went on: a further trampoline, or else B's own copy of the instructions (every zone makes one from the program's
 * own bytes). So every zone can be unmapped the moment no thread is inside.
 */
#include "zone.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fay/shm.h"
#include "runtime.h"

#define REMOVE_ROUNDS 7u /* waits of 1, 2, 4 ... 64 ms for threads to leave */

void fay_jump_encode(uint64_t site, uint64_t to, uint8_t jump[FAY_JUMP_BYTES])
{
	int32_t rel = (int32_t)(to - (site + FAY_JUMP_BYTES));

	jump[0] = 0xe9;
	memcpy(jump + 1, &rel, 4);
}

static bool zone_read(const struct fay_map *map, int memory, struct fay_zone *zone)
{
	struct fay_zone_header *header = &zone->header;
	size_t size;

	if (pread(memory, header, sizeof(*header), (off_t)map->end) != (ssize_t)sizeof(*header))
		return false;
	if (header->magic != FAY_ZONE_MAGIC || header->version != FAY_ZONE_VERSION ||
	    header->code != map->start || header->code + header->code_size != map->end ||
	    header->data != map->end || header->patch_count > FAY_ZONE_MAX_PATCHES)
		return false;
	size = header->patch_count * sizeof(struct fay_zone_patch);
	if (size + sizeof(*header) > header->data_size)
		return false;
	zone->patches = malloc(size ? size : 1);
	if (!zone->patches)
		return false;
	if (pread(memory, zone->patches, size, (off_t)(map->end + sizeof(*header))) != (ssize_t)size) {
		free(zone->patches);
		return false;
	}
	zone->device = map->device;
	zone->inode = map->inode;
	return true;
}

int fay_zones_read(const struct fay_maps *maps, int memory, struct fay_zones *zones, struct fay_error *error)
{
	memset(zones, 0, sizeof(*zones));
	for (size_t i = 0; i < maps->count; i++) {
		const struct fay_map *map = &maps->items[i];
		struct fay_zone zone, *grown;

		if (map->permissions[2] != 'x' || strncmp(map->name, "/memfd:" FAY_ZONE_MEMFD, 15) ||
		    !zone_read(map, memory, &zone))
			continue;
		grown = realloc(zones->items, (zones->count + 1) * sizeof(zone));
		if (!grown) {
			free(zone.patches);
			fay_zones_deinit(zones);
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		}
		zones->items = grown;
		zones->items[zones->count++] = zone;
	}
	return 0;
}

void fay_zones_deinit(struct fay_zones *zones)
{
	for (size_t i = 0; i < zones->count; i++)
		free(zones->items[i].patches);
	free(zones->items);
	memset(zones, 0, sizeof(*zones));
}

/* The patch whose jump is exactly these bytes. */
static const struct fay_zone_patch *patch_of_jump(const struct fay_zones *zones, uint64_t site,
						  const uint8_t bytes[FAY_JUMP_BYTES])
{
	for (size_t i = 0; i < zones->count; i++)
		for (uint32_t k = 0; k < zones->items[i].header.patch_count; k++) {
			const struct fay_zone_patch *patch = &zones->items[i].patches[k];
			uint8_t jump[FAY_JUMP_BYTES];

			if (patch->site != site)
				continue;
			fay_jump_encode(site, patch->trampoline, jump);
			if (!memcmp(jump, bytes, sizeof(jump)))
				return patch;
		}
	return NULL;
}

void fay_zones_uncover(const struct fay_zones *zones, uint64_t site, uint8_t bytes[FAY_JUMP_BYTES])
{
	const struct fay_zone_patch *patch;

	/* Each step goes down one patch; more steps than zones would be a cycle made by a hostile target. */
	for (size_t step = 0; step < zones->count && (patch = patch_of_jump(zones, site, bytes)); step++)
		memcpy(bytes, patch->original, FAY_JUMP_BYTES);
}

uint64_t fay_process_start(pid_t pid)
{
	char path[64], text[1024], *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	at = strrchr(text, ')');
	if (!at || at[2] == 'Z' || at[2] == 'X')
		return 0;
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

bool fay_zone_owner_alive(const struct fay_zone_header *header)
{
	return fay_process_start((pid_t)header->owner_pid) == header->owner_start;
}

/* The patch of another session that lies directly over `patch`. */
static struct fay_zone_patch *patch_above(struct fay_zones *zones, uint64_t session,
					  const uint8_t jump[FAY_JUMP_BYTES], uint64_t site,
					  uint64_t *address)
{
	for (size_t i = 0; i < zones->count; i++) {
		struct fay_zone *zone = &zones->items[i];

		if (zone->header.session == session)
			continue;
		for (uint32_t k = 0; k < zone->header.patch_count; k++) {
			struct fay_zone_patch *above = &zone->patches[k];

			if (above->site != site || memcmp(above->original, jump, FAY_JUMP_BYTES))
				continue;
			*address = zone->header.data + sizeof(zone->header) + k * sizeof(*above);
			return above;
		}
	}
	return NULL;
}

/* Takes the jump away, wherever it is. True if nothing leads to this patch any more. */
static bool patch_take_out(struct fay_stop *stop, struct fay_zones *zones, uint64_t session,
			   const struct fay_zone_patch *patch)
{
	uint8_t now[FAY_JUMP_BYTES], jump[FAY_JUMP_BYTES];
	struct fay_zone_patch *above;
	uint64_t address;

	fay_jump_encode(patch->site, patch->trampoline, jump);
	if (fay_stop_read(stop, patch->site, now, sizeof(now)))
		return true; /* the module was unloaded */
	if (!memcmp(now, jump, sizeof(now)))
		return fay_stop_write(stop, patch->site, patch->original, FAY_JUMP_BYTES) == 0;
	above = patch_above(zones, session, jump, patch->site, &address);
	if (!above) /* put back by someone, or overwritten by something that is not ours and may lead here */
		return !memcmp(now, patch->original, sizeof(now));
	memcpy(above->original, patch->original, FAY_JUMP_BYTES);
	above->link = patch->linked && patch->link != patch->displaced ? patch->link : above->displaced;
	return fay_stop_write(stop, address, above, sizeof(*above)) == 0;
}

static bool patch_remove(struct fay_stop *stop, struct fay_zones *zones, struct fay_zone *zone, uint32_t index)
{
	struct fay_zone_patch *patch = &zone->patches[index];

	if (!patch->removed && patch_take_out(stop, zones, zone->header.session, patch)) {
		patch->removed = 1;
		fay_stop_write(stop, zone->header.data + sizeof(zone->header) + index * sizeof(*patch), patch,
			       sizeof(*patch));
	}
	return patch->removed;
}

struct inside_context {
	const struct fay_zones *zones;
	uint64_t session;
	uint64_t before[2]; /* the words visited before */
};

static const struct fay_zone *zone_around(const struct inside_context *inside, uint64_t address)
{
	for (size_t i = 0; i < inside->zones->count; i++) {
		const struct fay_zone_header *header = &inside->zones->items[i].header;

		if (header->session == inside->session && address - header->code < header->code_size)
			return &inside->zones->items[i];
	}
	return NULL;
}

static bool is_return_point(const struct fay_zone *zone, uint64_t address)
{
	for (uint32_t i = 0; i < zone->header.patch_count; i++)
		if (zone->patches[i].returns == address)
			return true;
	return false;
}

#define USER_CS 0x33u

/*
 * Our code calls nothing outside itself, so a thread that is in it stands there (its rip) or was interrupted there by a signal: then the signal
 * frame holds rip, eflags and the segment selectors, cs lowest, in this order. Or it holds a return point: a frame that nobody knows of, or an exception on
 * its way. All other words that point to our code are what calls of probes have left in unused stack.
 */
static bool is_held(void *context, uint64_t word)
{
	struct inside_context *inside = context;
	const struct fay_zone *zone = zone_around(inside, word);
	bool interrupted = (word & 0xffff) == USER_CS && zone_around(inside, inside->before[0]);

	inside->before[0] = inside->before[1];
	inside->before[1] = word;
	return interrupted || (zone && is_return_point(zone, word));
}

static bool somebody_inside(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session)
{
	struct inside_context context = { .zones = zones, .session = session };

	for (size_t i = 0; i < stop->count; i++)
		if (!stop->threads[i].gone && zone_around(&context, stop->threads[i].registers.rip))
			return true;
	return fay_stop_visit_words(stop, is_held, &context);
}

/*
 * Puts the real return addresses of one thread's watched calls back, newest first: of several calls at one place on the stack the newest is the one under
 * way, and where it was itself a tail call, the older ones follow.
 */
static void return_calls(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session, const struct fay_call *calls,
			 size_t count)
{
	struct inside_context context = { .zones = zones, .session = session };

	for (size_t i = count; i-- > 0;) {
		uint64_t slot = calls[i].slot, word;

		if (slot % 8 == 0 && !fay_stop_read(stop, slot, &word, 8) && zone_around(&context, word))
			fay_stop_write(stop, slot, &calls[i].address, 8);
	}
}

static bool is_live_thread(const struct fay_stop *stop, uint64_t key)
{
	for (size_t i = 0; i < stop->count; i++)
		if (!stop->threads[i].gone && stop->threads[i].registers.fs_base + 1 == key)
			return true;
	return false;
}

/*
 * After this, calls under way return straight to their callers. Live threads first: what an ended one left behind may name places on stacks that are in
 * use again. What is read is the target's and proves nothing: every count is bounded.
 */
static int return_all(struct fay_stop *stop, const struct fay_zones *zones, const struct fay_zone_header *header,
		      struct fay_error *error)
{
	struct fay_call *calls = malloc(FAY_CALLS_MAX * sizeof(*calls));
	struct fay_shm_control control;
	struct fay_call_stack stack;
	uint64_t used;

	if (!calls)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	used = fay_stop_read(stop, header->shm, &control, sizeof(control)) ? 0 : control.slot_next;
	if (used > header->calls_size / FAY_CALLS_STRIDE)
		used = header->calls_size / FAY_CALLS_STRIDE;
	for (uint64_t i = 0; i < 2 * used; i++) {
		uint64_t at = header->calls + i % used * FAY_CALLS_STRIDE, first = at + FAY_CALLS_FIRST, count;

		if (fay_stop_read(stop, at, &stack, sizeof(stack)) || stack.top <= first ||
		    is_live_thread(stop, stack.key) != (i < used))
			continue;
		count = (stack.top - first) / sizeof(*calls);
		if (count > FAY_CALLS_MAX)
			count = FAY_CALLS_MAX;
		if (!fay_stop_read(stop, first, calls, count * sizeof(*calls)))
			return_calls(stop, zones, header->session, calls, count);
	}
	free(calls);
	return 0;
}

static int unmap(struct fay_stop *stop, uint64_t address, uint64_t size, struct fay_error *error)
{
	uint64_t arguments[6] = { address, size };
	int64_t result;

	return size ? fay_stop_syscall(stop, SYS_munmap, arguments, &result, error) : 0;
}

static int session_unmap(struct fay_stop *stop, const struct fay_zones *zones, uint64_t session,
			 struct fay_error *error)
{
	const struct fay_zone_header *last = NULL;
	int code;

	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone_header *header = &zones->items[i].header;

		if (header->session != session)
			continue;
		last = header;
		code = unmap(stop, header->code, header->code_size + header->data_size, error);
		if (code)
			return code;
	}
	if (!last)
		return 0;
	code = unmap(stop, last->shm, last->shm_size, error);
	if (!code)
		code = unmap(stop, last->calls, last->calls_size, error);
	return code ? code : unmap(stop, last->table, last->table_size, error);
}

/* Takes out the session's patches, hooks or others. True if some stay reachable. */
static bool take_out(struct fay_stop *stop, struct fay_zones *zones, uint64_t session, bool hooks)
{
	bool reachable = false;

	for (size_t i = 0; i < zones->count; i++)
		for (uint32_t k = 0; k < zones->items[i].header.patch_count; k++)
			if (zones->items[i].header.session == session && zones->items[i].patches[k].hook == hooks)
				reachable |= !patch_remove(stop, zones, &zones->items[i], k);
	return reachable;
}

/*
 * While an exception passes, the unwinder may hold one of our return points: its hooks go when nobody holds one any more. In the last round they go in
 * any case; a word that is still found then is most likely a leftover in unused stack, and the zone stays mapped for it.
 */
static int remove_once(struct fay_stop *stop, uint64_t session, bool last, bool *found, bool *left, struct fay_error *error)
{
	struct fay_maps maps;
	struct fay_zones zones;
	bool reachable, returned = false;
	int code = fay_maps_read(stop->pid, &maps, error);

	*left = false;
	if (code)
		return code;
	code = fay_zones_read(&maps, stop->memory, &zones, error);
	fay_maps_deinit(&maps);
	if (code)
		return code;
	for (size_t i = 0; i < zones.count; i++) {
		const struct fay_zone_header *header = &zones.items[i].header;

		if (header->session != session)
			continue;
		if (!returned && header->calls)
			code = return_all(stop, &zones, header, error);
		*found = returned = true;
	}
	reachable = take_out(stop, &zones, session, false);
	if (!code && *found) {
		if (last || !somebody_inside(stop, &zones, session))
			reachable |= take_out(stop, &zones, session, true);
		/* A program that went under seccomp while traced could be killed for munmap. */
		*left = reachable || somebody_inside(stop, &zones, session) || fay_stop_confined(stop);
		if (!*left)
			code = session_unmap(stop, &zones, session, error);
	}
	fay_zones_deinit(&zones);
	return code;
}

int fay_zone_remove(pid_t pid, uint64_t session, uint32_t stop_timeout_ms, uint32_t tracer_wait_ms, bool *found,
		    bool *left, uint64_t *longest_pause, struct fay_error *error)
{
	*found = false;
	*left = false;
	for (unsigned round = 0; round <= REMOVE_ROUNDS; round++) {
		struct fay_stop stop;
		uint64_t pause;
		int code;

		if (fay_process_start(pid) == 0)
			return 0;
		code = fay_stop_all(pid, stop_timeout_ms, tracer_wait_ms, &stop, error);
		if (code)
			return fay_process_start(pid) == 0 ? 0 : code;
		code = remove_once(&stop, session, round == REMOVE_ROUNDS, found, left, error);
		pause = fay_stop_release(&stop);
		if (longest_pause && pause > *longest_pause)
			*longest_pause = pause;
		if (code)
			return fay_process_start(pid) == 0 ? 0 : code;
		if (!*left)
			return 0;
		if (round < REMOVE_ROUNDS)
			usleep(1000u << round);
	}
	return 0;
}
