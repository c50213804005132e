/* SPDX-License-Identifier: MIT */
/*
 * What is kept of files for further processes: the plan that is put together of it is, place by
 * place, the one that is made of the process itself; each process's calls are counted exactly; and
 * a process that has not its files' code, or has another trace, is planned for itself.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

#include "../harness.h"

#include "loader/names/target.h"
#include "loader/session/session.h"

#define PROGRAM "fay-test-target"
#define PAGE 4096u
#define SHARED_FROM 8u

static struct fay_files *files_create(void)
{
	struct fay_files *files;

	assert_int_equal(fay_files_create(&files, NULL), 0);
	return files;
}

static struct fay_session *attach_with(struct fay_files *files, pid_t pid,
				       const struct hand_verdict *hand, bool plan_only,
				       struct fay_target **target)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .modules = true,
					      .shared_from = SHARED_FROM,
					      .plan_only = plan_only };

	return attach_sharing(files, pid, hand, options, target);
}

static void let_go(struct fay_session *session, struct fay_target *target)
{
	assert_int_equal(fay_session_detach(session, NULL), 0);
	fay_session_destroy(session);
	fay_target_close(target);
}

/* --- the same plan --- */

/* What of a site does not depend on where the trampolines lie. */
static void assert_same_site(const struct fay_plan *plan, const struct fay_site *one,
			     const struct fay_plan *other_plan, const struct fay_site *other)
{
	assert_int_equal(one->site, other->site);
	assert_int_equal(one->kind, other->kind);
	assert_int_equal(one->usable, other->usable);
	assert_int_equal(one->linked, other->linked);
	assert_int_equal(one->leads, other->leads);
	assert_int_equal(one->ends, other->ends);
	assert_int_equal(one->back, other->back);
	assert_int_equal(one->length, other->length);
	assert_int_equal(one->size, other->size);
	assert_int_equal(one->first_exit, other->first_exit);
	assert_int_equal(one->exit_count, other->exit_count);
	assert_int_equal(one->block, other->block);
	assert_int_equal(one->hole, other->hole);
	assert_int_equal(one->reach, other->reach);
	assert_memory_equal(fay_site_before(plan, one), fay_site_before(other_plan, other),
			    one->size);
	assert_memory_equal(fay_site_program(plan, one), fay_site_program(other_plan, other),
			    one->size);
}

static void assert_same_flow(const struct fay_flow *one, const struct fay_flow *other)
{
	assert_int_equal(one->part_count, other->part_count);
	assert_int_equal(one->exit_count, other->exit_count);
	assert_int_equal(one->window_count, other->window_count);
	assert_int_equal(one->block_count, other->block_count);
	assert_int_equal(one->redirect_count, other->redirect_count);
	for (size_t i = 0; i < one->part_count; i++) {
		assert_int_equal(one->parts[i].start, other->parts[i].start);
		assert_int_equal(one->parts[i].end, other->parts[i].end);
		assert_int_equal(one->parts[i].hash, other->parts[i].hash);
	}
	for (size_t i = 0; i < one->exit_count; i++) {
		assert_int_equal(one->exits[i].at, other->exits[i].at);
		assert_int_equal(one->exits[i].target, other->exits[i].target);
		assert_int_equal(one->exits[i].kind, other->exits[i].kind);
	}
	for (size_t i = 0; i < one->window_count; i++) {
		assert_int_equal(one->windows[i].site, other->windows[i].site);
		assert_int_equal(one->windows[i].hole, other->windows[i].hole);
	}
	for (size_t i = 0; i < one->block_count; i++)
		assert_int_equal(one->blocks[i].at, other->blocks[i].at);
	for (size_t i = 0; i < one->redirect_count; i++)
		assert_int_equal(one->redirects[i].site, other->redirects[i].site);
}

