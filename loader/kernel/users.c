/* SPDX-License-Identifier: MIT */
/*
 * The policy for users, as root: its file, and fay.ko, which gets a group's number, functions'
 * addresses and names, and limits. Patterns end here.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_private.h"
#include "verifier/image/policy.h"

/* ---- the file ---- */

static const char *read_group(const char *value, void *context)
{
	struct fay_kernel_users *users = context;
	const struct group *group = getgrnam(value);

	if (!group)
		return "there is no such group";
	users->group = group->gr_gid;
	return NULL;
}

static const char *limit(const char *value, uint64_t max, uint64_t *limit)
{
	const char *wrong = fay_policy_number(value, limit);

	return wrong ? wrong : !*limit || *limit > max ? "more than there can be, or none" : NULL;
}

static const char *read_state(const char *value, void *context)
{
	struct fay_kernel_users *users = context;

	return limit(value, FAY_KERNEL_SHM_MAX, &users->max_state);
}

static const char *read_points(const char *value, void *context)
{
	struct fay_kernel_users *users = context;
	uint64_t points;
	const char *wrong = limit(value, FAY_KERNEL_POINTS_MAX, &points);

	users->max_points = (uint32_t)points;
	return wrong;
}

static const char *read_sessions(const char *value, void *context)
{
	struct fay_kernel_users *users = context;
	uint64_t sessions;
	const char *wrong = limit(value, FAY_KERNEL_AREA_COUNT, &sessions);

	users->max_sessions = (uint32_t)sessions;
	return wrong;
}

/* What a file does not say: nothing that shows memory, values or addresses of the kernel, entries
 * only, and short probes with little state: what a helper does is as long as its table. */
static void set_defaults(struct fay_kernel_users *users)
{
	struct fay_policy *images = &users->images;

	*users = (struct fay_kernel_users){
		.max_state = 64u << 20, .max_points = 64, .max_sessions = 2, .group = UINT32_MAX
	};
	fay_policy_default(images);
	images->max_instructions = 2000;
	images->max_local = 512u << 10;
	images->max_global = 64u << 10;
	images->allow_helpers = 1u << FAY_HELPER_FLUSH | 1u << FAY_HELPER_EMIT;
	images->allow_kinds = 1u << FAY_PROBE_ENTRY;
	images->allow_fields =
		FAY_FIELDS_ALWAYS | FAY_FIELD_FUNCTION | FAY_FIELD_MODULE | FAY_FIELD_DURATION;
}

static int check(const char *path, const struct fay_kernel_users *users, struct fay_error *error)
{
	const struct fay_policy *images = &users->images;

	if (users->group == UINT32_MAX)
		return fay_error_set(error, FAY_E_USAGE, "%s: `group` is missing", path);
	if (!images->pattern_count)
		return fay_error_set(error, FAY_E_USAGE,
				     "%s: `tracepoints` is missing, such as kernel!vfs_read", path);
	for (uint32_t i = 0; i < images->pattern_count; i++)
		if (strncmp(images->patterns[i], FAY_KERNEL_MODULE_NAME "!",
			    sizeof(FAY_KERNEL_MODULE_NAME)))
			return fay_error_set(error, FAY_E_USAGE,
					     "%s: %s is no function of the kernel; write "
					     "kernel!%s",
					     path, images->patterns[i], images->patterns[i]);
	return FAY_OK;
}

int fay_kernel_users_read(const char *path, struct fay_kernel_users *users, struct fay_error *error)
{
	const struct fay_policy_keys keys = { .keys = { { "group", read_group },
							{ "max_state", read_state },
							{ "max_points", read_points },
							{ "max_sessions", read_sessions } },
					      .context = users };
	char message[512];
	struct stat stat_of;

	if (stat(path, &stat_of))
		return fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path,
				     strerror(errno));
	if (stat_of.st_uid || stat_of.st_mode & (S_IWGRP | S_IWOTH))
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s could have been written by others than root", path);
	set_defaults(users);
	if (fay_policy_read_with(path, &users->images, &keys, message, sizeof(message)))
		return fay_error_set(error, FAY_E_USAGE, "%s", message);
	fay_policy_restrict_kernel(&users->images);
	return check(path, users, error);
}

/* ---- fay.ko ---- */

/* The patterns as entry probes: what finds functions for probes finds them here. */
static int find_functions(struct fay_kernel_session *session, const struct fay_policy *images,
			  struct fay_error *error)
{
	struct fay_probe_facts facts[FAY_KERNEL_PROBES_MAX] = { 0 };
	struct fay_verdict verdict = { .probes = facts };
	uint64_t found = 0;
	int result;

	for (uint32_t i = 0; i < images->pattern_count; i++) {
		facts[i].pattern = images->patterns[i];
		session->probes[i].kind = FAY_PROBE_ENTRY;
	}
	session->probe_count = images->pattern_count;
	session->verdict = &verdict;
	result = fay_kernel_find_points(session, error);
	session->verdict = NULL;
	if (result || (result = fay_kernel_find_own_names(session, error)))
		return result;
	for (size_t i = 0; i < session->point_count; i++)
		found |= session->points[i].probes;
	for (uint32_t i = 0; i < images->pattern_count; i++)
		if (!(found >> i & 1))
			return fay_error_set(error, FAY_E_USAGE,
					     "no kernel function that can be traced matches `%s`",
					     images->patterns[i]);
	return FAY_OK;
}

