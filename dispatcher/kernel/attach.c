// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * From a session's module to running probes. Nothing that the user side says about code is
 * believed: the layout is compared where it lies with what the checker accepted, each trampoline is
 * written once more and compared byte by byte. The module's text is read-only by then.
 */
#include <linux/delay.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "fay.h"

/* ---- the module with the code ---- */

static struct fay_session *session_of_module(const struct module *module)
{
	unsigned int number;

	if (strncmp(module->name, FAY_KERNEL_MODULE_PREFIX, strlen(FAY_KERNEL_MODULE_PREFIX)) ||
	    kstrtouint(module->name + strlen(FAY_KERNEL_MODULE_PREFIX), 10, &number) ||
	    number >= FAY_KERNEL_SESSIONS_MAX)
		return NULL;
	return fay_sessions[number];
}

int fay_module_event(struct notifier_block *block, unsigned long action, void *data)
{
	struct module *module = data;
	struct fay_session *session;
	int result = NOTIFY_DONE;

	if (!strcmp(module->name, FAY_KERNEL_AREAS)) {
		mutex_lock(&fay_mutex);
		result = notifier_from_errno(fay_areas_event(module, action));
		mutex_unlock(&fay_mutex);
		return result;
	}
	if (strncmp(module->name, FAY_KERNEL_MODULE_PREFIX, strlen(FAY_KERNEL_MODULE_PREFIX)))
		return NOTIFY_DONE;
	mutex_lock(&fay_mutex);
	session = session_of_module(module);
	if (action == MODULE_STATE_COMING) {
		if (!session || session->users || session->module || module->init || module->exit ||
		    module->core_layout.text_size < session->code.layout_size) {
			result = notifier_from_errno(-EPERM);
		} else {
			session->module = module;
			session->text = module->core_layout.base;
			session->text_size = module->core_layout.text_size;
		}
	} else if (action == MODULE_STATE_GOING && session && session->module == module) {
		session->module = NULL; /* not while it is attached: then there is a reference */
		session->checked = false;
	}
	mutex_unlock(&fay_mutex);
	return result;
}

/* ---- checks ---- */

static int check_layout(const struct fay_session *session)
{
	const struct fay_code *code = &session->code;

	return memcmp(session->text, code->layout, code->layout_size) ? -EKEYREJECTED : 0;
}

struct fay_kernel_trampoline fay_trampoline_of(const struct fay_session *session,
					       const struct fay_kernel_set *set, u32 offset)
{
	return (struct fay_kernel_trampoline){ .places = &session->places,
					       .probes = session->code.probes,
					       .set = set->probes,
					       .stack_words = set->stack_words,
					       .result = set->result,
					       .callback = set->callback,
					       .layout = (u64)session->text,
					       .address = (u64)session->text + offset };
}

static int check_trampoline(const struct fay_session *session, struct fay_set *set, u8 *scratch)
{
	u32 offset = set->given.trampoline, size;
	struct fay_kernel_trampoline wanted = fay_trampoline_of(session, &set->given, offset);

	if (offset % 16 || offset < session->code.layout_size || offset > session->text_size)
		return -EINVAL;
	size = fay_kernel_trampoline_write(&wanted, scratch, FAY_KERNEL_TRAMPOLINE_MAX);
	if (!size || size > session->text_size - offset)
		return -EINVAL;
	if (memcmp(session->text + offset, scratch, size))
		return -EKEYREJECTED;
	set->trampoline = wanted.address;
	return 0;
}

static bool result_valid(u32 result)
{
	u32 above = result & ~FAY_KERNEL_RESULT_SIGNED;

	return above == 0 || above == 32 || above == 48 || above == 56 ||
	       above == FAY_KERNEL_RESULT_NONE;
}

