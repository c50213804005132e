/* SPDX-License-Identifier: MIT */
/* All sites of a session together: by address, none over another, planned again until all is well.
 */
#include "plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 6u

static int by_site(const void *a, const void *b, void *context)
{
	const struct fay_site *sites = context, *x = &sites[*(const uint32_t *)a],
			      *y = &sites[*(const uint32_t *)b];

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	return x->point < y->point ? -1 : x->point > y->point;
}

bool fay_sites_order(struct fay_plan *plan)
{
	uint32_t *order = realloc(plan->order, (plan->site_count + 1) * sizeof(*order));

	if (!order)
		return false;
	plan->order = order;
	plan->order_count = 0;
	for (size_t i = 0; i < plan->site_count; i++)
		if (plan->sites[i].usable && plan->sites[i].kind != FAY_SITE_BLOCK &&
		    plan->points[plan->sites[i].point].usable)
			order[plan->order_count++] = (uint32_t)i;
	for (size_t i = 1; i < plan->order_count; i++)
		if (by_site(&order[i - 1], &order[i], plan->sites) > 0) { /* mostly they are */
			qsort_r(order, plan->order_count, sizeof(*order), by_site, plan->sites);
			break;
		}
	return true;
}

static uint64_t reach_closed(const struct fay_site *site)
{
	return site->size > site->reach ? site->size : site->reach;
}

