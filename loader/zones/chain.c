/* SPDX-License-Identifier: MIT */
/* One patch, out of the chain of those that lie at its place: the program's bytes come back, or the
 * session above goes on where this one did. */
#include "zone_private.h"

#include <string.h>

#define INT3 0xccu

/*
 * Whoever lies directly over `patch` goes on where it went on. These may be several: what a session
 * that was taken out left behind, because a thread stands in it, was over the same jump as the
 * session that came next, and its thread still goes on from there. True if one of them is reached
 * from the site.
 */
static bool hand_on(struct fay_zones *zones, uint64_t session, const uint8_t jump[FAY_JUMP_BYTES],
		    const struct fay_zone_patch *patch)
{
	bool reached = false;

	for (size_t i = 0; i < zones->count; i++) {
		struct fay_zone *zone = &zones->items[i];
		uint32_t at = fay_zone_first_at(zone, patch->site);
		struct fay_zone_patch *above;

		if (zone->header.session == session)
			continue;
		while ((above = fay_zone_next_at(zone, patch->site, &at))) {
			if (above->kind == FAY_PATCH_PART || above->size != patch->size ||
			    memcmp(above->original, jump, patch->size))
				continue;
			memcpy(above->original, patch->original, patch->size);
			above->link = patch->linked && patch->link != patch->displaced
					      ? patch->link
					      : above->displaced;
			zone->dirty = true;
			reached |= !above->removed;
		}
	}
	return reached;
}

/* The same for what is known by its link alone: parts in front of exits, and trampolines that short
 * jumps lead to. */
static void hand_on_link(struct fay_zones *zones, uint64_t session,
			 const struct fay_zone_patch *patch)
{
	uint64_t own = patch->kind == FAY_PATCH_PART ? patch->trampoline : patch->displaced;

	for (size_t i = 0; i < zones->count; i++) {
		struct fay_zone *zone = &zones->items[i];
		uint32_t at = fay_zone_first_at(zone, patch->site);
		struct fay_zone_patch *above;

		if (zone->header.session == session)
			continue;
		while ((above = fay_zone_next_at(zone, patch->site, &at))) {
			if (above->kind != patch->kind || above->size != patch->size ||
			    above->link != patch->inner)
				continue;
			above->link = patch->linked && patch->link != own ? patch->link
				      : above->kind == FAY_PATCH_PART     ? above->trampoline
									  : above->displaced;
			zone->dirty = true;
		}
	}
}

/* Whether some other session has the same short jump there. */
static bool is_shared(const struct fay_zones *zones, uint64_t session,
		      const struct fay_zone_patch *patch)
{
	for (size_t i = 0; i < zones->count; i++) {
		const struct fay_zone *zone = &zones->items[i];
		uint32_t at = fay_zone_first_at(zone, patch->site);
		const struct fay_zone_patch *other;

		if (zone->header.session == session)
			continue;
		while ((other = fay_zone_next_at(zone, patch->site, &at)))
			if (other->size == FAY_HOP_BYTES && other->hop == patch->hop &&
			    !other->removed)
				return true;
	}
	return false;
}

/* The lowest session that has the function whole goes on in the copy of the uppermost: of the next
 * one, if that goes. */
static void hand_on_copy(struct fay_zones *zones, uint64_t session,
			 const struct fay_zone_patch *patch)
{
	struct fay_zone_chain chain;

	if (!patch->whole || !fay_zones_chain(zones, patch->site, patch->original, &chain) ||
	    chain.lowest->link != patch->displaced)
		return;
	for (size_t i = 0; i < zones->count; i++)
		if (zones->items[i].header.session != session &&
		    chain.lowest >= zones->items[i].patches &&
		    chain.lowest < zones->items[i].patches + zones->items[i].header.patch_count) {
			chain.lowest->link = chain.top->displaced;
			zones->items[i].dirty = true;
		}
}

/* Takes the jump away, wherever it is, here: see fay_changes_write(). True if nothing leads to this
 * patch any more. */
bool fay_patch_take_out(struct fay_text *text, struct fay_zones *zones, uint64_t session,
			const struct fay_zone_patch *patch)
{
	const uint8_t *now = fay_text_at(text, patch->site, patch->size);
	uint8_t jump[FAY_JUMP_BYTES];
	bool reached;

	if (patch->kind == FAY_PATCH_PART || patch->size == FAY_HOP_BYTES)
		hand_on_link(zones, session, patch);
	if (patch->kind == FAY_PATCH_PART ||
	    (patch->size == FAY_HOP_BYTES && is_shared(zones, session, patch)))
		return true;
	hand_on_copy(zones, session, patch);
	fay_patch_encode(patch, jump);
	reached = hand_on(zones, session, jump, patch);
	if (!now)
		return true; /* the module was unloaded */
	if (!memcmp(now, jump, patch->size))
		return fay_text_change(text, patch->site, patch->original, patch->size);
	/*
	 * A uprobe was set at the jump. The kernel knows the program's first byte from the file,
	 * and puts that back when the uprobe goes; the others are ours to restore. (A debugger's
	 * int3 would cover our byte: but no debugger holds a process that we hold.)
	 */
	if (now[0] == INT3 && patch->original[0] != INT3 &&
	    !memcmp(now + 1, jump + 1, patch->size - 1u))
		return fay_text_change(text, patch->site + 1, patch->original + 1,
				       patch->size - 1u);
	/* Else put back by someone, or overwritten by something that is not ours and may lead
	 * here. */
	return reached || !memcmp(now, patch->original, patch->size);
}

/*
 * What was changed here goes to the target: zones' records, then the program's pages. A fay that is
 * killed between any two of these writes leaves every place valid: at each step a site holds the
 * program's bytes or a jump to a trampoline that is still mapped.
 */
bool fay_changes_write(struct fay_stop *stop, struct fay_zones *zones, struct fay_text *text)
{
	bool done = true;

	for (size_t i = 0; i < zones->count; i++) {
		struct fay_zone *zone = &zones->items[i];

		if (zone->dirty)
			done &= fay_stop_write(stop, zone->header.data + sizeof(zone->header),
					       zone->patches,
					       zone->header.patch_count * sizeof(*zone->patches)) ==
				0;
		zone->dirty = false;
	}
	return fay_text_write(text, stop->memory) == 0 && done;
}