/* Which probes may stand together, and how they may be called. */
static int check_set(const struct fay_session *session, const struct fay_kernel_set *set)
{
	u32 hosted = 0, placed = 0, returns = 0;

	if (set->probes &
		    ~(session->code.probe_count == 64 ? ~0ull
						      : (1ull << session->code.probe_count) - 1) ||
	    !set->probes)
		return -EINVAL;
	for (u32 i = 0; i < session->code.probe_count; i++) {
		if (!(set->probes >> i & 1))
			continue;
		if (session->code.probes[i].kind == FAY_PROBE_ENTRY ||
		    session->code.probes[i].kind == FAY_PROBE_RETURN)
			placed++;
		else
			hosted++;
		returns += session->code.probes[i].kind == FAY_PROBE_RETURN;
	}
	if (hosted + (placed != 0) != 1 || set->stack_words > FAY_KERNEL_STACK_WORDS_MAX ||
	    (set->stack_words && !returns))
		return -EINVAL;
	if (!result_valid(set->result) || (set->result && !returns) || set->reserved)
		return -EINVAL;
	if ((placed != 0) != (set->point_count != 0) || set->callback > 1 ||
	    (set->callback && (returns || !placed)))
		return -EINVAL;
	return 0;
}

/* Nobody is inside a trampoline but in calls that it made: preempted tasks have gone on (RCU
 * tasks), and so has what runs where RCU does not watch (rude). */
static void wait_for_trampolines(void)
{
	synchronize_rcu_tasks();
	synchronize_rcu_tasks_rude();
}

/* Sums over all CPUs of what this session's return trampolines count. */
struct call_sums {
	u64 begun, ended;
};

static struct call_sums sum_calls(const struct fay_session *session)
{
	struct call_sums sums = { 0 };
	int cpu;

	/* Ended first: a call that begins and ends meanwhile must not make the others look
	 * ended. */
	for_each_possible_cpu(cpu) sums.ended +=
		READ_ONCE(per_cpu(fay_cpu_sessions, cpu)[session->number].ended);
	smp_mb();
	for_each_possible_cpu(cpu) sums.begun +=
		READ_ONCE(per_cpu(fay_cpu_sessions, cpu)[session->number].begun);
	return sums;
}

#define CALLS_WAIT_MS 200

/*
 * Nothing is patched any more: waits until nobody is inside a trampoline or will return into one.
 * Returns the calls that are still under way after CALLS_WAIT_MS. The grace period counts only if
 * no call was under way when it began and none began while it lasted (by a task that was preempted
 * in a trampoline's beginning): a call that sleeps ends the period for its task, and may be behind
 * its count but not behind its ret.
 */
static u64 wait_for_calls(const struct fay_session *session)
{
	struct call_sums before, after;
	unsigned int waited = 0;

	do {
		for (before = sum_calls(session); before.begun != before.ended;
		     before = sum_calls(session)) {
			if (waited >= CALLS_WAIT_MS)
				return before.begun - before.ended;
			msleep(10);
			waited += 10;
		}
		wait_for_trampolines();
		after = sum_calls(session);
	} while (after.begun != before.begun || after.ended != before.ended);
	return 0;
}

/* ---- attach, detach ---- */

static int take_sets(struct fay_session *session, const struct fay_kernel_set *given, u32 count)
{
	kvfree(session->sets);
	session->set_count = 0;
	session->sets = kvcalloc(count, sizeof(*session->sets), GFP_KERNEL);
	if (!session->sets)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++)
		session->sets[i].given = given[i];
	session->set_count = count;
	return 0;
}

/* Each point belongs to one set: those of a set follow those of the sets before it. */
static int place_points(struct fay_session *session, u32 point_count)
{
	u32 next = 0;

	for (unsigned int i = 0; i < session->set_count; i++) {
		struct fay_set *set = &session->sets[i];

		if (set->given.point_count > point_count - next)
			return -EINVAL;
		set->first_point = next;
		next += set->given.point_count;
	}
	return next == point_count ? 0 : -EINVAL;
}

static int check_sets(const struct fay_session *session)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < session->set_count; i++)
		result = check_set(session, &session->sets[i].given);
	return result;
}

