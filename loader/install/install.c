/* SPDX-License-Identifier: MIT */
/*
 * Installing a planned session, with the target stopped from start to end:
 *
 *	1 no site lies in memory that the program writes
 *	2 the thread table, the state (memfd, kept open here), the zones (memfds, sealed before they
 *	  are mapped): install_memory.c
 *	3 the image's bytes are read back from the target and hashed: they are those that were
 *	  verified
 *	4 no thread and no signal frame is inside the bytes to be overwritten, or the thread is
 *	  moved to their copy
 *	5 the jumps are written: where every site of a run of pages, read right before, still holds
 *	  the bytes that were judged; markers' semaphores are counted up
 *
 * A failure before 5 unmaps everything; a failure in 5 also puts back what was written.
 */
#include "install_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/process/process.h"

static bool is_in_plan(const struct fay_install *install, const struct fay_site *site)
{
	return site->usable && install->plan->points[site->point].usable;
}

static int by_address(const void *a, const void *b, void *context)
{
	const struct fay_site *sites = context;
	uint64_t x = sites[*(const uint32_t *)a].site, y = sites[*(const uint32_t *)b].site;

	return x < y ? -1 : x > y;
}

static bool list_sites(struct fay_install *install)
{
	const struct fay_plan *plan = install->plan;
	uint32_t *sites = malloc((plan->site_count + 1) * sizeof(*sites));
	size_t count = 0;
	bool sorted = true;

	free(install->sites);
	install->sites = sites;
	install->on_top = false;
	for (size_t i = 0; i < plan->site_count && sites; i++) {
		if (!is_in_plan(install, &plan->sites[i]))
			continue;
		sorted &= !count || plan->sites[sites[count - 1]].site <= plan->sites[i].site;
		install->on_top |= plan->sites[i].lower_part != 0;
		sites[count++] = (uint32_t)i;
	}
	install->site_count = count;
	if (!sorted)
		qsort_r(sites, count, sizeof(*sites), by_address, plan->sites);
	return sites != NULL;
}

int fay_install_prepare(struct fay_install *install, struct fay_error *error)
{
	int code = list_sites(install) ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; i < install->site_count && !code; i++) {
		const struct fay_site *site = &install->plan->sites[install->sites[i]];

		code = fay_text_want(&install->text, site->site, site->size, error);
	}
	return code ? code : fay_text_ready(&install->text, error);
}

void fay_install_forget(struct fay_install *install)
{
	fay_text_deinit(&install->text);
	free(install->sites);
	install->sites = NULL;
	install->site_count = 0;
}

bool fay_install_none_writable(struct fay_install *install, struct fay_stop *stop)
{
	const struct fay_maps *maps;
	bool none;

	fay_maps_deinit(&stop->maps); /* as they are now: others may share the memory */
	maps = fay_stop_maps(stop);
	none = maps != NULL;
	for (size_t i = 0; none && i < maps->count; i++)
		none = !fay_sites_writable(install->plan, &maps->items[i]);
	return none;
}

static bool is_coming(const struct fay_install *install, size_t point)
{
	for (size_t i = 0; i < install->coming_count; i++)
		if (install->coming[i] == point)
			return true;
	return !install->coming;
}

/* The site whose closed bytes, but for the first, contain the address. */
static const struct fay_site *site_around(const struct fay_install *install, uint64_t address)
{
	const struct fay_site *site;
	size_t zone = 0;

	/* Most words of a stack are no addresses of the code at all. */
	while (zone < install->plan->zone_count &&
	       address - install->plan->zones[zone].low >=
		       install->plan->zones[zone].high - install->plan->zones[zone].low)
		zone++;
	if (zone == install->plan->zone_count)
		return NULL;
	site = fay_site_around(install->plan, address);
	if (site && site->kind == FAY_SITE_HOLE) /* of the window that it lies in, if any */
		site = fay_site_around(install->plan, site->site);
	return site && site->kind != FAY_SITE_HOLE &&
			       address < site->site + fay_site_closed(site) &&
			       is_coming(install, site->point)
		       ? site
		       : NULL;
}

