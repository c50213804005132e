/* SPDX-License-Identifier: MIT */
/* A place that is to be patched, beside those of other sessions. */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Another trace's patch that overlaps, but is not at the same address. */
static bool other_patch_near(const struct fay_zones *present, const struct fay_site *site)
{
	for (size_t i = 0; i < present->count; i++) {
		const struct fay_zone *zone = &present->items[i];
		uint64_t low = site->site > UINT8_MAX ? site->site - UINT8_MAX : 0;

		for (uint32_t k = fay_zone_first_at(zone, low); k < zone->header.patch_count; k++) {
			const struct fay_zone_patch *patch = &zone->patches[zone->by_site[k]];
			uint64_t reach = patch->length > patch->size ? patch->length : patch->size;

			if (patch->site >= site->site + site->reach)
				break;
			if (patch->kind != FAY_PATCH_PART && patch->site != site->site &&
			    patch->site + reach > site->site && !patch->removed)
				return true;
		}
	}
	return false;
}

static int8_t hop_of(const struct fay_site *site)
{
	return (int8_t)(site->hole - (site->site + FAY_HOP_BYTES));
}

/* Several sessions' short jumps at a site are the same bytes: whose is the uppermost is told by the
 * hole. */
static const struct fay_zone_patch *uppermost(struct fay_planner *planner,
					      const struct fay_site *site,
					      const struct fay_zone_patch *patch)
{
	uint8_t jump[FAY_JUMP_BYTES];
	const struct fay_zone_patch *hole, *above;

	if (!site->hole ||
	    fay_text_now(&planner->text, site->hole, jump, sizeof(jump)) != sizeof(jump))
		return patch;
	hole = fay_zones_patch_at(planner->text.present, site->hole, jump);
	for (size_t i = 0; hole && i < planner->text.present->count; i++) {
		const struct fay_zone *zone = &planner->text.present->items[i];
		uint32_t at = fay_zone_first_at(zone, site->site);

		while (hole >= zone->patches && hole < zone->patches + zone->header.patch_count &&
		       (above = fay_zone_next_at(zone, site->site, &at)))
			if (above->size == FAY_HOP_BYTES)
				return above;
	}
	return patch;
}

/* Where the trampoline goes on, if another session's jump is at the site. */
static bool link_to(const struct fay_planner *planner, struct fay_site *site,
		    const struct fay_zone_patch *patch)
{
	const struct fay_zones *present = planner->text.present;
	struct fay_zone_chain chain;
	bool whole = site->kind == FAY_SITE_PLACE && !site->back && !site->exit_count;
	static const uint8_t kinds[] = { [FAY_SITE_PLACE] = FAY_PATCH_PLACE,
					 [FAY_SITE_EXIT] = FAY_PATCH_EXIT,
					 [FAY_SITE_REDIRECT] = FAY_PATCH_REDIRECT };

	if (site->kind == FAY_SITE_HOLE)
		return patch->kind == FAY_PATCH_HOLE;
	/* The others' copies may go on where the hole is here, or where a block was. */
	if (fay_site_closed(site) > fay_site_overwritten(site) ||
	    (site->leads && patch->kind == FAY_PATCH_PLACE && !patch->whole))
		return false;
	if (site->kind == FAY_SITE_BLOCK ||
	    (site->hole && (site->kind != FAY_SITE_EXIT || patch->size != FAY_HOP_BYTES ||
			    patch->hop != hop_of(site))))
		return false;
	if (fay_site_whole(site)) {
		if (!fay_zones_chain(present, site->site, fay_site_before(planner->plan, site),
				     &chain))
			return false;
		site->lower = patch->trampoline;
		site->lower_part = chain.part->inner;
		return true;
	}
	/* all that it does is done behind what is done here */
	if (whole && patch->kind != FAY_PATCH_REDIRECT) {
		site->lower = patch->trampoline;
		return true;
	}
	if (patch->kind != kinds[site->kind] || patch->back != site->back)
		return false;
	site->lower = patch->inner;
	if (site->kind == FAY_SITE_REDIRECT && site->block == FAY_FLOW_ENTRY)
		return !patch->inner; /* both lead past the entry's jump */
	if (site->kind == FAY_SITE_EXIT && !site->exit_count)
		return !patch->inner;
	return patch->inner && (site->kind != FAY_SITE_EXIT || site->exit_count == 1);
}

