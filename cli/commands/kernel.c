/* SPDX-License-Identifier: MIT */
/* `fay kernel`: who may trace the kernel without being root, and what of it. */
#include <grp.h>
#include <inttypes.h>
#include <string.h>

#include "cli/options/options.h"
#include "fay/kernel.h"

#include "commands.h"

#define POLICY_FILE "/etc/fay/kernel.policy"

static void print_usage(FILE *out)
{
	fprintf(out, "usage: fay kernel allow [FILE] | deny | show\n"
		     "  fay kernel allow   as root: a group may trace what FILE says\n"
		     "                     (" POLICY_FILE ")\n"
		     "  fay kernel deny    as root: nobody but root may any more\n"
		     "  fay kernel show    what is allowed\n");
}

static int allow(const char *path)
{
	struct fay_kernel_users users;
	struct fay_error error;
	size_t functions;

	if (fay_kernel_users_read(path, &users, &error) ||
	    fay_kernel_users_allow(&users, &functions, &error))
		return fay_cli_fail(&error);
	printf("%zu kernel function%s can be traced by the group now\n", functions,
	       functions == 1 ? "" : "s");
	return FAY_OK;
}

static int deny(void)
{
	struct fay_error error;

	return fay_kernel_users_deny(&error) ? fay_cli_fail(&error) : FAY_OK;
}

static void print_names(const char *title, uint64_t mask, const char *(*name)(unsigned))
{
	printf("%s", title);
	for (unsigned i = 0; name(i); i++)
		if (mask >> i & 1)
			printf(" %s", name(i));
	putchar('\n');
}

static int show(void)
{
	struct fay_kernel_users users;
	const struct group *group;

	if (!fay_kernel_users_ask(&users)) {
		printf("only root traces the kernel natively here, or others than you\n");
		return FAY_E_REFUSED;
	}
	group = getgrgid(users.group);
	printf("group = %s\n", group ? group->gr_name : "?");
	printf("tracepoints =");
	for (uint32_t i = 0; i < users.images.pattern_count; i++)
		printf(" %s", users.images.patterns[i]);
	putchar('\n');
	print_names("probe_kinds =", users.images.allow_kinds, fay_probe_kind_name);
	print_names("allow_event_fields =", users.images.allow_fields, fay_event_field_name);
	print_names("allow_helpers =", users.images.allow_helpers, fay_helper_name);
	printf("max_instructions = %" PRIu64 "\nmax_stack = %" PRIu64 "\nmax_local = %" PRIu64
	       "\nmax_global = %" PRIu64 "\nmax_state = %" PRIu64
	       "\nmax_points = %u\nmax_sessions = %u\n",
	       users.images.max_instructions, users.images.max_stack, users.images.max_local,
	       users.images.max_global, users.max_state, users.max_points, users.max_sessions);
	return FAY_OK;
}

int fay_kernel_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		print_usage(stdout);
		return FAY_OK;
	}
	if (!strcmp(what, "allow") && argc <= 3)
		return allow(argc == 3 ? argv[2] : POLICY_FILE);
	if (!strcmp(what, "deny") && argc == 2)
		return deny();
	if (!strcmp(what, "show") && argc == 2)
		return show();
	print_usage(stderr);
	return FAY_E_USAGE;
}