/* Notes the places; stops the search only when there is no more room for them. */
static bool is_interrupted(void *context, uint64_t address, uint64_t word)
{
	struct fay_install *install = context;
	const struct fay_site *site = site_around(install, word);

	(void)address;
	for (size_t i = 0; site && i < install->held_count; i++)
		if (install->held[i] == site->site)
			return false;
	if (site && install->held_count < FAY_HELD_MAX)
		install->held[install->held_count++] = site->site;
	return install->held_count == FAY_HELD_MAX;
}

bool fay_install_none_interrupted(struct fay_install *install, struct fay_stop *stop)
{
	install->held_count = 0;
	return !fay_stop_visit_words(stop, is_interrupted, install) && !install->held_count;
}

/* Where a thread at `rip` goes on once the jumps are written. False: it is between two instructions
 * as we know them. */
static bool moved_rip(const struct fay_install *install, uint64_t rip, uint64_t *to)
{
	const struct fay_site *site = site_around(install, rip);

	*to = rip;
	if (!site)
		return true;
	for (unsigned k = 0; k < site->boundary_count; k++)
		if (rip == site->site + site->boundary_from[k]) {
			*to = site->site + (uint64_t)(int64_t)site->boundary_to[k];
			return true;
		}
	return false;
}

bool fay_install_move_threads(const struct fay_install *install, struct fay_stop *stop, bool really)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];
		uint64_t to;

		if (thread->gone)
			continue;
		if (!moved_rip(install, thread->registers.rip, &to))
			return false;
		if (really && to != thread->registers.rip) {
			thread->registers.rip = to;
			thread->dirty = true;
		}
	}
	return true;
}

void fay_install_put_back(const struct fay_stop *stop, const struct fay_zone_patch *patch,
			  const uint8_t before[FAY_JUMP_BYTES])
{
	uint8_t now[FAY_JUMP_BYTES], jump[FAY_JUMP_BYTES];

	if (fay_stop_read(stop, patch->site, now, patch->size))
		return;
	fay_patch_encode(patch, jump);
	for (unsigned k = 0; k < patch->size; k++)
		if (now[k] == jump[k])
			now[k] = before[k];
	fay_stop_write(stop, patch->site, now, patch->size);
}

struct patching {
	struct fay_install *install;
	size_t next;   /* of install->sites */
	size_t judged; /* so many, of whole runs, had their bytes: no other is written */
};

/* The jumps of all sites in [start, end), once each is seen to have the bytes that were judged. Of
 * a block nothing is overwritten. */
static bool patch_run(void *context, uint64_t start, uint64_t end)
{
	struct patching *patching = context;
	struct fay_install *install = patching->install;
	const struct fay_plan *plan = install->plan;
	size_t first = patching->next;
	bool fits = true;

	(void)start;
	for (size_t i = first; i < install->site_count && fits; i++) {
		const struct fay_site *site = &plan->sites[install->sites[i]];

		if (site->site >= end)
			break;
		fits = fay_text_swap(&install->text, site->site, fay_site_before(plan, site),
				     site->size, NULL, 0);
		patching->next = i + 1;
	}
	for (size_t i = first; i < patching->next && fits; i++) {
		const struct fay_site *site = &plan->sites[install->sites[i]];
		uint8_t jump[FAY_JUMP_BYTES];

		if (site->kind == FAY_SITE_BLOCK)
			continue;
		fay_patch_encode(&site->patch, jump);
		fits = fay_text_swap(&install->text, site->site, fay_site_before(plan, site),
				     site->patch.size, jump, site->patch.size);
	}
	if (fits)
		patching->judged = patching->next;
	return fits;
}

/* The first so many sites, which had the bytes that were judged. Another trace's jump may be at any
 * other: its first byte is that of ours, and must not be taken for it. */
