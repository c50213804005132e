// SPDX-License-Identifier: MIT OR GPL-2.0
/* A session's life: its number, its state, what CREATE answers. */
#include <asm/tsc.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fay.h"

DEFINE_MUTEX(fay_mutex);
struct fay_session *fay_sessions[FAY_KERNEL_SESSIONS_MAX];
DEFINE_PER_CPU(struct fay_cpu_session[FAY_KERNEL_SESSIONS_MAX], fay_cpu_sessions);
/* given to sessions, and to those of users; whose these are. Under fay_mutex */
static DECLARE_BITMAP(numbers, FAY_KERNEL_SESSIONS_MAX);
static DECLARE_BITMAP(user_numbers, FAY_KERNEL_AREA_COUNT);
static kuid_t owners[FAY_KERNEL_AREA_COUNT];
/* from the look at how much memory is free to the taking of it */
static DEFINE_MUTEX(memory_mutex);

void fay_places_fill(unsigned int number, struct fay_kernel_places *places)
{
	/* x86-64's per-CPU variables of the kernel and of modules' static ones have 32-bit
	 * addresses relative to gs. */
	unsigned long at = (unsigned long)&fay_cpu_sessions[number];

	memset(places, 0, sizeof(*places));
	places->preempt_count = (u32)(unsigned long)&__preempt_count;
	places->contexts = (u32)(at + offsetof(struct fay_cpu_session, contexts));
	places->begun = (u32)(at + offsetof(struct fay_cpu_session, begun));
	places->ended = (u32)(at + offsetof(struct fay_cpu_session, ended));
	places->fill = (u64)fay_fill;
	places->resched = (u64)fay_resched;
	places->helpers[0] = (u64)fay_flush;
	places->helpers[1] = (u64)fay_emit;
	places->helpers[2] = (u64)fay_try_read;
}

/* The ring that records wait in; without one no state may need it. */
static bool spill_valid(const struct fay_code *code, u32 size)
{
	if (size)
		return is_power_of_2(size) && size >= PAGE_SIZE && size <= 16u << 20;
	for (u32 i = 0; i < code->state_count; i++)
		if (code->states[i].kind != FAY_STATE_CELL)
			return false;
	return true;
}

static int take_memory(struct fay_session *session, u64 size)
{
	int result = -ENOMEM;

	if (mutex_lock_killable(&memory_mutex))
		return -EINTR;
	/* Of what is free, half at most: the kernel would end programs for more. */
	if (size <= FAY_KERNEL_SHM_MAX &&
	    size / PAGE_SIZE <= (u64)max(si_mem_available(), 0l) / 2) {
		session->shm = vmalloc_user(size);
		session->contexts =
			kvcalloc(session->slot_count, sizeof(*session->contexts), GFP_KERNEL);
		result = session->shm && session->contexts ? 0 : -ENOMEM;
	}
	mutex_unlock(&memory_mutex);
	return result;
}

static int make_state(struct fay_session *session)
{
	const struct fay_code *code = &session->code;
	struct fay_shm_control *control;
	u64 slots_offset = FAY_SHM_PAGE + PAGE_ALIGN((u64)code->global_size);
	int result;

	session->slot_count = nr_cpu_ids * FAY_KERNEL_CONTEXTS;
	session->spill_offset = ALIGN(FAY_SLOT_HEADER + code->local_size, 64);
	session->slot_stride = PAGE_ALIGN(session->spill_offset + session->spill_size);
	session->slots_offset = slots_offset;
	session->shm_size = slots_offset + (u64)session->slot_count * session->slot_stride;
	if (session->users && session->shm_size > session->users->given.max_state)
		return -EFBIG;
	result = take_memory(session, session->shm_size);
	if (result)
		return result;
	control = session->shm;
	*control = (struct fay_shm_control){ .magic = FAY_SHM_MAGIC,
					     .version = 1,
					     .slot_max = session->slot_count,
					     .slot_stride = session->slot_stride,
					     .slots_offset = slots_offset,
					     .global_offset = FAY_SHM_PAGE,
					     .global_size = code->global_size,
					     .local_size = code->local_size,
					     .spill_offset = session->spill_offset,
					     .spill_size = session->spill_size,
					     .slot_next = session->slot_count };
	for (unsigned int i = 0; i < session->slot_count; i++) {
		struct fay_slot_header *slot =
			session->shm + slots_offset + i * session->slot_stride;

		session->contexts[i] =
			(struct fay_kernel_context){ .slot = i,
						     .local = (u64)slot + FAY_SLOT_HEADER,
						     .global = (u64)session->shm + FAY_SHM_PAGE,
						     .lost = (u64)&slot->lost_reentrant,
						     .session = (u64)session };
	}
	return 0;
}

