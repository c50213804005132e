// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What who is not root may do, by a policy that root gives: which functions, and limits. Patterns
 * and files are the user side's business; here are addresses, names and numbers. Users say indices
 * and are told names: no address comes from them or goes to them.
 */
#include <linux/cred.h>
#include <linux/nospec.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/vmalloc.h>

#include "fay.h"

static struct fay_users *current_users; /* has a reference; under fay_mutex */

/* ---- taking one ---- */

static bool is_bool(const bool *value)
{
	return *(const u8 *)value <= 1;
}

/* Strings that end, and counts of them that are there. */
static bool images_valid(const struct fay_policy *p)
{
	if (p->denied_count > ARRAY_SIZE(p->denied) || p->pattern_count > ARRAY_SIZE(p->patterns))
		return false;
	for (u32 i = 0; i < ARRAY_SIZE(p->denied); i++)
		if (strnlen(p->denied[i], sizeof(p->denied[i])) == sizeof(p->denied[i]))
			return false;
	for (u32 i = 0; i < ARRAY_SIZE(p->patterns); i++)
		if (strnlen(p->patterns[i], sizeof(p->patterns[i])) == sizeof(p->patterns[i]))
			return false;
	return is_bool(&p->speculation_confined) && is_bool(&p->allow_vectors) &&
	       is_bool(&p->allow_rdtsc) && is_bool(&p->allow_certificates) &&
	       is_bool(&p->require_certificate);
}

/* Never more than root's images may. */
static void restrict_images(struct fay_policy *p)
{
	p->max_instructions = min(p->max_instructions, fay_kernel_images.max_instructions);
	p->max_stack = min(p->max_stack, fay_kernel_images.max_stack);
	p->max_local = min(p->max_local, fay_kernel_images.max_local);
	p->max_global = min(p->max_global, fay_kernel_images.max_global);
	p->allow_helpers &= fay_kernel_images.allow_helpers;
	p->allow_kinds &= fay_kernel_images.allow_kinds;
	p->allow_fields &= fay_kernel_images.allow_fields;
	p->speculation_confined = true;
	p->allow_vectors = false;
}

static int take_images(struct fay_users *users)
{
	if (users->given.images_size != sizeof(users->images))
		return -EPROTO;
	if (copy_from_user(&users->images, (const void __user *)users->given.images,
			   sizeof(users->images)))
		return -EFAULT;
	if (!images_valid(&users->images))
		return -EINVAL;
	restrict_images(&users->images);
	return 0;
}

static int take_functions(struct fay_users *users)
{
	u32 count = users->given.function_count;
	struct fay_kernel_function *functions = vmemdup_user(
		(const void __user *)users->given.functions, count * sizeof(*functions));

	if (IS_ERR(functions))
		return PTR_ERR(functions);
	users->functions = functions;
	for (u32 i = 0; i < count; i++)
		if (functions[i].stack_words > FAY_KERNEL_STACK_WORDS_MAX ||
		    functions[i].returns > 1 || functions[i].reserved ||
		    (i && functions[i].address <= functions[i - 1].address))
			return -EINVAL;
	return 0;
}

static int take_names(struct fay_users *users)
{
	u32 size = users->given.names_size, at = 0;
	char *names = vmemdup_user((const void __user *)users->given.names, size);

	if (IS_ERR(names))
		return PTR_ERR(names);
	users->names = names;
	users->hashes = kvcalloc(users->given.function_count, sizeof(*users->hashes), GFP_KERNEL);
	if (!users->hashes)
		return -ENOMEM;
	for (u32 i = 0; i < users->given.function_count; i++) {
		u32 length = strnlen(names + at, size - at);

		if (length == size - at)
			return -EINVAL;
		users->hashes[i] = fay_name_hash(names + at);
		at += length + 1;
	}
	return at == size ? 0 : -EINVAL;
}

static bool limits_valid(const struct fay_kernel_policy *given)
{
	return given->function_count <= FAY_KERNEL_FUNCTIONS_MAX && given->names_size &&
	       given->names_size <= FAY_KERNEL_NAMES_MAX && given->max_points &&
	       given->max_points <= FAY_KERNEL_POINTS_MAX && given->max_sessions &&
	       given->max_sessions <= FAY_KERNEL_AREA_COUNT &&
	       given->max_state <= FAY_KERNEL_SHM_MAX && !given->user && !given->reserved;
}

static int take(struct fay_users *users)
{
	int result;

	users->group = make_kgid(&init_user_ns, users->given.group);
	if (!limits_valid(&users->given) || !gid_valid(users->group))
		return -EINVAL;
	if ((result = take_images(users)) || (result = take_functions(users)))
		return result;
	return take_names(users);
}