static size_t order_below(const struct fay_plan *plan, uint64_t address)
{
	size_t low = 0, high = plan->order_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (plan->sites[plan->order[middle]].site < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool fay_site_between(const struct fay_plan *plan, uint64_t low, uint64_t high)
{
	return order_below(plan, low) < order_below(plan, high);
}

bool fay_site_over(const struct fay_plan *plan, uint64_t low, uint64_t high)
{
	for (size_t i = order_below(plan, high); i-- > 0;) {
		const struct fay_site *site = &plan->sites[plan->order[i]];
		uint8_t closed = fay_site_closed(site);

		/* no site is longer, and there are some that overlap no more than that */
		if (low - site->site >= FAY_SITE_BYTES && site->site < low)
			return false;
		if (site->usable && plan->points[site->point].usable &&
		    site->site + (site->length > closed ? site->length : closed) > low)
			return true;
	}
	return false;
}

struct fay_site *fay_site_around(const struct fay_plan *plan, uint64_t address)
{
	/* They do not overlap. */
	for (size_t low = order_below(plan, address); low-- > 0;) {
		struct fay_site *site = &plan->sites[plan->order[low]];

		if (address - site->site >= FAY_SITE_BYTES)
			return NULL;
		if (site->usable && plan->points[site->point].usable)
			return address < site->site + reach_closed(site) ? site : NULL;
	}
	return NULL;
}

int fay_site_refuse(struct fay_plan *plan, struct fay_site *site, const char *reason)
{
	struct fay_point *point = &plan->points[site->point];

	/* Without its exits it has another plan, which is looked at again. */
	if (point->exits)
		return fay_site_refuse_exits(plan, point, reason);
	fay_sites_drop(plan, point);
	return fay_plan_skip(plan, point, reason);
}

/* Of two that overlap, a function's exits go first; then what comes behind. */
static int refuse_overlap(struct fay_plan *plan, struct fay_site *one, struct fay_site *next)
{
	struct fay_point *point = &plan->points[one->point], *other = &plan->points[next->point];
	uint64_t start = point->function.address - point->offset;
	char reason[FAY_REASON_MAX];

	point->others_end = other->others_end = true;
	if (start == other->function.address - other->offset && !other->exits && !point->exits) {
		snprintf(reason, sizeof(reason), "is traced at +%#lx, which is too close for +%#lx",
			 (unsigned long)point->offset, (unsigned long)other->offset);
		return fay_site_refuse(plan, next, reason);
	}
	snprintf(reason, sizeof(reason), "shares its instructions at +%#lx with %.100s",
		 (unsigned long)(next->site - (other->function.address - other->offset)),
		 point->function.name);
	if (other->exits || !point->exits)
		return fay_site_refuse(plan, next, reason);
	snprintf(reason, sizeof(reason), "shares its instructions at +%#lx with %.100s",
		 (unsigned long)(one->site - start), other->function.name);
	return fay_site_refuse(plan, one, reason);
}

/* Within this session. */
static int refuse_overlaps(struct fay_plan *plan)
{
	struct fay_site *last = NULL;
	int code = 0;

	for (size_t i = 0; i < plan->order_count && !code; i++) {
		struct fay_site *site = &plan->sites[plan->order[i]];

		if (!site->usable || !plan->points[site->point].usable)
			continue;
		if (last && last->usable && last->site + last->reach > site->site)
			code = refuse_overlap(plan, last, site);
		if (!last || !last->usable || site->usable)
			last = site;
	}
	return code;
}

bool fay_sites_writable(const struct fay_plan *plan, const struct fay_map *map)
{
	return map->permissions[1] == 'w' && map->permissions[2] == 'x' &&
	       fay_site_between(plan, map->start, map->end);
}

/* What the program may be writing just now. */
static int refuse_writable(struct fay_plan *plan, const struct fay_maps *maps)
{
	int code = 0;

	for (size_t i = 0; i < maps->count; i++) {
		const struct fay_map *map = &maps->items[i];

		for (size_t k = fay_sites_writable(plan, map) ? order_below(plan, map->start)
							      : plan->order_count;
		     k < plan->order_count && !code; k++) {
			struct fay_site *site = &plan->sites[plan->order[k]];

			if (site->site >= map->end)
				break;
			if (site->usable && plan->points[site->point].usable)
				code = fay_site_refuse(plan, site,
						       "lies in memory that the program may write");
		}
	}
	return code;
}

/* Points that have lost their sites are planned again. *again: there are such. What is abandoned
 * is left as it is: fay_plan_make() says so. */
static int replan(struct fay_planner *planner, bool *again)
{
	struct fay_plan *plan = planner->plan;

	*again = false;
	for (size_t i = 0; i < plan->point_count && !fay_plan_abandoned(plan); i++) {
		if (!plan->points[i].usable || plan->points[i].site_count)
			continue;
		*again = true;
		if (fay_site_plan_point(planner, i))
			return -1;
	}
	return 0;
}

static int plan_all(struct fay_planner *planner, const struct fay_maps *maps,
		    struct fay_error *error)
{
	struct fay_plan *plan = planner->plan;
	bool again = true;

	for (size_t i = 0; i < plan->point_count; i++) {
		plan->points[i].usable = true;
		plan->points[i].site_count = 0;
	}
	for (unsigned round = 0; round < ROUNDS && again; round++) {
		int code;

		if (replan(planner, &again) || !fay_sites_order(plan) || refuse_overlaps(plan) ||
		    refuse_writable(plan, maps))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
		code = fay_inbound_search(plan, &planner->text, error);
		if (code)
			return code;
		again = false;
		for (size_t i = 0; i < plan->point_count; i++)
			again |= plan->points[i].usable && !plan->points[i].site_count;
	}
	for (size_t i = 0; i < plan->point_count && again; i++)
		if (plan->points[i].usable && !plan->points[i].site_count &&
		    fay_plan_skip(plan, &plan->points[i], "is too close to others, repeatedly"))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	return fay_sites_order(plan) ? 0 : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

int fay_sites_plan(struct fay_plan *plan, const struct fay_zones *present,
		   const struct fay_maps *maps, int memory, struct fay_error *error)
{
	struct fay_planner planner = { plan,
				       { .present = present,
					 .memory = memory,
					 .target = plan->of_files ? plan->target : NULL } };
	int code = plan_all(&planner, maps, error);

	fay_program_text_deinit(&planner.text);
	return code;
}