static void assert_same_point(const struct fay_plan *plan, const struct fay_point *one,
			      const struct fay_plan *other_plan, const struct fay_point *other)
{
	assert_int_equal(one->function.address, other->function.address);
	assert_int_equal(one->function.size, other->function.size);
	assert_string_equal(one->function.name, other->function.name);
	assert_string_equal(one->function.module, other->function.module);
	assert_string_equal(one->function.path, other->function.path);
	assert_int_equal(one->probe_count, other->probe_count);
	assert_int_equal(one->hook, other->hook);
	assert_int_equal(one->usable, other->usable);
	assert_int_equal(one->exits, other->exits);
	assert_int_equal(one->whole, other->whole);
	assert_int_equal(one->careful, other->careful);
	assert_int_equal(one->keeps_faults, other->keeps_faults);
	assert_int_equal(!one->flow, !other->flow);
	assert_int_equal(!one->no_exits, !other->no_exits);
	if (one->flow)
		assert_same_flow(one->flow, other->flow);
	assert_int_equal(one->site_count, other->site_count);
	for (size_t i = 0; i < one->site_count; i++)
		assert_same_site(plan, &plan->sites[one->first_site + i], other_plan,
				 &other_plan->sites[other->first_site + i]);
}

static int by_address(const void *a, const void *b)
{
	const struct fay_point *x = a, *y = b;

	return x->function.address < y->function.address
		       ? -1
		       : x->function.address > y->function.address;
}

static void assert_same_plan(struct fay_plan *one, struct fay_plan *other)
{
	assert_int_equal(one->point_count, other->point_count);
	assert_int_equal(one->skipped_count, other->skipped_count);
	assert_int_equal(one->rendezvous, other->rendezvous);
	assert_string_equal(one->unhooked, other->unhooked);
	/* attaching has put those that are patched first */
	qsort(one->points, one->point_count, sizeof(*one->points), by_address);
	qsort(other->points, other->point_count, sizeof(*other->points), by_address);
	for (size_t i = 0; i < one->point_count; i++)
		assert_same_point(one, &one->points[i], other, &other->points[i]);
}

/* Two processes of a program: one that is attached to first, and another that is attached to with
 * what was kept of it, and without. */
struct pair {
	struct victim a, b;
	struct fay_files *files, *own_files;
	struct fay_target *targets[3];
	struct fay_session *first, *session, *own;
};

static void pair_begin(struct pair *pair, const struct hand_verdict *hand,
		       struct fay_files *own_files)
{
	pair->files = files_create();
	pair->own_files = own_files;
	victim_start(&pair->a);
	victim_start(&pair->b);
	pair->first = attach_with(pair->files, pair->a.pid, hand, true, &pair->targets[0]);
	pair->session = attach_with(pair->files, pair->b.pid, hand, true, &pair->targets[1]);
	pair->own = attach_with(own_files, pair->b.pid, hand, true, &pair->targets[2]);
}

static void pair_end(struct pair *pair)
{
	fay_session_destroy(pair->first);
	fay_session_destroy(pair->session);
	fay_session_destroy(pair->own);
	for (unsigned i = 0; i < 3; i++)
		fay_target_close(pair->targets[i]);
	fay_files_destroy(pair->files);
	fay_files_destroy(pair->own_files);
	victim_end(&pair->b); /* which has the pipes of the one before it */
	victim_end(&pair->a);
}

static void same_plan(uint32_t kind, const char *pattern, size_t least)
{
	struct hand_verdict hand;
	struct pair pair;

	hand_verdict(&hand, PROBE_COUNT, pattern);
	hand.probes[0].kind = kind;
	pair_begin(&pair, &hand, NULL);
	assert_true(pair.first->plan.assembled);
	assert_true(pair.session->plan.assembled);
	assert_false(pair.own->plan.assembled);
	assert_true(pair.own->plan.point_count > least);
	assert_same_plan(&pair.session->plan, &pair.own->plan);
	pair_end(&pair);
}

static void test_same_entries(void **state)
{
	(void)state;
	same_plan(FAY_PROBE_ENTRY, "*!*", 3000);
}

static void test_same_returns(void **state)
{
	(void)state;
	same_plan(FAY_PROBE_RETURN, PROGRAM "!fn_*", 10);
}

/* --- the same zones --- */