/* Points are by address, as fay.ko wants them. */
static int list_functions(struct fay_kernel_session *session, struct fay_kernel_answer *list,
			  struct fay_error *error)
{
	size_t size = 0;
	char *end;

	for (size_t i = 0; i < session->point_count; i++)
		size += strlen(session->points[i].name) + 1;
	list->functions = calloc(session->point_count, sizeof(*list->functions));
	list->names = malloc(size);
	if (!list->functions || !list->names || size > FAY_KERNEL_NAMES_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "too many functions for a policy");
	end = list->names;
	for (size_t i = 0; i < session->point_count; i++) {
		struct kernel_point *point = &session->points[i];
		bool returns = !fay_kernel_return_refusal(session, point);

		list->functions[i] = (struct fay_kernel_function){
			.address = point->place.address,
			.stack_words = returns ? point->prototype.stack_words : 0,
			.result = returns ? point->prototype.result : 0,
			.returns = returns
		};
		end = stpcpy(end, point->name) + 1;
	}
	list->policy.functions = (uint64_t)list->functions;
	list->policy.names = (uint64_t)list->names;
	list->policy.function_count = (uint32_t)session->point_count;
	list->policy.names_size = (uint32_t)size;
	return FAY_OK;
}

/* Room for users' code, by a module that has nothing else. One that is in use stays: it is the
 * same. */
static int load_areas(struct fay_kernel_session *session, struct fay_error *error)
{
	size_t size = (size_t)FAY_KERNEL_AREA_COUNT * FAY_KERNEL_AREA_SIZE;
	uint8_t *text = malloc(size);
	struct fay_kernel_object object = { .reference = session->ko,
					    .text = text,
					    .text_size = size,
					    .name = FAY_KERNEL_AREAS,
					    .indirect = true };
	int result;

	if (!text)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	memset(text, 0xcc, size);
	result = syscall(SYS_delete_module, FAY_KERNEL_AREAS, O_NONBLOCK) && errno == EWOULDBLOCK
			 ? FAY_OK
			 : fay_kernel_object_load(&object, session->btf,
						  "the module for users' code", error);
	free(text);
	return result;
}

static int set_policy(struct fay_kernel_session *session, const struct fay_kernel_users *users,
		      struct fay_error *error)
{
	struct fay_kernel_answer list = { 0 };
	int result = list_functions(session, &list, error);

	list.policy.images = (uint64_t)&users->images;
	list.policy.images_size = sizeof(users->images);
	list.policy.max_state = users->max_state;
	list.policy.max_points = users->max_points;
	list.policy.max_sessions = users->max_sessions;
	list.policy.group = users->group;
	if (!result && ioctl(session->device, FAY_KERNEL_POLICY, &list.policy))
		result = fay_error_set(error, FAY_E_REFUSED, "fay.ko does not take the policy: %s",
				       strerror(errno));
	if (!result && (fchown(session->device, 0, users->group) ||
			fchmod(session->device, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP)))
		result = fay_error_set(error, FAY_E_REFUSED,
				       "cannot give " FAY_KERNEL_DEVICE " to the group: %s",
				       strerror(errno));
	free(list.functions);
	free(list.names);
	return result;
}

int fay_kernel_users_allow(const struct fay_kernel_users *users, size_t *functions,
			   struct fay_error *error)
{
	struct fay_kernel_session *session = calloc(1, sizeof(*session));
	int result;

	if (!session)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->device = -1;
	if (!(result = fay_kernel_device_open(session, NULL, error)) && session->allowed.functions)
		result = fay_error_set(error, FAY_E_REFUSED, "only root sets the policy");
	if (!result && !(result = fay_kernel_read(session, error)) &&
	    !(result = find_functions(session, &users->images, error)) &&
	    !(result = load_areas(session, error)))
		result = set_policy(session, users, error);
	*functions = session->point_count;
	fay_kernel_session_destroy(session);
	return result;
}

int fay_kernel_users_deny(struct fay_error *error)
{
	struct fay_kernel_policy none = { 0 };
	int device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	int result = FAY_OK;

	if (device < 0 && (errno == ENOENT || errno == ENODEV || errno == ENXIO))
		return FAY_OK; /* without fay.ko there is none */
	if (device < 0 || ioctl(device, FAY_KERNEL_POLICY, &none) || fchown(device, 0, 0) ||
	    fchmod(device, S_IRUSR | S_IWUSR))
		result = fay_error_set(error, FAY_E_REFUSED, "cannot end the policy: %s",
				       strerror(errno));
	if (device >= 0)
		close(device);
	/* in use, it stays until it is loaded anew or the machine is booted */
	syscall(SYS_delete_module, FAY_KERNEL_AREAS, O_NONBLOCK);
	return result;
}
