/* SPDX-License-Identifier: MIT */
/* Configuration files: the long options of a command line, one "name = value" a line, a name alone
 * where the option has no value; '#' at a line's beginning or behind a space begins a comment. */
#ifndef FAY_CLUSTER_CONFIG_H
#define FAY_CLUSTER_CONFIG_H

#include <getopt.h>

#include "fay/error.h"

/*
 * Calls `set` with each line's option, which is one of `names`, and its value; NULL: it has none.
 * The values are of malloc(3) and never freed. FAY_E_USAGE: a line is not understood; `set` did not
 * return FAY_OK, and has said why; the file cannot be opened; or it has a password (a URL with
 * USER:PASSWORD@) and others than its owner can read it; a line is of more than 1,022 bytes.
 */
int fay_config_read(const char *path, const struct option *names,
		    int (*set)(void *context, int option, const char *value), void *context,
		    struct fay_error *error);

#endif
