// SPDX-License-Identifier: MIT OR GPL-2.0
/* A session's life: what CREATE says is checked here, once; everything later relies on it. */
#include <asm/tsc.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fay.h"

#define PROBE_KINDS                                                                                \
	(1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_BEGIN |                  \
	 1u << FAY_PROBE_END | 1u << FAY_PROBE_TIMER)

DEFINE_MUTEX(fay_mutex);
struct fay_session *fay_sessions[FAY_KERNEL_SESSIONS_MAX];
DEFINE_PER_CPU(struct fay_cpu_session[FAY_KERNEL_SESSIONS_MAX], fay_cpu_sessions);
static DECLARE_BITMAP(numbers, FAY_KERNEL_SESSIONS_MAX); /* given to sessions; under fay_mutex */
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

static u32 fields_of_kind(u32 kind)
{
	switch (kind) {
	case FAY_PROBE_ENTRY: return FAY_KERNEL_FIELDS_ENTRY;
	case FAY_PROBE_RETURN: return FAY_KERNEL_FIELDS_RETURN;
	default: return FAY_FIELDS_ALWAYS;
	}
}

static bool probes_valid(const struct fay_kernel_create *made,
			 const struct fay_kernel_probe *probes)
{
	for (u32 i = 0; i < made->probe_count; i++) {
		u32 kind = probes[i].kind;

		if (kind > 31 || !(PROBE_KINDS >> kind & 1) ||
		    (probes[i].arguments & ~(1 << 7 | 1 << 6 | 1 << 2)))
			return false;
		if (probes[i].code_offset < made->code_offset ||
		    probes[i].code_offset - made->code_offset >= made->code_size)
			return false;
		if (probes[i].fields & ~fields_of_kind(kind))
			return false;
	}
	return true;
}

/* fay_fill() divides by the clock's frequency. */
static bool durations_possible(const struct fay_kernel_create *made,
			       const struct fay_kernel_probe *probes)
{
	for (u32 i = 0; i < made->probe_count; i++)
		if (probes[i].fields & FAY_FIELD_DURATION && tsc_khz < FAY_TSC_KHZ_MIN)
			return false;
	return true;
}

static bool slots_valid(const struct fay_kernel_create *made, const struct fay_kernel_slot *slots)
{
	for (u32 i = 0; i < made->slot_count; i++)
		if (slots[i].helper > 2 || slots[i].offset % 8 || made->layout_size < 8 ||
		    slots[i].offset > made->layout_size - 8)
			return false;
	return true;
}

static bool states_valid(const struct fay_kernel_create *made,
			 const struct fay_kernel_state *states)
{
	for (u32 i = 0; i < made->state_count; i++) {
		const struct fay_kernel_state *s = &states[i];

		if (s->kind != FAY_STATE_TABLE && s->kind != FAY_STATE_STREAM)
			continue;
		if (!made->spill_size || !s->row_size || s->row_size % 8 || s->row_size > 4096 ||
		    s->rows > 65536)
			return false;
		if (s->kind == FAY_STATE_TABLE &&
		    (s->offset % 8 ||
		     (u64)s->offset + sizeof(struct fay_table_header) + (u64)s->rows * s->row_size >
			     made->local_size))
			return false;
	}
	return true;
}

static bool sizes_valid(const struct fay_kernel_create *c)
{
	return c->local_size <= FAY_IMAGE_MAX_LOCAL && c->local_size % 8 == 0 &&
	       c->global_size <= FAY_IMAGE_MAX_GLOBAL && c->global_size % 8 == 0 &&
	       (!c->spill_size || (is_power_of_2(c->spill_size) && c->spill_size >= PAGE_SIZE &&
				   c->spill_size <= 16u << 20)) &&
	       c->layout_size && c->layout_size <= FAY_KERNEL_LAYOUT_MAX &&
	       c->code_offset <= c->layout_size && c->code_size &&
	       c->code_size <= c->layout_size - c->code_offset &&
	       c->slot_count <= FAY_KERNEL_SLOTS_MAX && c->probe_count &&
	       c->probe_count <= FAY_KERNEL_PROBES_MAX && c->state_count <= FAY_KERNEL_STATES_MAX;
}