static bool link_plan(struct fay_planner *planner, struct fay_site *site,
		      char reason[FAY_REASON_MAX])
{
	uint8_t *before = fay_site_before(planner->plan, site);
	const uint8_t *program = fay_site_program(planner->plan, site);
	const struct fay_zone_patch *patch;

	site->linked = memcmp(before, program,
			      site->size < FAY_JUMP_BYTES ? site->size : FAY_JUMP_BYTES) != 0;
	if (!site->linked)
		return true;
	patch = fay_zones_patch_at(planner->text.present, site->site, before);
	/* patched between two looks: installing will see that, and all is planned anew */
	if (!patch) {
		memcpy(before, program, site->size);
		site->linked = false;
		return true;
	}
	patch = uppermost(planner, site, patch);
	return link_to(planner, site, patch) ||
	       snprintf(reason, FAY_REASON_MAX,
			"has been patched by another trace, at another patch point") < 0;
}

static bool given_up(const struct fay_plan *plan, const struct fay_site *site)
{
	for (size_t i = 0; i < plan->given_up_count; i++)
		if (plan->given_up[i] == site->site)
			return true;
	return false;
}

/* Reads the site's bytes. False: they cannot be, or (*no_memory) memory is out. */
static bool read_bytes(struct fay_planner *planner, struct fay_site *site, bool *no_memory)
{
	struct fay_plan *plan = planner->plan;
	size_t size = 2 * fay_site_room(site);

	*no_memory = false;
	if (plan->byte_room - plan->byte_count < size) {
		size_t room = 2 * plan->byte_room + 4096;
		uint8_t *grown = realloc(plan->bytes, room);

		if (!grown)
			return *no_memory = true, false;
		plan->bytes = grown;
		plan->byte_room = room;
	}
	site->bytes = plan->byte_count;
	memset(plan->bytes + site->bytes, 0, size);
	plan->byte_count += size;
	return fay_text_program(&planner->text, site->site, fay_site_program(plan, site),
				site->size) == site->size &&
	       fay_text_now(&planner->text, site->site, fay_site_before(plan, site), site->size) ==
		       site->size;
}

/* A new site of the point being planned, its bytes read and compared. NULL: `reason` says why not;
 * "": out of memory. */
struct fay_site *fay_site_add(struct fay_planner *planner, size_t point, const struct fay_site *as,
			      char reason[FAY_REASON_MAX])
{
	struct fay_plan *plan = planner->plan;
	uint64_t start = plan->points[point].function.address - plan->points[point].offset;
	struct fay_site *site;
	bool no_memory;

	*reason = 0;
	if (plan->site_count == plan->site_room) {
		size_t room = plan->site_room ? 2 * plan->site_room : 256;
		struct fay_site *grown = realloc(plan->sites, room * sizeof(*grown));

		if (!grown)
			return NULL;
		plan->sites = grown;
		plan->site_room = room;
	}
	site = &plan->sites[plan->site_count];
	*site = *as;
	site->point = point;
	site->usable = true;
	site->size = site->length > fay_site_overwritten(site) || site->kind == FAY_SITE_BLOCK
			     ? site->length
			     : fay_site_overwritten(site);
	if (!site->reach)
		site->reach = site->size;
	if (!read_bytes(planner, site, &no_memory)) {
		if (!no_memory)
			snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return NULL;
	}
	if (given_up(plan, site)) {
		snprintf(reason, FAY_REASON_MAX,
			 "always has a thread that returns to within its first instructions");
		return NULL;
	}
	if (other_patch_near(planner->text.present, site)) {
		snprintf(reason, FAY_REASON_MAX,
			 "has been patched by another trace too close to +%#lx",
			 (unsigned long)(site->site - start));
		return NULL;
	}
	if (fay_rseqs_touch(&plan->rseqs, site->site, (unsigned)site->length)) {
		snprintf(reason, FAY_REASON_MAX,
			 "has a restartable sequence (rseq) at +%#lx, which cannot run elsewhere",
			 (unsigned long)(site->site - start));
		return NULL;
	}
	if (!link_plan(planner, site, reason))
		return NULL;
	plan->site_count++;
	plan->points[point].site_count++;
	return site;
}
