/* SPDX-License-Identifier: MIT */
/* What fay.ko lets those do who are not root, and a session of theirs: functions by index, no
 * addresses. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_private.h"

/* errno's value; ENODATA: there is no policy. Functions and names only if `names`. */
static int ask(int device, bool names, struct fay_kernel_answer *answer)
{
	struct fay_kernel_policy *policy = &answer->policy;

	*policy = (struct fay_kernel_policy){ .images = (uint64_t)&answer->images,
					      .images_size = sizeof(answer->images) };
	if (ioctl(device, FAY_KERNEL_ALLOWED, policy))
		return errno;
	if (!names)
		return 0;
	answer->functions = calloc(policy->function_count, sizeof(*answer->functions));
	answer->names = malloc(policy->names_size);
	if (!answer->functions || !answer->names)
		return ENOMEM;
	policy->functions = (uint64_t)answer->functions;
	policy->names = (uint64_t)answer->names;
	return ioctl(device, FAY_KERNEL_ALLOWED, policy) ? errno : 0;
}

bool fay_kernel_users_ask(struct fay_kernel_users *users)
{
	struct fay_kernel_answer answer = { 0 };
	int device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	int code = device < 0 ? errno : ask(device, false, &answer);

	if (device >= 0)
		close(device);
	*users = (struct fay_kernel_users){ .images = answer.images,
					    .max_state = answer.policy.max_state,
					    .max_points = answer.policy.max_points,
					    .max_sessions = answer.policy.max_sessions,
					    .group = answer.policy.group,
					    .user = answer.policy.user };
	return !code;
}

static int take_symbols(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_symbols *symbols = &session->own_symbols;
	const char *name = session->allowed.names;
	size_t count = session->allowed.policy.function_count;

	symbols->items = calloc(count, sizeof(*symbols->items));
	for (size_t i = 0; symbols->items && i < count; i++, name += strlen(name) + 1) {
		symbols->items[i] = (struct fay_kernel_symbol){ i, strdup(name), false };
		if (!symbols->items[i].name)
			break;
		symbols->count++;
	}
	session->symbols = symbols;
	return symbols->count == count ? FAY_OK
				       : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

int fay_kernel_take_allowed(struct fay_kernel_session *session, struct fay_error *error)
{
	int code = ask(session->device, false, &session->allowed);

	/* root, whose device an older fay.ko may be */
	if (code == ENODATA || code == ENOTTY || (!code && !session->allowed.policy.user))
		return FAY_OK;
	if (!code)
		code = ask(session->device, true, &session->allowed);
	if (code)
		return fay_error_set(error, FAY_E_INTERNAL,
				     "fay.ko does not say what its policy allows: %s",
				     strerror(code));
	return take_symbols(session, error);
}

int fay_kernel_judge_allowed(struct fay_kernel_session *session, struct fay_error *error)
{
	uint64_t returns = fay_kernel_return_probes(session);
	size_t kept = 0;

	for (size_t i = 0; i < session->point_count; i++) {
		struct kernel_point *point = &session->points[i];
		const struct fay_kernel_function *function =
			&session->allowed.functions[point->place.address];

		if (point->probes & returns && !function->returns) {
			if (fay_kernel_skip(session, point->name, "its return cannot be traced"))
				return fay_error_set(error, FAY_E_LIMIT, "out of memory");
			continue;
		}
		if (point->probes & returns)
			point->prototype = (struct fay_kernel_prototype){ function->stack_words,
									  function->result };
		session->points[kept++] = *point;
	}
	session->point_count = kept;
	if (kept > session->allowed.policy.max_points)
		return fay_error_set(error, FAY_E_LIMIT,
				     "%zu kernel functions match; the policy for users allows %u "
				     "in one trace",
				     kept, session->allowed.policy.max_points);
	return FAY_OK;
}