static int check_code(struct fay_session *session)
{
	u8 *scratch = kmalloc(FAY_KERNEL_TRAMPOLINE_MAX, GFP_KERNEL);
	int result = scratch ? check_layout(session) : -ENOMEM;

	for (unsigned int i = 0; !result && i < session->set_count; i++)
		result = check_trampoline(session, &session->sets[i], scratch);
	kfree(scratch);
	return result;
}

static int register_all(struct fay_session *session, const struct fay_kernel_point *points)
{
	int result = 0;

	for (unsigned int i = 0; !result && i < session->set_count; i++)
		result = fay_register_set(&session->sets[i], points);
	return result;
}

/* The module and what is in it are checked, and a reference to it is taken. */
static int prepare(struct fay_session *session, const struct fay_kernel_set *sets, u32 set_count,
		   u32 point_count)
{
	int result;

	session->checked = false;
	if (session->users && !fay_users_hold(session->users))
		return -ESTALE;
	if (session->users && !fay_area_take(session))
		return -ENOEXEC;
	/* One that is still being loaded can fail, and would go although there is a reference. */
	if (!session->module || READ_ONCE(session->module->state) != MODULE_STATE_LIVE)
		return -ENOEXEC;
	result = take_sets(session, sets, set_count);
	if (!result)
		result = place_points(session, point_count);
	if (!result)
		result = check_sets(session);
	if (!result && session->users)
		result = fay_area_write(session);
	if (!result)
		result = check_code(session);
	if (!result && !try_module_get(session->module))
		result = -ENOEXEC;
	session->checked = session->pinned = !result;
	return result;
}

int fay_session_attach(struct fay_session *session, const struct fay_kernel_attach *attach)
{
	struct fay_kernel_set *sets;
	struct fay_kernel_point *points;
	u64 calls;
	int result;

	if (session->pinned)
		return -EBUSY;
	if (!attach->set_count || attach->set_count > FAY_KERNEL_SETS_MAX ||
	    attach->point_count > FAY_KERNEL_POINTS_MAX)
		return -EINVAL;
	if (session->users && attach->point_count > session->users->given.max_points)
		return -E2BIG;
	sets = vmemdup_user((const void __user *)attach->sets, attach->set_count * sizeof(*sets));
	if (IS_ERR(sets))
		return PTR_ERR(sets);
	points = vmemdup_user((const void __user *)attach->points,
			      attach->point_count * sizeof(*points));
	if (IS_ERR(points)) {
		kvfree(sets);
		return PTR_ERR(points);
	}
	result = session->users ? fay_users_points(session, sets, attach->set_count, points,
						   attach->point_count)
				: 0;
	if (!result)
		result = fay_make_table(session, points, attach->point_count);
	if (!result) {
		mutex_lock(&fay_mutex);
		result = prepare(session, sets, attach->set_count, attach->point_count);
		mutex_unlock(&fay_mutex);
	}
	if (!result) {
		session->attached = true;
		result = register_all(session, points);
		if (result)
			fay_session_detach(session, &calls);
	}
	kvfree(points);
	kvfree(sets);
	return result;
}

int fay_session_detach(struct fay_session *session, u64 *calls)
{
	*calls = 0;
	if (!session->pinned)
		return 0;
	if (session->attached) {
		session->stuck = !fay_unregister_sets(session);
		session->attached = false;
	}
	if (session->stuck)
		return -ENOTRECOVERABLE;
	*calls = wait_for_calls(session);
	if (*calls)
		return -EAGAIN;
	fay_free_sets(session);
	session->pinned = false;
	module_put(session->module); /* the reference has kept it `module` */
	return 0;
}

/* A begin, end or timer probe, in this task; also when nothing is attached any more, for the end.
 * The module cannot go meanwhile: fay_module_event() waits. */
int fay_session_run(struct fay_session *session, u32 set)
{
	int result = -EINVAL;

	mutex_lock(&fay_mutex);
	if (session->checked && set < session->set_count && !session->sets[set].given.point_count) {
		((void (*)(void))session->sets[set].trampoline)();
		result = 0;
	}
	mutex_unlock(&fay_mutex);
	return result;
}
