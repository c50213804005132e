/* SPDX-License-Identifier: MIT */
/* libFuzzer: the input is an ELF file; its functions and USDT probes are listed, and one that is
 * not there is asked for. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fay/loader.h"
#include "loader/suggest/suggest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fay_target *target;
	struct fay_function_list list;
	struct fay_error error;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!fay_target_open_file(path, &target, &error)) {
		if (!fay_target_find(target, "*!*", &list, &error))
			fay_function_list_deinit(&list);
		if (!fay_target_find(target, "*!no_such_functoin", &list, &error))
			fay_function_list_deinit(&list);
		else
			fay_suggest(target, &error);
		if (!fay_target_find_markers(target, "*!*", &list, &error))
			fay_function_list_deinit(&list);
		else
			fay_suggest(target, &error);
		fay_target_close(target);
	}
	close(fd);
	return 0;
}