static void put_back_first(const struct fay_install *install, const struct fay_stop *stop,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct fay_site *site = &install->plan->sites[install->sites[i]];

		if (site->kind != FAY_SITE_BLOCK)
			fay_install_put_back(stop, &site->patch,
					     fay_site_before(install->plan, site));
	}
}

static int patch_all(struct fay_install *install, struct fay_stop *stop, struct fay_error *error)
{
	struct patching patching = { .install = install };
	int code = fay_text_replace(&install->text, stop->memory, fay_stop_any(stop), patch_run,
				    &patching);
	bool busy = !code || errno == EBUSY;

	if (!code && patching.judged == install->site_count)
		return 0;
	if (busy)
		fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing",
			      (int)stop->pid);
	else
		fay_error_set(error, FAY_E_REFUSED, "process %d: cannot write its code: %s",
			      (int)stop->pid, strerror(errno));
	/* Of the last run some pages may be written and others not. */
	put_back_first(install, stop, patching.judged);
	return busy ? -1 : FAY_E_REFUSED;
}

/*
 * Where other sessions have the same functions whole, the lowest of them goes on in our copies from
 * now on: behind everything that may fail, since until then the program goes the way that it went.
 * -1: the sessions have changed since the plan was made.
 */
static int go_on_top(struct fay_install *install, struct fay_stop *stop, bool really,
		     struct fay_error *error)
{
	struct fay_zones zones = { 0 };
	struct fay_maps maps;
	int code;

	if (!install->on_top)
		return 0;
	code = fay_maps_read(stop->pid, &maps, error);
	if (code)
		return code;
	code = fay_zones_read(&maps, stop->memory, &zones, error);
	for (size_t i = 0; i < install->plan->order_count && !code; i++) {
		const struct fay_site *site = &install->plan->sites[install->plan->order[i]];
		struct fay_zone_chain chain;

		if (!site->lower_part)
			continue;
		if (!fay_zones_chain(&zones, site->site, fay_site_before(install->plan, site),
				     &chain) ||
		    chain.part->inner != site->lower_part)
			code = fay_error_set(error, FAY_E_LIMIT,
					     "process %d: its traces keep changing", (int)stop->pid)
				       ? -1
				       : -1;
		else if (really)
			fay_stop_write(stop, chain.lowest_link, &site->patch.displaced,
				       sizeof(site->patch.displaced));
	}
	fay_zones_deinit(&zones);
	fay_maps_deinit(&maps);
	return code;
}

/* The zones' records are written last: a mark without its increment could take away somebody
 * else's. */
static int count_markers(struct fay_install *install, struct fay_stop *stop,
			 struct fay_error *error)
{
	for (size_t z = 0; z < install->plan->zone_count; z++) {
		struct fay_zone_plan *zone = &install->plan->zones[z];
		uint8_t *at = zone->data + sizeof(zone->header);

		for (uint32_t i = 0; i < zone->header.patch_count;
		     i++, at += sizeof(struct fay_zone_patch)) {
			struct fay_zone_patch *patch = (void *)at;
			uint64_t there = zone->header.data + (uint64_t)(at - zone->data);

			if (!patch->semaphore)
				continue;
			if (!fay_semaphore_add(stop, patch->semaphore, 1))
				return fay_error_set(error, FAY_E_REFUSED,
						     "process %d: a USDT probe's semaphore at %#lx "
						     "cannot be incremented",
						     (int)stop->pid,
						     (unsigned long)patch->semaphore);
			patch->counted = 1;
			fay_stop_write(stop, there, patch, sizeof(*patch));
		}
	}
	return 0;
}

