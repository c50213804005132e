/* SPDX-License-Identifier: MIT */
/* The debug information of a file, in itself or in one beside it. */
#ifndef FAY_QUERY_DEBUG_FILE_PRIVATE_H
#define FAY_QUERY_DEBUG_FILE_PRIVATE_H

#include <elfutils/libdwfl.h>
#include <stdint.h>

#include "fay/error.h"

struct fay_debug_file {
	char *debug_path;
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	Dwfl_Module *module;
	Dwarf *dwarf;
	/* what libdwfl adds to the object's addresses, and to those of the debug information */
	uint64_t main_bias, debug_bias;
};

/* fd stays the caller's. FAY_E_REFUSED: there is no debug information. */
int fay_debug_file_open(struct fay_debug_file *file, int fd, const char *path,
			struct fay_error *error);
/* After a failure, too. */
void fay_debug_file_close(struct fay_debug_file *file);

#endif
