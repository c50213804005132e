/* SPDX-License-Identifier: MIT */
/*
 * Planning for files instead of processes. What probes want of a module, and whether and how that
 * can be patched, follows from the module's file alone where a process has the file's code mapped
 * unchanged. So it is planned once, of bytes that are read from the file, and kept; a process that
 * has the module gets a copy, its addresses moved by where the module lies there.
 *
 * What is kept is believed of the file that it was made of, never of a process: whether that has
 * the file's code is asked anew each time (names/kept.c), and as always the bytes that are to be
 * overwritten are compared when the process stands stopped (install.c). No process has a part in
 * what is kept for others. Where anything is out of the ordinary (another trace in the process, a
 * module that is mapped twice, calls with records, markers) the process is planned for itself.
 */
#include "plan_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/names/target.h"
#include "loader/process/process.h"

#define PLANS_MAX 64u

/* What was planned of one module; of its own points and sites the addresses are those that they
 * would have at `bias`. */
struct module_plan {
	/* what it is for: all of this */
	const struct fay_verdict *verdict;
	struct fay_object *object;
	char *names;              /* that the module answers to, and its path */
	struct fay_range *ranges; /* of its code; range_count of them */
	size_t range_count;
	uint64_t hook; /* virtual address of the function that is hooked; 0: none */
	/* and what it is */
	uint64_t number; /* no other plan of these files has, or had, it */
	bool refused;    /* processes that have it are planned for themselves */
	uint64_t bias;
	struct fay_plan plan;
};

struct fay_kept_plans {
	struct module_plan items[PLANS_MAX];
	size_t count, oldest;
	uint64_t last_number;
};

static void module_plan_deinit(struct module_plan *kept)
{
	fay_plan_forget(&kept->plan);
	fay_points_deinit(&kept->plan);
	fay_object_close(kept->object);
	free(kept->names);
	free(kept->ranges);
}