/* count * size bytes, at least one, from the user; an ERR_PTR on error. */
static void *take(u64 from, size_t count, size_t size)
{
	return count ? vmemdup_user((const void __user *)from, count * size)
		     : kvzalloc(size, GFP_KERNEL);
}

static int take_tables(struct fay_session *session)
{
	const struct fay_kernel_create *made = &session->made;
	void *slots = take(made->slots, made->slot_count, sizeof(*session->slots));
	void *probes = take(made->probes, made->probe_count, sizeof(*session->probes));
	void *states = take(made->states, made->state_count, sizeof(*session->states));
	int result = -EINVAL;

	session->slots = IS_ERR(slots) ? NULL : slots;
	session->probes = IS_ERR(probes) ? NULL : probes;
	session->states = IS_ERR(states) ? NULL : states;
	if (IS_ERR(slots) || IS_ERR(probes) || IS_ERR(states))
		return -EFAULT;
	if (!slots || !probes || !states)
		return -ENOMEM;
	if (slots_valid(made, slots) && probes_valid(made, probes) && states_valid(made, states))
		result = durations_possible(made, probes) ? 0 : -EOPNOTSUPP;
	return result;
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
	const struct fay_kernel_create *made = &session->made;
	struct fay_shm_control *control;
	u64 slots_offset = FAY_SHM_PAGE + PAGE_ALIGN((u64)made->global_size);
	int result;

	session->slot_count = nr_cpu_ids * FAY_KERNEL_CONTEXTS;
	session->spill_offset = ALIGN(FAY_SLOT_HEADER + made->local_size, 64);
	session->slot_stride = PAGE_ALIGN(session->spill_offset + made->spill_size);
	session->slots_offset = slots_offset;
	session->shm_size = slots_offset + (u64)session->slot_count * session->slot_stride;
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
					     .global_size = made->global_size,
					     .local_size = made->local_size,
					     .spill_offset = session->spill_offset,
					     .spill_size = made->spill_size,
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
	kvfree(session->slots);
	kvfree(session->probes);
	kvfree(session->states);
	kvfree(session->contexts);
	kvfree(session->table);
	kvfree(session->sets);
	vfree(session->shm);
	kfree(session);
}

static int take_number(struct fay_session *session)
{
	mutex_lock(&fay_mutex);
	session->number = find_first_zero_bit(numbers, FAY_KERNEL_SESSIONS_MAX);
	if (session->number < FAY_KERNEL_SESSIONS_MAX)
		__set_bit(session->number, numbers);
	mutex_unlock(&fay_mutex);
	return session->number < FAY_KERNEL_SESSIONS_MAX ? 0 : -EUSERS;
}

/* Helpers may be looking at the session still. */
static void give_number(const struct fay_session *session)
{
	mutex_lock(&fay_mutex);
	WRITE_ONCE(fay_sessions[session->number], NULL);
	__clear_bit(session->number, numbers);
	mutex_unlock(&fay_mutex);
}

/* Makes it known to CPUs and helpers. */
static void publish(struct fay_session *session)
{
	int cpu;

	fay_places_fill(session->number, &session->made.places);
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

int fay_session_create(struct fay_kernel_create *create, struct fay_session **result)
{
	struct fay_session *session;
	int error;

	if (create->abi != FAY_KERNEL_ABI)
		return -EPROTO;
	if (!sizes_valid(create))
		return -EINVAL;
	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return -ENOMEM;
	session->made = *create;
	error = take_tables(session);
	if (!error)
		error = take_number(session);
	if (!error) {
		error = make_state(session);
		if (error)
			give_number(session);
	}
	if (error) {
		release(session);
		return error;
	}
	publish(session);
	create->session = session->number;
	create->reserved = 0;
	create->shm_size = session->shm_size;
	create->places = session->made.places;
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