/* ---- having one ---- */

struct fay_users *fay_users_share(struct fay_users *users)
{
	refcount_inc(&users->references);
	return users;
}

struct fay_users *fay_users_get(void)
{
	struct fay_users *users;

	mutex_lock(&fay_mutex);
	users = current_users ? fay_users_share(current_users) : NULL;
	mutex_unlock(&fay_mutex);
	return users;
}

void fay_users_put(struct fay_users *users)
{
	if (!users || !refcount_dec_and_test(&users->references))
		return;
	kvfree(users->functions);
	kvfree(users->names);
	kvfree(users->hashes);
	kvfree(users);
}

bool fay_users_hold(const struct fay_users *users)
{
	return users == current_users;
}

int fay_users_set(const struct fay_kernel_policy *given)
{
	struct fay_users *users = NULL;
	int result = 0;

	if (given->function_count) {
		users = kvzalloc(sizeof(*users), GFP_KERNEL);
		if (!users)
			return -ENOMEM;
		refcount_set(&users->references, 1);
		users->given = *given;
		result = take(users);
	} else if (memchr_inv(given, 0, sizeof(*given))) {
		result = -EINVAL;
	}
	if (!result) {
		mutex_lock(&fay_mutex);
		swap(users, current_users);
		mutex_unlock(&fay_mutex);
	}
	fay_users_put(users);
	return result;
}

/* ---- what users are told, and ask for ---- */

static int tell_functions(const struct fay_users *users, const struct fay_kernel_policy *asked)
{
	struct fay_kernel_function __user *to = (void __user *)asked->functions;

	for (u32 i = 0; i < users->given.function_count; i++) {
		struct fay_kernel_function one = users->functions[i];

		one.address = 0;
		if (copy_to_user(&to[i], &one, sizeof(one)))
			return -EFAULT;
		if (i % 1024 == 0)
			cond_resched();
	}
	return copy_to_user((void __user *)asked->names, users->names, users->given.names_size)
		       ? -EFAULT
		       : 0;
}

int fay_users_answer(const struct fay_users *users, bool user, void __user *argument)
{
	struct fay_kernel_policy asked, answer = users->given;
	int result = 0;

	if (copy_from_user(&asked, argument, sizeof(asked)))
		return -EFAULT;
	answer.functions = asked.functions;
	answer.names = asked.names;
	answer.images = asked.images;
	answer.user = user;
	if (asked.images_size &&
	    (asked.images_size != sizeof(users->images) ||
	     copy_to_user((void __user *)asked.images, &users->images, sizeof(users->images))))
		return -EFAULT;
	if (asked.function_count == answer.function_count && asked.names_size == answer.names_size)
		result = tell_functions(users, &asked);
	else if (asked.function_count || asked.names_size)
		result = -EINVAL;
	if (!result && copy_to_user(argument, &answer, sizeof(answer)))
		result = -EFAULT;
	return result;
}

/* What the set's functions must be like: of those whose returns are seen, fay.ko believes nobody
 * but root. */
static bool set_fits(const struct fay_session *session, const struct fay_kernel_set *set,
		     const struct fay_kernel_function *function)
{
	const struct fay_code *code = &session->code;
	bool returns = false, reads = false;

	for (u32 i = 0; i < code->probe_count; i++) {
		if (!(set->probes >> i & 1) || code->probes[i].kind != FAY_PROBE_RETURN)
			continue;
		returns = true;
		reads |= (code->probes[i].fields & FAY_FIELD_RETVAL) != 0;
	}
	return !returns || (function->returns && set->stack_words == function->stack_words &&
			    set->result == (reads ? function->result : 0));
}

int fay_users_points(const struct fay_session *session, const struct fay_kernel_set *sets,
		     u32 set_count, struct fay_kernel_point *points, u32 point_count)
{
	const struct fay_users *users = session->users;
	u32 count = users->given.function_count, next = 0;

	for (u32 i = 0; i < set_count; i++) {
		u32 left = sets[i].point_count;

		if (left > point_count - next || sets[i].trampoline)
			return -EINVAL;
		for (; left; left--, next++) {
			u64 index = points[next].address;

			if (index >= count)
				return -ENOENT;
			index = array_index_nospec(index, count);
			if (!set_fits(session, &sets[i], &users->functions[index]))
				return -EINVAL;
			points[next] = (struct fay_kernel_point){ users->functions[index].address,
								  users->hashes[index] };
		}
	}
	return next == point_count ? 0 : -EINVAL;
}