int fay_files_create(struct fay_files **files, struct fay_error *error)
{
	*files = calloc(1, sizeof(**files));
	return *files ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

void fay_files_destroy(struct fay_files *files)
{
	if (!files)
		return;
	for (size_t i = 0; files->plans && i < files->plans->count; i++)
		module_plan_deinit(&files->plans->items[i]);
	free(files->plans);
	fay_ready_destroy(files->ready);
	for (size_t i = 0; i < files->count; i++)
		fay_object_close(files->items[i].object);
	fay_name_table_deinit(&files->names);
	free(files);
}

void fay_target_share(struct fay_target *target, struct fay_files *files)
{
	target->files = files;
}

/* --- for which images, processes and modules --- */

/* Those whose places are the business of one module alone. */
static bool can_be_kept(const struct fay_plan *plan)
{
	const uint32_t kinds = 1u << FAY_PROBE_BEGIN | 1u << FAY_PROBE_END | 1u << FAY_PROBE_TIMER |
			       1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN |
			       1u << FAY_PROBE_OFFSET;

	for (uint32_t i = 0; i < plan->verdict->probe_count; i++)
		if (!(kinds >> plan->verdict->probes[i].kind & 1))
			return false;
	return plan->target->files && plan->target->pid && !plan->options.beside_count &&
	       !plan->options.modules_alone && !plan->options.loading && !plan->given_up_count &&
	       !fay_runtimes_follow_jumps(plan->target);
}

static bool is_in_module(const struct fay_module *module, uint64_t address)
{
	for (size_t i = 0; i < module->range_count; i++)
		if (address >= module->ranges[i].start && address < module->ranges[i].end)
			return true;
	return false;
}

static bool is_wanted(const struct fay_plan *plan, const struct fay_module *module)
{
	char in[256], name[256];

	for (uint32_t i = 0; i < plan->verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &plan->verdict->probes[i];

		if (facts->kind != FAY_PROBE_BEGIN && facts->kind != FAY_PROBE_END &&
		    facts->kind != FAY_PROBE_TIMER &&
		    !fay_pattern_split(facts->pattern, in, name, NULL) &&
		    fay_module_matches(module, in))
			return true;
	}
	return false;
}

/* It is there once, and no other one has its name. */
static bool is_single(const struct fay_target *target, const struct fay_module *module)
{
	for (size_t i = 0; i < module->range_count; i++)
		if (!module->ranges[i].placed || module->ranges[i].bias != module->ranges[0].bias)
			return false;
	for (size_t i = 0; i < target->module_count; i++)
		if (&target->modules[i] != module && !strcmp(target->modules[i].name, module->name))
			return false;
	return module->range_count != 0;
}

/* --- one module's plan --- */

static char *names_of(const struct fay_module *module)
{
	size_t size = strlen(module->path) + 1;
	char *names, *at;

	for (size_t i = 0; i < module->name_count; i++)
		size += strlen(module->names[i]) + 1;
	names = at = malloc(size);
	if (!names)
		return NULL;
	for (size_t i = 0; i < module->name_count; i++)
		at = stpcpy(stpcpy(at, module->names[i]), "\n");
	strcpy(at, module->path);
	return names;
}

static struct fay_range *ranges_of(const struct fay_module *module)
{
	struct fay_range *ranges = calloc(module->range_count, sizeof(*ranges));

	for (size_t i = 0; ranges && i < module->range_count; i++)
		ranges[i] = (struct fay_range){
			.start = module->ranges[i].start - module->ranges[i].bias,
			.end = module->ranges[i].end - module->ranges[i].bias,
			.offset = module->ranges[i].offset,
		};
	return ranges;
}

static bool is_for(const struct module_plan *kept, const struct module_plan *wanted)
{
	return kept->verdict == wanted->verdict && kept->object == wanted->object &&
	       kept->hook == wanted->hook && !strcmp(kept->names, wanted->names) &&
	       kept->range_count == wanted->range_count &&
	       !memcmp(kept->ranges, wanted->ranges, kept->range_count * sizeof(*kept->ranges));
}

/* Whether all that is read and overwritten there is the module's own. */
static bool is_its_own(const struct fay_plan *plan, const struct fay_module *module)
{
	bool own = true;

	for (size_t i = 0; i < plan->point_count && own; i++) {
		const struct fay_point *point = &plan->points[i];

		own = is_in_module(module, point->function.address);
		for (size_t k = 0; point->flow && k < point->flow->part_count && own; k++)
			own = is_in_module(module, point->flow->parts[k].start);
	}
	for (size_t i = 0; i < plan->site_count && own; i++)
		own = is_in_module(module, plan->sites[i].site);
	return own;
}

/* Plans the module as if it were the process's only one, of its file's bytes. */
static void plan_module(const struct fay_plan *plan, const struct fay_module *module,
			struct module_plan *kept)
{
	struct fay_target *target = plan->target;
	const struct fay_zones none = { 0 };
	const struct fay_maps nowhere = { 0 };
	struct fay_error error;

	kept->bias = module->ranges[0].bias;
	kept->plan = (struct fay_plan){ .target = target,
					.verdict = plan->verdict,
					.pid = plan->pid,
					.options = plan->options,
					.of_files = true };
	kept->plan.options.some = true;
	kept->plan.options.modules = kept->hook != 0;
	target->only = module;
	kept->refused = fay_points_resolve(&kept->plan, &error) ||
			fay_sites_plan(&kept->plan, &none, &nowhere, -1, &error) ||
			kept->plan.some_records || !is_its_own(&kept->plan, module);
	target->only = NULL;
	if (!kept->refused)
		return;
	fay_plan_forget(&kept->plan);
	fay_points_deinit(&kept->plan);
}

static struct module_plan *put(struct fay_kept_plans *plans, const struct module_plan *made)
{
	struct module_plan *to;

	if (plans->count < PLANS_MAX) {
		to = &plans->items[plans->count++];
	} else {
		to = &plans->items[plans->oldest];
		plans->oldest = (plans->oldest + 1) % PLANS_MAX;
		module_plan_deinit(to);
	}
	*to = *made;
	to->number = ++plans->last_number;
	return to;
}

/* What is kept of the module, made now if it is new. NULL: there is nothing. */
static const struct module_plan *find(const struct fay_plan *plan, struct fay_module *module,
				      uint64_t hook)
{
	struct fay_files *files = plan->target->files;
	struct module_plan wanted = { .verdict = plan->verdict,
				      .object = module->object,
				      .names = names_of(module),
				      .ranges = ranges_of(module),
				      .range_count = module->range_count,
				      .hook = hook };
	const struct module_plan *found = NULL;

	wanted.object->users++;
	if (!files->plans)
		files->plans = calloc(1, sizeof(*files->plans));
	if (!files->plans || !wanted.names || !wanted.ranges) {
		module_plan_deinit(&wanted);
		return NULL;
	}
	for (size_t i = 0; i < files->plans->count && !found; i++)
		if (is_for(&files->plans->items[i], &wanted))
			found = &files->plans->items[i];
	if (found) {
		module_plan_deinit(&wanted);
		return found;
	}
	plan_module(plan, module, &wanted);
	return put(files->plans, &wanted);
}

/* --- a process's plan --- */

bool fay_flow_copy(const struct fay_flow *from, uint64_t by, struct fay_flow **to)
{
	*to = from ? malloc(sizeof(**to)) : NULL;
	if (!*to || fay_flow_move(from, by, *to))
		return !from == !*to;
	free(*to);
	*to = NULL;
	return false;
}

static bool copy_point(const struct fay_point *from, const struct fay_module *module, uint64_t by,
		       size_t first_site, size_t first_skipped, struct fay_point *to)
{
	size_t probes = from->probe_count > 1 ? from->probe_count * sizeof(*from->probes) : 0;

	*to = *from;
	to->function.module = module->name;
	to->function.path = module->path;
	to->function.address += by;
	to->first_site += first_site;
	to->skipped += to->skipped ? first_skipped : 0;
	to->probes = probes ? malloc(probes) : NULL;
	if (to->probes)
		memcpy(to->probes, from->probes, probes);
	to->no_exits = from->no_exits ? strdup(from->no_exits) : NULL;
	return fay_flow_copy(from->flow, by, &to->flow) && !probes == !to->probes &&
	       !from->no_exits == !to->no_exits;
}

static void copy_site(const struct fay_site *from, uint64_t by, size_t first_point,
		      size_t first_byte, struct fay_site *to)
{
	*to = *from;
	to->site += by;
	to->hole += to->hole ? by : 0;
	to->point += first_point;
	to->bytes += first_byte;
}

/* Room for what comes to be added. */
static bool make_room(struct fay_plan *plan, const struct fay_plan *added)
{
	struct fay_point *points = realloc(
		plan->points, (plan->point_count + added->point_count + 1) * sizeof(*points));
	struct fay_site *sites =
		realloc(plan->sites, (plan->site_count + added->site_count + 1) * sizeof(*sites));
	uint8_t *bytes = realloc(plan->bytes, plan->byte_count + added->byte_count + 1);
	uint32_t *order =
		realloc(plan->order, (plan->order_count + added->order_count + 1) * sizeof(*order));

	plan->points = points ? points : plan->points;
	plan->sites = sites ? sites : plan->sites;
	plan->bytes = bytes ? bytes : plan->bytes;
	plan->order = order ? order : plan->order;
	if (sites)
		plan->site_room = plan->site_count + added->site_count + 1;
	if (bytes)
		plan->byte_room = plan->byte_count + added->byte_count + 1;
	return points && sites && bytes && order;
}

static bool add_module(struct fay_plan *plan, const struct fay_module *module,
		       const struct module_plan *kept)
{
	const struct fay_plan *from = &kept->plan;
	uint64_t by = module->ranges[0].bias - kept->bias;
	size_t first_point = plan->point_count, first_site = plan->site_count;
	bool copied = make_room(plan, from);

	for (size_t i = 0; i < from->point_count && copied; i++)
		copied = copy_point(&from->points[i], module, by, first_site, plan->skipped_count,
				    &plan->points[plan->point_count++]);
	if (!copied)
		return false;
	for (size_t i = 0; i < from->site_count; i++)
		copy_site(&from->sites[i], by, first_point, plan->byte_count,
			  &plan->sites[plan->site_count++]);
	/* each module's are in order; so are all, if no module's lie amidst another's */
	if (from->order_count && plan->order_count &&
	    plan->sites[first_site + from->order[0]].site <
		    plan->sites[plan->order[plan->order_count - 1]].site)
		return false;
	for (size_t i = 0; i < from->order_count; i++)
		plan->order[plan->order_count++] = (uint32_t)first_site + from->order[i];
	if (from->byte_count)
		memcpy(plan->bytes + plan->byte_count, from->bytes, from->byte_count);
	plan->byte_count += from->byte_count;
	return true;
}

/* A part of the plan, whose points and sites are there already, or come later. */
static bool add_part(struct fay_plan *plan, const struct fay_module *module,
		     const struct module_plan *kept)
{
	const struct fay_plan *from = &kept->plan;
	struct fay_skipped_point *skipped = realloc(
		plan->skipped, (plan->skipped_count + from->skipped_count + 1) * sizeof(*skipped));

	plan->skipped = skipped ? skipped : plan->skipped;
	if (!skipped)
		return false;
	if (from->skipped_count)
		memcpy(skipped + plan->skipped_count, from->skipped,
		       from->skipped_count * sizeof(*skipped));
	plan->skipped_count += from->skipped_count;
	if (plan->part_count < FAY_MADE_OF_MAX)
		plan->parts[plan->part_count] =
			(struct fay_plan_part){ .number = kept->number,
						.name = module->name,
						.path = module->path,
						.bias = module->ranges[0].bias,
						.points = plan->point_count,
						.sites = plan->site_count };
	plan->part_count++;
	if (kept->hook)
		memcpy(plan->unhooked, from->unhooked, sizeof(plan->unhooked));
	return true;
}

/* Every pattern matched something, or need not; and the points are in order. */
static bool is_whole(const struct fay_plan *plan)
{
	bool matched[FAY_IMAGE_MAX_PROBES] = { false }, any = false;

	for (size_t i = 0; i < plan->point_count; i++) {
		const struct fay_point *point = &plan->points[i];

		if (i && point->function.address < point[-1].function.address)
			return false;
		for (uint32_t k = 0; k < point->probe_count; k++)
			any = matched[fay_point_probe(point, k)] = true;
	}
	for (uint32_t i = 0; i < plan->verdict->probe_count && !plan->options.some; i++) {
		uint32_t kind = plan->verdict->probes[i].kind;

		if (!matched[i] && kind != FAY_PROBE_BEGIN && kind != FAY_PROBE_END &&
		    kind != FAY_PROBE_TIMER)
			return false;
	}
	return any;
}

/* The parts that modules of the process are, with their points and sites, or without. */
static bool add_parts(struct fay_plan *plan, uint64_t hook, bool whole)
{
	struct fay_target *target = plan->target;

	plan->part_count = plan->skipped_count = 0;
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		bool hooked = hook && is_in_module(module, hook);
		const struct module_plan *kept;

		if (!hooked && !is_wanted(plan, module))
			continue;
		kept = find(plan, module, hooked ? hook - module->ranges[0].bias : 0);
		if (!kept || kept->refused || (whole && !add_module(plan, module, kept)) ||
		    !add_part(plan, module, kept))
			return false;
	}
	return true;
}

