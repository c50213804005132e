/* SPDX-License-Identifier: MIT */
/* Finding the debug information of a file. */
#include "file_private.h"

#include <stdlib.h>
#include <unistd.h>

int fay_debug_file_open(struct fay_debug_file *file, int fd, const char *path,
			struct fay_error *error)
{
	const char *folder = getenv("FAY_DEBUG_DIR");
	folder = folder && *folder ? folder : "/usr/lib/debug";
	*file = (struct fay_debug_file){ 0 };
	if (asprintf(&file->debug_path, "+:.debug:%s", folder) < 0) {
		file->debug_path = NULL;
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	file->callbacks = (Dwfl_Callbacks){ .find_elf = dwfl_build_id_find_elf,
					    .find_debuginfo = dwfl_standard_find_debuginfo,
					    .section_address = dwfl_offline_section_address,
					    .debuginfo_path = &file->debug_path };
	file->dwfl = dwfl_begin(&file->callbacks);
	int own = dup(fd);
	if (file->dwfl && own >= 0)
		file->module = dwfl_report_offline(file->dwfl, path, path, own);
	if (!file->module) {
		if (own >= 0)
			close(own);
		return fay_error_set(error, FAY_E_REFUSED, "%s: %s", path, dwfl_errmsg(-1));
	}
	dwfl_report_end(file->dwfl, NULL, NULL);
	if (!dwfl_module_getelf(file->module, &file->main_bias) ||
	    !(file->dwarf = dwfl_module_getdwarf(file->module, &file->debug_bias)))
		return fay_error_set(error, FAY_E_REFUSED,
				     "%s has no debug information (looked for in the file and, by "
				     "its build ID, below %s)",
				     path, folder);
	return FAY_OK;
}

void fay_debug_file_close(struct fay_debug_file *file)
{
	if (file->dwfl)
		dwfl_end(file->dwfl);
	free(file->debug_path);
}
