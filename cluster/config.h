/* SPDX-License-Identifier: MIT */
/* Configuration files: the long options of a command line, one "name = value" a line, a name alone where the option has no value; '#' begins a comment. */
#ifndef FAY_CLUSTER_CONFIG_H
#define FAY_CLUSTER_CONFIG_H

#include <getopt.h>

#include "fay/error.h"

/*
 * Calls `set` with each line's option, which is one of `names`, and its value; NULL: it has none. The values are of malloc(3) and never freed. Another result than FAY_OK ends it
 * and is returned; `set` has said why then. FAY_E_USAGE: a line is not understood, the file cannot be opened, or it has a password (a URL with USER:PASSWORD@) and can be read by everybody.
 */
int fay_config_read(const char *path, const struct option *names, int (*set)(void *context, int option, const char *value), void *context,
		    struct fay_error *error);

#endif
