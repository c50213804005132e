/* SPDX-License-Identifier: MIT */
#ifndef FAY_QUERY_SOURCE_FILE_H
#define FAY_QUERY_SOURCE_FILE_H

#include "check.h"

/* file("NAME") as a source; NULL with the error recorded. */
struct fay_value_node *fay_check_file(struct fay_checked *checked, const struct fay_node *call);
/* file("NAME").Function("module!name") and the like: of the saved events those that the same source
 * of the cluster would have. */
bool fay_check_is_file_source(const struct fay_node *call);
struct fay_value_node *fay_check_file_source(struct fay_checked *checked,
					     const struct fay_node *call);
/* Whether the events are saved ones that have that column. */
bool fay_check_is_saved(const struct fay_checked *checked, const char *name);
/* Whether the saved trace has the event's own field or argument (`Arg(0)`) of that name; false with
 * the error recorded. */
bool fay_check_saved(struct fay_checked *checked, struct fay_span span, const char *name);
/* event.name of a saved event, where no event has this field by itself; NULL with the error
 * recorded. */
struct fay_value_node *fay_check_saved_member(struct fay_checked *checked,
					      const struct fay_node *node);
/* The same as an expression; NULL: there is no such column, or only one that every event has. */
const struct fay_expr *fay_check_saved_column(struct fay_checked *checked, const char *name);
/* The column that has the event's field, of its type; NULL. */
const struct fay_saved_column *fay_saved_field(const struct fay_saved *saved,
					       const struct fay_field *field);
/* The same by its name. */
const struct fay_saved_column *fay_saved_own(const struct fay_saved *saved, const char *name);

#endif
