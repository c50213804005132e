/* SPDX-License-Identifier: MIT */
/* Whether a process has the file that a query's types were read from. Offsets of another build
 * would be wrong without a sign, so a process that has another file is not traced. */
#include <string.h>

#include "process.h"

bool fay_same_build(const struct fay_function_file *a, const struct fay_function_file *b)
{
	return a->build_id_size == b->build_id_size &&
	       !memcmp(a->build_id, b->build_id, a->build_id_size);
}

int fay_described_check(const struct fay_described *described, struct fay_target *target,
			struct fay_error *error)
{
	const struct fay_function_file *known = &described->file;
	struct fay_function_list list;
	struct fay_function_file file;
	if (fay_target_find_code(target, described->pattern, &list, NULL))
		return FAY_OK; /* it is not traced there */
	bool found = fay_target_file_of(target, &list.items[0], &file);
	bool same = found && (known->build_id_size
				      ? fay_same_build(known, &file)
				      : known->device == file.device && known->inode == file.inode);
	fay_function_list_deinit(&list);
	if (same)
		return FAY_OK;
	return fay_error_set(
		error, FAY_E_REFUSED,
		"process %d runs another build of %s than the one whose types the query uses",
		fay_target_pid(target), described->pattern);
}