static void uncount_markers(struct fay_install *install, struct fay_stop *stop)
{
	for (size_t z = 0; z < install->plan->zone_count; z++) {
		struct fay_zone_patch *patches =
			(void *)(install->plan->zones[z].data + sizeof(struct fay_zone_header));

		for (uint32_t i = 0; i < install->plan->zones[z].header.patch_count; i++)
			if (patches[i].counted) {
				fay_semaphore_add(stop, patches[i].semaphore, -1);
				patches[i].counted = 0;
			}
	}
}

/* glibc keeps the thread id in the thread control block; true if it does so in every thread of this
 * target. */
static bool tcb_has_tid(const struct fay_install *install, const struct fay_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		const struct fay_stopped_thread *thread = &stop->threads[i];
		uint32_t tid;

		if (thread->gone || !thread->stopped)
			continue;
		if (fay_stop_read(stop,
				  thread->registers.fs_base + (uint64_t)install->plan->tid_offset,
				  &tid, 4) ||
		    tid != (uint32_t)fay_inner_id(install->plan->pid, thread->tid))
			return false;
	}
	return true;
}

/* The ABI's thread pointer: the word at fs:0 is the fs base. Not so before the dynamic linker has
 * run, or in some runtimes without libc. */
static bool have_thread_pointer(const struct fay_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		const struct fay_stopped_thread *thread = &stop->threads[i];
		uint64_t self;

		if (thread->gone || !thread->stopped)
			continue;
		if (fay_stop_read(stop, thread->registers.fs_base, &self, 8) ||
		    self != thread->registers.fs_base)
			return false;
	}
	return true;
}

/* One that is killed meanwhile needs its time to end. */
static bool goes_on(pid_t pid)
{
	for (unsigned round = 0; round < FAY_LEADER_ROUNDS; round++) {
		if (!fay_process_start(pid))
			return false;
		fay_stop_pause();
	}
	return true;
}

int fay_install_stopped(struct fay_install *install, struct fay_stop *stop, struct fay_error *error)
{
	int code;

	if (!fay_install_none_writable(install, stop)) {
		fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing",
			      (int)stop->pid);
		return -1;
	}
	if (install->plan->thread_pointer && !have_thread_pointer(stop)) {
		install->plan->thread_pointer = false;
		fay_error_set(error, FAY_E_INTERNAL, "process %d: fs:0 is not the thread pointer",
			      (int)stop->pid);
		return -1;
	}
	if (install->plan->tid_offset >= 0 && fay_plan_reads(install->plan, FAY_FIELD_TID) &&
	    !tcb_has_tid(install, stop)) {
		install->plan->tid_offset = -1;
		fay_error_set(error, FAY_E_INTERNAL,
			      "process %d: no thread id in the control block", (int)stop->pid);
		return -1;
	}
	if (!fay_install_none_interrupted(install, stop)) {
		fay_error_set(error, FAY_E_LIMIT,
			      "process %d: a thread stays interrupted by a signal within a "
			      "function's first instructions",
			      (int)stop->pid);
		return -1;
	}
	code = go_on_top(install, stop, false, error);
	if (code)
		return code;
	fay_install_stacks(install, stop);
	code = fay_install_memory(install, stop, error);
	if (!code && !fay_install_move_threads(install, stop, false)) {
		fay_error_set(error, FAY_E_LIMIT,
			      "process %d: a thread stays inside the bytes to patch",
			      (int)stop->pid);
		code = -1;
	}
	if (!code)
		code = patch_all(install, stop, error);
	/* Behind the comparison: the semaphores lie where the modules were. */
	if (!code && (code = count_markers(install, stop, error)))
		put_back_first(install, stop, install->site_count);
	if (code) {
		uncount_markers(install, stop);
		if (!fay_install_undo(install, stop) && goes_on(stop->pid))
			code = fay_error_set(error, FAY_E_LIMIT,
					     "process %d: attaching failed, and memory that fay "
					     "had mapped there could not be unmapped",
					     (int)stop->pid);
	} else {
		go_on_top(install, stop, true, NULL);
		fay_install_move_threads(install, stop, true);
	}
	return code;
}
