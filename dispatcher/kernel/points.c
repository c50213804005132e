// SPDX-License-Identifier: MIT OR GPL-2.0
/* The functions themselves: which addresses ftrace can trace, the table of a session's, and their
 * calls, which ftrace makes and takes back. */
#include <asm/pgtable.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fay.h"

/* ---- which addresses are points ---- */

#define CALL_SIZE 5
#define CALL_OPCODE 0xe8
#define BREAKPOINT 0xcc

/*
 * Whether it lies in the text of the kernel's image: mapped there, and executable. Loadable modules
 * could be unloaded while their functions are traced; and elsewhere nothing is even looked at: a
 * device's registers can have effects when they are read.
 */
static bool in_kernel_text(u64 address)
{
	unsigned int level;
	const pte_t *entry;

	if (address < __START_KERNEL_map || address >= MODULES_VADDR)
		return false;
	entry = lookup_address(address, &level);
	return entry && pte_present(*entry) && pte_exec(*entry);
}

/* Whether a call or a 5-byte nop stands there, or one that is being changed: else there is no use
 * in asking ftrace. */
static bool may_be_point(u64 address)
{
	static const u8 nop[CALL_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	u8 bytes[CALL_SIZE];

	if (!in_kernel_text(address) || !in_kernel_text(address + CALL_SIZE - 1) ||
	    copy_from_kernel_nofault(bytes, (const void *)address, CALL_SIZE))
		return false;
	return bytes[0] == CALL_OPCODE || bytes[0] == BREAKPOINT || !memcmp(bytes, nop, CALL_SIZE);
}

/*
 * ftrace takes many addresses in one call, all or none; few of those asked for here are refused, by
 * -EINVAL. Other errors (no memory, ftrace is dead) say nothing about an address. Each call leaves
 * a table of filters to be freed by RCU, so RCU is let come along.
 */
static int ask_ftrace(unsigned long *addresses, const u32 *indices, u32 count, u8 *answers)
{
	struct ftrace_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL); /* never registered */
	u32 size = 1024, calls = 0;
	int refused = 0;

	if (!ops)
		return -ENOMEM;
	for (u32 at = 0;
	     at < count && (!refused || refused == -EINVAL) && !fatal_signal_pending(current);) {
		u32 now = min(size, count - at);

		refused = ftrace_set_filter_ips(ops, &addresses[at], now, 0, 1);
		if (!refused) {
			for (u32 i = at; i < at + now; i++)
				answers[indices[i]] = 1;
			at += now;
			size = min(2 * size, 1024u);
		} else if (now > 1) {
			size = now / 2;
		} else {
			at++;
		}
		if (++calls % 64 == 0)
			synchronize_rcu();
		cond_resched();
	}
	ftrace_free_filter(ops);
	kfree(ops);
	return refused == -EINVAL ? 0 : refused;
}

int fay_check_points(const struct fay_kernel_check *check)
{
	unsigned long *addresses;
	u32 *indices, kept = 0;
	u8 *answers;
	int result = -ENOMEM;

	if (!check->count || check->count > FAY_KERNEL_CHECK_MAX || check->reserved)
		return -EINVAL;
	addresses = vmemdup_user((const void __user *)check->addresses,
				 check->count * sizeof(*addresses));
	if (IS_ERR(addresses))
		return PTR_ERR(addresses);
	answers = kvzalloc(check->count, GFP_KERNEL);
	indices = kvmalloc_array(check->count, sizeof(*indices), GFP_KERNEL);
	if (answers && indices) {
		for (u32 i = 0; i < check->count; i++) {
			if (!may_be_point(addresses[i]))
				continue;
			addresses[kept] = addresses[i];
			indices[kept++] = i;
		}
		result = ask_ftrace(addresses, indices, kept, answers);
		if (!result && copy_to_user((void __user *)check->answers, answers, check->count))
			result = -EFAULT;
	}
	kvfree(indices);
	kvfree(answers);
	kvfree(addresses);
	return result;
}

/* ---- a session's table ---- */

/* Half of the table is empty at least, so that real functions have runs of some tens; addresses
 * chosen to have longer ones are refused. */
#define RUN_MAX 256u

/* The place of an address, or the empty one where it belongs; RUN_MAX places on there is none. */
static struct fay_kernel_point *place_in(struct fay_kernel_point *table, u32 mask, u64 address)
{
	u32 at = fay_point_hash(address);

	for (u32 i = 0; i < RUN_MAX; i++, at++)
		if (!table[at & mask].address || table[at & mask].address == address)
			return &table[at & mask];
	return NULL;
}