/* Whether all modules in question can be planned by their files. */
static bool all_are_files(const struct fay_plan *plan, uint64_t hook, int memory, int pages)
{
	struct fay_target *target = plan->target;
	bool all = true;

	for (size_t i = 0; i < target->module_count && all; i++) {
		struct fay_module *module = &target->modules[i];

		if ((hook && is_in_module(module, hook)) || is_wanted(plan, module))
			all = fay_module_object(target, module) && is_single(target, module) &&
			      fay_module_text_is_files(module, memory, pages);
	}
	return all;
}

static bool assemble(struct fay_plan *plan, int memory, int pages)
{
	struct fay_function hook = { 0 };

	if (plan->options.modules && !fay_rendezvous_find(plan, &hook))
		hook.address = 0;
	if (!all_are_files(plan, hook.address, memory, pages))
		return false;
	if (plan->target->files->ready && !plan->not_lent && add_parts(plan, hook.address, false) &&
	    fay_ready_lend(plan))
		return true;
	if (!add_parts(plan, hook.address, true) || !is_whole(plan))
		return false;
	plan->assembled_skipped = plan->skipped_count;
	plan->assembled_usable = 0;
	for (size_t i = 0; i < plan->point_count; i++)
		plan->assembled_usable += plan->points[i].usable;
	return true;
}

/* Other traces and restartable sequences are looked for when the rest is planned (plan.c). */
void fay_plan_assemble(struct fay_plan *plan, bool *done)
{
	char path[64];
	int memory, pages;

	*done = false;
	plan->part_count = 0;
	if (!can_be_kept(plan))
		return;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)plan->pid);
	memory = fay_process_memory(plan->pid, O_RDONLY);
	pages = open(path, O_RDONLY | O_CLOEXEC);
	*done = memory >= 0 && pages >= 0 && assemble(plan, memory, pages);
	if (memory >= 0)
		close(memory);
	if (pages >= 0)
		close(pages);
	plan->assembled = *done;
	plan->folded_count = plan->point_count;
	if (*done)
		return;
	fay_plan_forget(plan);
	fay_points_deinit(plan);
	*plan->unhooked = 0;
}