static void release(struct fay_session *session)
{
	fay_code_release(&session->code);
	kvfree(session->contexts);
	kvfree(session->table);
	kvfree(session->sets);
	vfree(session->shm);
	fay_users_put(session->users);
	kfree(session);
}

static bool has_all(const struct fay_session *session)
{
	unsigned int number, count = 0;

	for_each_set_bit(number, user_numbers, FAY_KERNEL_AREA_COUNT) count +=
		uid_eq(owners[number], session->owner);
	return count >= session->users->given.max_sessions;
}

/* A user's is one that has an area. */
static int take_number(struct fay_session *session)
{
	u32 max = session->users ? FAY_KERNEL_AREA_COUNT : FAY_KERNEL_SESSIONS_MAX;
	int result = 0;

	mutex_lock(&fay_mutex);
	session->number = find_first_zero_bit(numbers, max);
	if (session->users && has_all(session))
		result = -EDQUOT;
	else if (session->number >= max)
		result = -EUSERS;
	else
		__set_bit(session->number, numbers);
	if (!result && session->users) {
		__set_bit(session->number, user_numbers);
		owners[session->number] = session->owner;
	}
	mutex_unlock(&fay_mutex);
	return result;
}

/* Helpers may be looking at the session still. */
static void give_number(const struct fay_session *session)
{
	mutex_lock(&fay_mutex);
	WRITE_ONCE(fay_sessions[session->number], NULL);
	__clear_bit(session->number, numbers);
	if (session->users)
		__clear_bit(session->number, user_numbers);
	mutex_unlock(&fay_mutex);
}

/* Makes it known to CPUs and helpers. */
static void publish(struct fay_session *session)
{
	int cpu;

	mutex_lock(&fay_mutex);
	for_each_possible_cpu(cpu) per_cpu(fay_cpu_sessions, cpu)[session->number] =
		(struct fay_cpu_session){ .contexts =
						  &session->contexts[cpu * FAY_KERNEL_CONTEXTS] };
	smp_store_release(&fay_sessions[session->number], session);
	mutex_unlock(&fay_mutex);
}

/* What trampolines read of a called-back function's registers. */
static_assert(offsetof(struct pt_regs, di) == 112 && offsetof(struct pt_regs, cx) == 88 &&
	      offsetof(struct pt_regs, r8) == 72 && offsetof(struct pt_regs, r9) == 64 &&
	      offsetof(struct pt_regs, sp) == 152 && offsetof(struct ftrace_regs, regs) == 0);

/* The caller is told which probes there are; a user no address. */
static int answer(const struct fay_session *session, struct fay_kernel_create *create)
{
	const struct fay_code *code = &session->code;

	create->session = session->number;
	create->probe_count = code->probe_count;
	create->layout_size = code->layout_size;
	create->shm_size = session->shm_size;
	create->places = session->users ? (struct fay_kernel_places){ 0 } : session->places;
	return copy_to_user((void __user *)create->probes, code->probes,
			    code->probe_count * sizeof(*code->probes))
		       ? -EFAULT
		       : 0;
}

/* Its number first: the layout has the helpers' addresses in it. */
static int make(struct fay_session *session, struct fay_kernel_create *create)
{
	const struct fay_policy *policy =
		session->users ? &session->users->images : &fay_kernel_images;
	int result;

	fay_places_fill(session->number, &session->places);
	result = fay_code_accept(create, policy, &session->places, &session->code);
	if (!result && !spill_valid(&session->code, create->spill_size))
		result = -EINVAL;
	session->spill_size = create->spill_size;
	if (!result)
		result = make_state(session);
	return result ? result : answer(session, create);
}

int fay_session_create(struct fay_kernel_create *create, struct fay_users *users, kuid_t owner,
		       struct fay_session **result)
{
	struct fay_session *session;
	int error;

	create->rule = 0;
	create->place = 0;
	if (create->abi != FAY_KERNEL_ABI)
		return -EPROTO;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	session->users = users ? fay_users_share(users) : NULL;
	session->owner = owner;
	error = take_number(session);
	if (!error) {
		error = make(session, create);
		if (error)
			give_number(session);
	}
	if (error) {
		release(session);
		return error;
	}
	publish(session);
	*result = session;
	return 0;
}

int fay_session_destroy(struct fay_session *session)
{
	u64 calls;
	int result = fay_session_detach(session, &calls);

	if (result)
		return result;
	give_number(session);
	/* other sessions' helpers may be looking at it, with preemption off, also where RCU does
	 * not watch */
	synchronize_rcu_tasks_rude();
	release(session);
	return 0;
}