static void assert_same_zones(const struct fay_plan *one, const struct fay_plan *other)
{
	assert_int_equal(one->zone_count, other->zone_count);
	assert_int_equal(one->shared_points, other->shared_points);
	for (size_t i = 0; i < one->zone_count; i++) {
		const struct fay_zone_plan *zone = &one->zones[i], *built = &other->zones[i];
		struct fay_zone_header header = zone->header;

		assert_int_equal(zone->address, built->address);
		assert_int_equal(zone->image, built->image);
		assert_int_equal(zone->low, built->low);
		assert_int_equal(zone->high, built->high);
		assert_int_equal(zone->capacity, built->capacity);
		assert_int_equal(zone->code_size, built->code_size);
		assert_memory_equal(zone->code, built->code, zone->code_size);
		header.session = built->header.session;
		assert_memory_equal(&header, &built->header, sizeof(header));
		assert_memory_equal(zone->data + sizeof(header), built->data + sizeof(header),
				    header.patch_count * sizeof(struct fay_zone_patch));
	}
	for (size_t i = 0; i < one->site_count; i++) {
		const struct fay_site *site = &one->sites[i], *built = &other->sites[i];

		assert_memory_equal(&site->patch, &built->patch, sizeof(site->patch));
		assert_int_equal(site->boundary_count, built->boundary_count);
		for (unsigned k = 0; k < site->boundary_count; k++) {
			assert_int_equal(site->boundary_from[k], built->boundary_from[k]);
			assert_int_equal(site->boundary_to[k], built->boundary_to[k]);
		}
	}
}

/* The copy that is moved is, byte for byte, what is built for the same process. */
static void ready_zones(uint32_t kind, const char *pattern, uint32_t fields)
{
	struct hand_verdict hand;
	struct pair pair;

	hand_verdict(&hand, PROBE_COUNT, pattern);
	hand.probes[0].kind = kind;
	hand.probes[0].event_fields |= fields;
	pair_begin(&pair, &hand, files_create());
	assert_false(pair.first->plan.ready);
	assert_true(pair.session->plan.ready);
	assert_false(pair.own->plan.ready);
	assert_true(pair.own->plan.assembled);
	assert_true(pair.session->plan.zones[0].address != pair.first->plan.zones[0].address);
	assert_same_zones(&pair.session->plan, &pair.own->plan);
	pair_end(&pair);
}

static void test_ready_entries(void **state)
{
	(void)state;
	ready_zones(FAY_PROBE_ENTRY, "*!*", 0);
}

static void test_ready_returns(void **state)
{
	(void)state;
	ready_zones(FAY_PROBE_RETURN, PROGRAM "!fn_*", 0);
}

/* Function and address lie in front of each stub. */
static void test_ready_names(void **state)
{
	(void)state;
	ready_zones(FAY_PROBE_ENTRY, "*!*", FAY_FIELD_FUNCTION);
}

/* --- functions that the kernel may trap at --- */

static size_t trapped(pid_t pid, const struct hand_verdict *hand, uint32_t most)
{
	struct fay_attach_options options = {
		.size = sizeof(options), .plan_only = true, .traps = 32, .trap_functions = most
	};
	struct fay_target *target;
	struct fay_session *session = attach_sharing(NULL, pid, hand, options, &target);
	size_t count = fay_session_trap_count(session);

	fay_session_destroy(session);
	fay_target_close(target);
	return count;
}

/* Each has one at its entry. That there are more than are wanted is told by one more. */
static void test_few_traps(void **state)
{
	struct hand_verdict hand;
	struct victim victim;
	size_t all;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, "libc!*");
	victim_start(&victim);
	all = trapped(victim.pid, &hand, 0);
	assert_true(all > 3);
	assert_int_equal(trapped(victim.pid, &hand, 2), 3);
	assert_int_equal(trapped(victim.pid, &hand, (uint32_t)all), all);
	victim_end(&victim);
}

/* --- processes one after the other --- */

static void count(struct fay_files *files, const struct hand_verdict *hand, uint64_t calls)
{
	struct fay_session *session;
	struct fay_target *target;
	struct victim victim;
	uint64_t checksum;

	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	session = attach_with(files, victim.pid, hand, false, &target);
	assert_true(session->plan.assembled);
	assert_int_equal(victim_ask(&victim, "run fn_c 1 %llu", (unsigned long long)calls), calls);
	assert_int_equal(victim_ask(&victim, "run fn_riprel 2 500"), 1000);
	assert_int_equal(total(session, 0), calls + 1000);
	let_go(session, target);
	assert_clean(&victim, checksum);
	victim_end(&victim);
}