int fay_make_table(struct fay_session *session, const struct fay_kernel_point *points, u32 count)
{
	u32 size = roundup_pow_of_two(2 * count + 2);
	struct fay_kernel_point *table = kvcalloc(size, sizeof(*table), GFP_KERNEL);

	if (!table)
		return -ENOMEM;
	for (u32 i = 0; i < count; i++) {
		struct fay_kernel_point *place =
			may_be_point(points[i].address)
				? place_in(table, size - 1, points[i].address)
				: NULL;

		if (!place || place->address) {
			kvfree(table);
			return -EINVAL; /* a function twice, or one that is not for us */
		}
		*place = points[i];
		cond_resched();
	}
	kvfree(session->table);
	session->table = table;
	session->table_mask = size - 1;
	return 0;
}

/* ---- their calls ---- */

/* Functions that are called directly, of all sessions. */
static atomic_t direct_total = ATOMIC_INIT(0);

/* What does not fit is never added, not even for a moment: another asker would be refused for
 * it. */
static bool take_direct(u32 count)
{
	int taken = atomic_read(&direct_total);

	do {
		if (count > FAY_KERNEL_DIRECT_TOTAL - taken)
			return false;
	} while (!atomic_try_cmpxchg(&direct_total, &taken, taken + count));
	return true;
}

static int register_calls(struct fay_set *set, struct ftrace_ops *ops)
{
	u32 count = set->given.point_count;
	int result;

	if (set->given.callback) {
		ops->func = (ftrace_func_t)set->trampoline;
		return register_ftrace_function(ops);
	}
	if (!take_direct(count))
		return -EDQUOT;
	result = register_ftrace_direct_multi(ops, set->trampoline);
	if (result)
		atomic_sub(count, &direct_total);
	return result;
}

/*
 * On errors, too, the set keeps what ftrace was given: what ftrace refuses because a live patch has
 * one of the functions was in its list for a moment, and ftrace does not wait for who walks the
 * list.
 */
int fay_register_set(struct fay_set *set, const struct fay_kernel_point *points)
{
	u32 count = set->given.point_count;
	unsigned long *addresses;
	int result;

	if (!count)
		return 0;
	addresses = kvmalloc_array(count, sizeof(*addresses), GFP_KERNEL);
	set->ops = kzalloc(sizeof(*set->ops), GFP_KERNEL);
	if (!addresses || !set->ops) {
		kvfree(addresses);
		return -ENOMEM;
	}
	for (u32 i = 0; i < count; i++)
		addresses[i] = points[set->first_point + i].address;
	result = ftrace_set_filter_ips(set->ops, addresses, count, 0, 1);
	kvfree(addresses);
	if (result)
		return result;
	result = register_calls(set, set->ops);
	/* If ftrace died meanwhile, some calls may be made already, by code that refers to `ops`;
	 * and they are never taken back. */
	set->registered = !result || result == -ENODEV;
	return result;
}

/* Whether ftrace took the set's calls back; if not, it holds on to what it was given. */
static bool unregister_set(struct fay_set *set)
{
	if (!set->registered)
		return true;
	/*
	 * Of a set that is called directly, ftrace forgets the function before it says that it
	 * cannot take the set back; the set stays in its list, and where another tracer has a
	 * function, too, each call through the list would warn about it. The list's calls pass over
	 * stubs; all else of ftrace takes them as others.
	 */
	if (!set->given.callback)
		set->ops->flags |= FTRACE_OPS_FL_STUB;
	if (set->given.callback ? unregister_ftrace_function(set->ops)
				: unregister_ftrace_direct_multi(set->ops, set->trampoline))
		return false;
	if (!set->given.callback)
		atomic_sub(set->given.point_count, &direct_total);
	set->registered = false;
	return true;
}

void fay_free_sets(struct fay_session *session)
{
	for (unsigned int i = 0; i < session->set_count; i++) {
		struct fay_set *set = &session->sets[i];

		if (set->ops)
			ftrace_free_filter(set->ops);
		kfree(set->ops);
		set->ops = NULL;
	}
}

/* Whether a function's first instruction leads into the session's module, whatever ftrace says. */
static bool is_called(const struct fay_session *session)
{
	for (u32 i = 0; i <= session->table_mask; i++) {
		u64 address = session->table[i].address;
		u8 bytes[CALL_SIZE];
		s32 distance;

		if (!address || copy_from_kernel_nofault(bytes, (const void *)address, CALL_SIZE) ||
		    bytes[0] != CALL_OPCODE)
			continue;
		memcpy(&distance, bytes + 1, sizeof(distance));
		if (address + CALL_SIZE + distance - (u64)session->text < session->text_size)
			return true;
	}
	return false;
}

bool fay_unregister_sets(struct fay_session *session)
{
	bool gone = true;

	for (unsigned int i = 0; i < session->set_count; i++)
		gone &= unregister_set(&session->sets[i]);
	gone = gone && !(session->table && is_called(session));
	if (!gone)
		pr_err_once("fay: ftrace cannot remove calls (a fault has switched it off): code "
			    "that is still called, and fay.ko, stay until the next boot\n");
	return gone;
}
