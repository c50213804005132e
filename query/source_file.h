/* SPDX-License-Identifier: MIT */
#ifndef FAY_QUERY_SOURCE_FILE_H
#define FAY_QUERY_SOURCE_FILE_H

#include "check.h"

/* file("NAME") as a source; NULL with the error recorded. */
struct fay_value_node *fay_check_file(struct fay_checked *checked, const struct fay_node *call);
/* Whether the saved trace has that column; false with the error recorded. */
bool fay_check_saved(struct fay_checked *checked, struct fay_span span, const char *name);

#endif