static void test_counts(void **state)
{
	struct fay_files *files = files_create();
	struct hand_verdict hand;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_*");
	for (uint64_t calls = 1; calls <= 4; calls++)
		count(files, &hand, 1000 * calls);
	fay_files_destroy(files);
}

/* --- processes for which it does not hold --- */

/* A page of the program's code in which nothing is called: written over, as it is, or changed. */
static void write_code(pid_t pid, uint64_t address, bool changed)
{
	uint8_t page[PAGE];
	char path[64];
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	address &= ~(uint64_t)(PAGE - 1);
	assert_int_equal(pread(memory, page, PAGE, (off_t)address), PAGE);
	page[0] ^= changed;
	assert_int_equal(pwrite(memory, page, PAGE, (off_t)address), PAGE);
	close(memory);
}

static uint64_t last_page_of_libc(pid_t pid)
{
	struct fay_target *target;
	uint64_t end = 0;

	assert_int_equal(fay_target_open_pid(pid, &target, NULL), 0);
	for (size_t i = 0; i < target->module_count; i++)
		if (!strcmp(target->modules[i].name, "libc"))
			end = target->modules[i].ranges[0].end;
	fay_target_close(target);
	assert_true(end != 0);
	return end - PAGE;
}

static void test_changed_code(void **state)
{
	struct fay_files *files = files_create();
	struct hand_verdict hand;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, "libc!getppid");
	for (int changed = 0; changed < 2; changed++) {
		struct fay_session *session;
		struct fay_target *target;
		struct victim victim;

		victim_start(&victim);
		write_code(victim.pid, last_page_of_libc(victim.pid), changed);
		session = attach_with(files, victim.pid, &hand, false, &target);
		assert_int_equal(session->plan.assembled, !changed);
		assert_int_equal(fay_session_point_count(session), 1);
		let_go(session, target);
		victim_end(&victim);
	}
	fay_files_destroy(files);
}

static void test_beside_another(void **state)
{
	struct fay_files *files = files_create();
	struct fay_target *target, *other_target;
	struct fay_session *session, *other;
	struct hand_verdict hand;
	struct victim victim;
	uint64_t checksum;

	(void)state;
	hand_verdict(&hand, PROBE_COUNT, PROGRAM "!fn_c");
	victim_start(&victim);
	checksum = victim_ask(&victim, "checksum");
	other = attach_with(NULL, victim.pid, &hand, false, &other_target);
	session = attach_with(files, victim.pid, &hand, false, &target);
	assert_false(session->plan.assembled);
	assert_int_equal(victim_ask(&victim, "run fn_c 2 1000"), 2000);
	assert_int_equal(total(session, 0), 2000);
	assert_int_equal(total(other, 0), 2000);
	let_go(session, target);
	let_go(other, other_target);
	assert_clean(&victim, checksum);
	victim_end(&victim);
	fay_files_destroy(files);
}

/* A file by the same path that was written to is another one. */
static void test_another_file(void **state)
{
	struct fay_files *files = files_create();
	char path[] = "/tmp/fay-test-target-XXXXXX", command[256];
	struct hand_verdict hand;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "cp %s %s && chmod 700 %s", TARGET_PROGRAM, path, path);
	hand_verdict(&hand, PROBE_COUNT, "fay-test-target-*!fn_c");
	for (int round = 0; round < 2; round++) {
		struct fay_session *session;
		struct fay_target *target;
		struct victim victim;

		assert_int_equal(system(command), 0);
		victim_start_program(&victim, path);
		session = attach_with(files, victim.pid, &hand, false, &target);
		assert_true(session->plan.assembled);
		assert_int_equal(victim_ask(&victim, "run fn_c 1 77"), 77);
		assert_int_equal(total(session, 0), 77);
		let_go(session, target);
		victim_end(&victim);
	}
	/* the program, twice, and the dynamic linker */
	assert_int_equal(files->count, 3);
	unlink(path);
	fay_files_destroy(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_entries),  cmocka_unit_test(test_same_returns),
		cmocka_unit_test(test_ready_entries), cmocka_unit_test(test_ready_returns),
		cmocka_unit_test(test_ready_names),   cmocka_unit_test(test_counts),
		cmocka_unit_test(test_changed_code),  cmocka_unit_test(test_beside_another),
		cmocka_unit_test(test_another_file),  cmocka_unit_test(test_few_traps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
