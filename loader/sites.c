/* SPDX-License-Identifier: MIT */
/*
 * From points to the places where their jumps are written. Each is read and judged before anything
 * is stopped; a point that cannot be patched is set aside with its reason and the others go on.
 * Where only its exits cannot be, its entry is still patched.
 *
 * Two sites must not overlap, neither of one session nor of two, but that several sessions may have
 * theirs at the same address: then the trampolines are run one after the other (zone.c). For an
 * exit that holds if the windows are the same and have no other exit.
 */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bisect.h"
#include "flow_code.h"
#include "target.h"

#define BODY_MAX (1u << 20) /* bytes of a function that are searched for jumps to its start */
#define BODY_TAIL 32u
/* of taking away what overlaps, or is entered; then the whole points are taken away */
#define ROUNDS 6u

struct planner {
	struct fay_session *session;
	struct fay_program_text text;
	uint8_t *body; /* BODY_MAX + BODY_TAIL */
};

bool fay_point_enters(const struct fay_session *session, const struct fay_point *point)
{
	for (uint32_t i = 0; i < point->probe_count; i++)
		if (!fay_trampoline_watches(&session->verdict->probes[point->probes[i]]))
			return true;
	return point->hook != FAY_HOOK_NONE;
}

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
static const struct fay_zone_patch *uppermost(struct planner *planner, const struct fay_site *site,
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
static bool link_to(const struct fay_zones *present, struct fay_site *site,
		    const struct fay_zone_patch *patch)
{
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
		if (!fay_zones_chain(present, site->site, site->before, &chain))
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

static bool link_plan(struct planner *planner, struct fay_site *site, char reason[FAY_REASON_MAX])
{
	const struct fay_zone_patch *patch;

	site->linked = memcmp(site->before, site->program,
			      site->size < FAY_JUMP_BYTES ? site->size : FAY_JUMP_BYTES) != 0;
	if (!site->linked)
		return true;
	patch = fay_zones_patch_at(planner->text.present, site->site, site->before);
	/* patched between two looks: installing will see that, and all is planned anew */
	if (!patch) {
		memcpy(site->before, site->program, site->size);
		site->linked = false;
		return true;
	}
	patch = uppermost(planner, site, patch);
	return link_to(planner->text.present, site, patch) ||
	       snprintf(reason, FAY_REASON_MAX,
			"has been patched by another trace, for another place") < 0;
}

static bool given_up(const struct fay_session *session, const struct fay_site *site)
{
	for (size_t i = 0; i < session->given_up_count; i++)
		if (session->given_up[i] == site->site)
			return true;
	return false;
}

/* A new site of the point being planned, its bytes read and compared. NULL: `reason` says why not;
 * "": out of memory. */
static struct fay_site *site_add(struct planner *planner, size_t point, const struct fay_site *as,
				 char reason[FAY_REASON_MAX])
{
	struct fay_session *session = planner->session;
	uint64_t start = session->points[point].function.address - session->points[point].offset;
	struct fay_site *site;

	*reason = 0;
	if (session->site_count == session->site_room) {
		size_t room = session->site_room ? 2 * session->site_room : 256;
		struct fay_site *grown = realloc(session->sites, room * sizeof(*grown));

		if (!grown)
			return NULL;
		session->sites = grown;
		session->site_room = room;
	}
	site = &session->sites[session->site_count];
	*site = *as;
	site->point = point;
	site->usable = true;
	site->size = site->length > fay_site_overwritten(site) || site->kind == FAY_SITE_BLOCK
			     ? site->length
			     : fay_site_overwritten(site);
	if (!site->reach)
		site->reach = site->size;
	if (fay_text_program(&planner->text, site->site, site->program, site->size) != site->size ||
	    fay_text_now(&planner->text, site->site, site->before, site->size) != site->size)
		return snprintf(reason, FAY_REASON_MAX, "is not readable in the process") < 0
			       ? site
			       : NULL;
	if (given_up(session, site)) {
		snprintf(reason, FAY_REASON_MAX,
			 "is where some thread's stack always goes on, within its first "
			 "instructions");
		return NULL;
	}
	if (other_patch_near(planner->text.present, site)) {
		snprintf(reason, FAY_REASON_MAX,
			 "has been patched by another trace too close to +%#lx",
			 (unsigned long)(site->site - start));
		return NULL;
	}
	if (fay_rseqs_touch(&session->rseqs, site->site, (unsigned)site->length)) {
		snprintf(reason, FAY_REASON_MAX,
			 "has a restartable sequence (rseq) at +%#lx, which cannot run elsewhere",
			 (unsigned long)(site->site - start));
		return NULL;
	}
	if (!link_plan(planner, site, reason))
		return NULL;
	session->site_count++;
	session->points[point].site_count++;
	return site;
}

/* How many bytes the instructions are that a jump at `bytes` overwrites; 0: they cannot be moved.
 * */
static unsigned displaced_length(const struct fay_point *point, const uint8_t *bytes,
				 size_t available, unsigned need, uint64_t address,
				 char reason[FAY_REASON_MAX])
{
	struct fay_displaced displaced;

	if (!fay_displace(bytes, available, need, address, address, &displaced, reason))
		return 0;
	/* Go's handler goes by what lies on the stack. */
	if (!point->keeps_faults || point->stack_moves || !fay_code_faults(bytes, displaced.length))
		return displaced.length;
	snprintf(reason, FAY_REASON_MAX,
		 "has an instruction within its first %u bytes whose fault is an exception",
		 displaced.length);
	return 0;
}

/* At the place itself, or, for a marker, before it. */
static bool place_jump(struct fay_point *point, const uint8_t *body, size_t size, size_t tail,
		       struct fay_site *site, char reason[FAY_REASON_MAX])
{
	uint64_t start = point->function.address - point->offset;
	size_t at = point->offset;

	if (!fay_patchable_at(body, size, tail, start, point->offset, reason)) {
		if (!point->marker || !fay_patchable_before(body, size, start, point->offset, &at))
			return false;
		site->back = (uint8_t)(point->offset - at);
	}
	site->site = start + at;
	site->length = (uint8_t)displaced_length(point, body + at, size + tail - at,
						 site->back ? site->back + 1u : FAY_JUMP_BYTES,
						 site->site, reason);
	return site->length != 0;
}

static bool inside_plan(struct planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	struct fay_point *point = &planner->session->points[index];
	struct fay_site site = { .kind = FAY_SITE_PLACE };
	size_t size = point->offset + point->function.size, got;

	if (point->marker && *point->marker->reason) {
		snprintf(reason, FAY_REASON_MAX, "%s", point->marker->reason);
		return false;
	}
	if (point->function.size == 0 || point->offset > BODY_MAX || size > BODY_MAX) {
		snprintf(reason, FAY_REASON_MAX, "has no byte +%#lx, or is longer than %u bytes",
			 (unsigned long)point->offset, BODY_MAX);
		return false;
	}
	got = fay_text_program(&planner->text, point->function.address - point->offset,
			       planner->body, size + BODY_TAIL);
	if (got < size) {
		snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return false;
	}
	return place_jump(point, planner->body, size, got - size, &site, reason) &&
	       site_add(planner, index, &site, reason);
}

/* The jumps back to the first instruction are redirected, too. */
static bool backs_plan(struct planner *planner, size_t index, const struct fay_backs *backs,
		       char reason[FAY_REASON_MAX])
{
	for (unsigned i = 0; i < backs->count; i++) {
		struct fay_site back = { .kind = FAY_SITE_REDIRECT,
					 .block = FAY_FLOW_ENTRY,
					 .site = planner->session->points[index].function.address +
						 backs->at[i] };

		if (!site_add(planner, index, &back, reason))
			return false;
	}
	return true;
}

static bool may_patch_entry(const struct fay_session *session, const struct fay_point *point,
			    bool endbr64, char reason[FAY_REASON_MAX])
{
	if (session->jumps_followed && point->probe_count && !endbr64)
		return snprintf(reason, FAY_REASON_MAX,
				"begins without endbr64 in a program with PyPy, whose compiler "
				"follows a jump at a function's first byte and would call a "
				"trampoline that is gone") < 0;
	return true;
}

/* The entry alone. */
static bool entry_plan(struct planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	struct fay_point *point = &planner->session->points[index];
	static const uint8_t endbr64[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct fay_site site = { .kind = FAY_SITE_PLACE };
	size_t size = point->function.size, got, at;
	struct fay_backs backs;

	if (size > BODY_MAX) {
		snprintf(reason, FAY_REASON_MAX,
			 "is %zu bytes long; functions over %u are not searched for jumps to their "
			 "start",
			 size, BODY_MAX);
		return false;
	}
	got = fay_text_program(&planner->text, point->function.address, planner->body,
			       size + BODY_TAIL);
	if (got < size || got == 0) {
		snprintf(reason, FAY_REASON_MAX, "is not readable in the process");
		return false;
	}
	if (!may_patch_entry(planner->session, point,
			     got >= 4 && !memcmp(planner->body, endbr64, 4), reason) ||
	    !fay_patchable(planner->body, size, got - size, point->function.address, &at, &backs,
			   reason))
		return false;
	site.site = point->function.address + at;
	site.length = (uint8_t)displaced_length(point, planner->body + at, got - at, FAY_JUMP_BYTES,
						site.site, reason);
	return site.length && site_add(planner, index, &site, reason) &&
	       backs_plan(planner, index, &backs, reason);
}

/* Holes may lie in a window, behind what is overwritten of it. */
static uint8_t window_reach(const struct fay_flow *flow, const struct fay_window *window)
{
	uint64_t reach = window->length;

	for (size_t i = 0; i < flow->window_count; i++) {
		uint64_t at = flow->windows[i].hole - window->site;

		if (flow->windows[i].hole && at < reach)
			reach = at;
	}
	return (uint8_t)reach;
}

/* The windows and redirects that its flow has; the entry's among them if that is patched. */
static bool exits_plan(struct planner *planner, size_t index, bool enters,
		       char reason[FAY_REASON_MAX])
{
	struct fay_point *point = &planner->session->points[index];
	const struct fay_flow *flow = point->flow;

	for (size_t i = 0; i < flow->window_count; i++) {
		const struct fay_window *window = &flow->windows[i];
		struct fay_site site = { .kind = window->entry ? FAY_SITE_PLACE : FAY_SITE_EXIT,
					 .site = window->site,
					 .length = (uint8_t)window->length,
					 .ends = window->ends,
					 .leads = window->leads,
					 .first_exit = window->first,
					 .exit_count = window->count,
					 .hole = window->hole,
					 .reach = window_reach(flow, window) };

		if (window->entry && !enters && !window->count && !window->hosts && !window->leads)
			continue;
		if (window->entry &&
		    !may_patch_entry(planner->session, point,
				     window->site != point->function.address, reason))
			return false;
		if (window->length > FAY_FLOW_WINDOW_MAX)
			return snprintf(reason, FAY_REASON_MAX,
					"has a window too long (internal)") < 0;
		if (window->count == 1 && !window->entry)
			site.back = (uint8_t)(flow->exits[window->first].at - window->site);
		if (!site_add(planner, index, &site, reason))
			return false;
	}
	for (size_t i = 0, count = point->site_count; i < count; i++) {
		struct fay_site hole = {
			.kind = FAY_SITE_HOLE,
			.site = planner->session->sites[point->first_site + i].hole,
			.block = (uint32_t)i
		};

		if (hole.site && !site_add(planner, index, &hole, reason))
			return false;
	}
	if (point->stack_moves && fay_point_records(planner->session, point))
		return snprintf(reason, FAY_REASON_MAX,
				"is a function of Go, whose stacks are small and move: ends of its "
				"calls are counted without durations and exceptions") < 0;
	if (!flow->exit_count && !enters)
		return snprintf(reason, FAY_REASON_MAX, "has no exit: it never returns") < 0;
	for (size_t i = 0; i < flow->redirect_count; i++) {
		struct fay_site site = { .kind = FAY_SITE_REDIRECT,
					 .site = flow->redirects[i].site,
					 .block = flow->redirects[i].block };

		if (site.block == FAY_FLOW_ENTRY && !enters)
			continue;
		if (site.block != FAY_FLOW_ENTRY)
			site.back = (uint8_t)(flow->exits[flow->blocks[site.block].exit].at -
					      flow->blocks[site.block].at);
		if (!site_add(planner, index, &site, reason))
			return false;
	}
	for (size_t i = 0; i < flow->block_count; i++) {
		const struct fay_block *block = &flow->blocks[i];
		struct fay_site site = { .kind = FAY_SITE_BLOCK,
					 .site = block->at,
					 .length = (uint8_t)block->length,
					 .ends = true,
					 .first_exit = block->exit,
					 .exit_count = 1,
					 .block = (uint32_t)i };

		if (block->length > FAY_FLOW_WINDOW_MAX)
			return snprintf(reason, FAY_REASON_MAX,
					"has a window too long (internal)") < 0;
		if (!site_add(planner, index, &site, reason))
			return false;
	}
	if (enters && (!point->site_count ||
		       planner->session->sites[point->first_site].kind != FAY_SITE_PLACE))
		return snprintf(reason, FAY_REASON_MAX, "has an entry that cannot be patched") < 0;
	return true;
}

/* What was planned of a point is nothing any more. */
static void sites_drop(struct fay_session *session, struct fay_point *point)
{
	for (size_t i = 0; i < point->site_count; i++)
		session->sites[point->first_site + i].usable = false;
	point->first_site = session->site_count;
	point->site_count = 0;
	point->exits = false;
}

static int refuse_exits(struct fay_session *session, struct fay_point *point, const char *reason)
{
	char text[2 * FAY_REASON_MAX];

	sites_drop(session, point);
	if (point->whole && !point->leaves) /* nobody wanted them */
		return point->no_whole = true, 0;
	if (!point->no_exits)
		point->no_exits = strdup(reason);
	if (!point->no_exits)
		return -1;
	if (!fay_point_enters(session, point))
		return 0; /* it will be set aside as a whole */
	snprintf(text, sizeof(text), "%s; its returns are not traced", reason);
	return fay_session_note(session, point, text);
}

static bool out_of_memory(char reason[FAY_REASON_MAX])
{
	*reason = 0;
	return false;
}

/* False, with a reason: it is set aside. An empty reason: out of memory. */
static bool point_plan(struct planner *planner, size_t index, char reason[FAY_REASON_MAX])
{
	struct fay_session *session = planner->session;
	struct fay_point *point = &session->points[index];
	bool enters = fay_point_enters(session, point) || fay_point_records(session, point);

	sites_drop(session, point);
	if (fay_rendezvous_unsettled(session, point, reason))
		return false;
	if (point->untraced)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->untraced) < 0;
	if (point->inside)
		return inside_plan(planner, index, reason);
	if (fay_unpatchable(point->function.name, reason))
		return false;
	if (point->leaves && strstr(point->function.name, ".cold"))
		return snprintf(reason, FAY_REASON_MAX,
				"is not entered by a call (part of a function)") < 0;
	if (point->argless)
		return snprintf(reason, FAY_REASON_MAX, "%s", point->argless) < 0;
	if (point->whole && !point->leaves && !point->helper && point->flow && !point->no_whole) {
		point->exits = exits_plan(planner, index, true, reason);
		if (point->exits)
			return true;
		refuse_exits(session, point, reason);
	} else if ((point->leaves || point->helper) && point->flow && !point->no_exits) {
		point->exits = !*point->flow->reason && exits_plan(planner, index, enters, reason);
		if (point->exits)
			return true;
		if (refuse_exits(session, point,
				 *point->flow->reason ? point->flow->reason : reason))
			return out_of_memory(reason);
	} else if (point->leaves && point->no_exits &&
		   refuse_exits(session, point, point->no_exits)) {
		return out_of_memory(reason);
	}
	if (!fay_point_enters(session, point))
		return snprintf(reason, FAY_REASON_MAX, "%s",
				point->no_exits ? point->no_exits : "cannot be read (internal)") <
		       0;
	return entry_plan(planner, index, reason);
}

/* Plans one point. -1: out of memory. */
static int plan_one(struct planner *planner, size_t index)
{
	struct fay_session *session = planner->session;
	struct fay_point *point = &session->points[index];
	char reason[FAY_REASON_MAX] = "";

	point->usable = true;
	if (point->hook == FAY_HOOK_MODULES)
		*session->unhooked = 0;
	if (point_plan(planner, index, reason))
		return 0;
	sites_drop(session, point);
	if (!*reason)
		return -1;
	return fay_session_skip(session, point, reason);
}

static int by_site(const void *a, const void *b, void *context)
{
	const struct fay_site *sites = context, *x = &sites[*(const uint32_t *)a],
			      *y = &sites[*(const uint32_t *)b];

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->point < y->point ? -1 : x->point > y->point;
}

static bool order_make(struct fay_session *session)
{
	uint32_t *order = realloc(session->order, (session->site_count + 1) * sizeof(*order));

	if (!order)
		return false;
	session->order = order;
	session->order_count = 0;
	for (size_t i = 0; i < session->site_count; i++)
		if (session->sites[i].usable && session->sites[i].kind != FAY_SITE_BLOCK &&
		    session->points[session->sites[i].point].usable)
			order[session->order_count++] = (uint32_t)i;
	qsort_r(order, session->order_count, sizeof(*order), by_site, session->sites);
	return true;
}

static uint64_t reach_closed(const struct fay_site *site)
{
	return site->size > site->reach ? site->size : site->reach;
}

static size_t order_below(const struct fay_session *session, uint64_t address)
{
	size_t low = 0, high = session->order_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (session->sites[session->order[middle]].site < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool fay_site_between(const struct fay_session *session, uint64_t low, uint64_t high)
{
	return order_below(session, low) < order_below(session, high);
}

struct fay_site *fay_site_around(const struct fay_session *session, uint64_t address)
{
	/* They do not overlap. */
	for (size_t low = order_below(session, address); low-- > 0;) {
		struct fay_site *site = &session->sites[session->order[low]];

		if (address - site->site >= FAY_SITE_BYTES)
			return NULL;
		if (site->usable && session->points[site->point].usable)
			return address < site->site + reach_closed(site) ? site : NULL;
	}
	return NULL;
}

int fay_site_refuse(struct fay_session *session, struct fay_site *site, const char *reason)
{
	struct fay_point *point = &session->points[site->point];

	/* Without its exits it has another plan, which is looked at again. */
	if (point->exits)
		return refuse_exits(session, point, reason);
	sites_drop(session, point);
	return fay_session_skip(session, point, reason);
}

/* Of two that overlap, a function's exits go first; then what comes behind. */
static int refuse_overlap(struct fay_session *session, struct fay_site *one, struct fay_site *next)
{
	const struct fay_point *point = &session->points[one->point],
			       *other = &session->points[next->point];
	uint64_t start = point->function.address - point->offset;
	char reason[FAY_REASON_MAX];

	if (start == other->function.address - other->offset && !other->exits && !point->exits) {
		snprintf(reason, sizeof(reason), "is traced at +%#lx, which is too close for +%#lx",
			 (unsigned long)point->offset, (unsigned long)other->offset);
		return fay_site_refuse(session, next, reason);
	}
	snprintf(reason, sizeof(reason), "shares its instructions at +%#lx with %.100s",
		 (unsigned long)(next->site - (other->function.address - other->offset)),
		 point->function.name);
	if (other->exits || !point->exits)
		return fay_site_refuse(session, next, reason);
	snprintf(reason, sizeof(reason), "shares its instructions at +%#lx with %.100s",
		 (unsigned long)(one->site - start), other->function.name);
	return fay_site_refuse(session, one, reason);
}

/* Within this session. */
static int refuse_overlaps(struct fay_session *session)
{
	struct fay_site *last = NULL;
	int code = 0;

	for (size_t i = 0; i < session->order_count && !code; i++) {
		struct fay_site *site = &session->sites[session->order[i]];

		if (!site->usable || !session->points[site->point].usable)
			continue;
		if (last && last->usable && last->site + last->reach > site->site)
			code = refuse_overlap(session, last, site);
		if (!last || !last->usable || site->usable)
			last = site;
	}
	return code;
}

/* Points that have lost their sites are planned again. *again: there are such. */
static int replan(struct planner *planner, bool *again)
{
	struct fay_session *session = planner->session;

	*again = false;
	for (size_t i = 0; i < session->point_count; i++) {
		if (!session->points[i].usable || session->points[i].site_count)
			continue;
		*again = true;
		if (plan_one(planner, i))
			return -1;
	}
	return 0;
}

static int plan_all(struct planner *planner, struct fay_error *error)
{
	struct fay_session *session = planner->session;
	bool again = true;

	for (size_t i = 0; i < session->point_count; i++) {
		session->points[i].usable = true;
		session->points[i].site_count = 0;
	}
	for (unsigned round = 0; round < ROUNDS && again; round++) {
		int code;

		if (replan(planner, &again) || !order_make(session) || refuse_overlaps(session))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		code = fay_inbound_search(session, &planner->text, error);
		if (code)
			return code;
		again = false;
		for (size_t i = 0; i < session->point_count; i++)
			again |= session->points[i].usable && !session->points[i].site_count;
	}
	for (size_t i = 0; i < session->point_count && again; i++)
		if (session->points[i].usable && !session->points[i].site_count &&
		    fay_session_skip(session, &session->points[i],
				     "is too close to others, again and again"))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	return order_make(session) ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

int fay_sites_plan(struct fay_session *session, const struct fay_zones *present, int memory,
		   struct fay_error *error)
{
	struct planner planner = { session,
				   { .present = present, .memory = memory },
				   malloc(BODY_MAX + BODY_TAIL) };
	int code = planner.body ? plan_all(&planner, error)
				: fay_error_set(error, FAY_E_LIMIT, "out of memory");

	free(planner.body);
	fay_program_text_deinit(&planner.text);
	return code;
}
