/* SPDX-License-Identifier: MIT */
/* libFuzzer: the input as a saved trace; all that can be asked of it is asked. The magic is put in, else nothing else is ever looked at. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fay/saved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fay_saved *saved;
	struct fay_error error;
	char path[64];
	int fd = memfd_create("saved", MFD_CLOEXEC);
	uint32_t header_size = sizeof(struct fay_saved_header);
	if (fd < 0 || size < 8 || write(fd, data, size) != (ssize_t)size || pwrite(fd, FAY_SAVED_MAGIC, 8, 0) != 8 ||
	    (data[0] & 7 && pwrite(fd, &header_size, 4, 8) != 4)) {
		close(fd);
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!fay_saved_open(path, &saved, &error)) {
		const struct fay_saved_header *header = fay_saved_header(saved);
		uint64_t sum = 0;
		for (uint32_t i = 0; i < header->column_count; i++) {
			const struct fay_saved_column *column = fay_saved_column_at(saved, i);
			sum += fay_saved_column(saved, column->name)->size;
		}
		for (const uint8_t *row; (row = fay_saved_next(saved, &error));) {
			uint64_t word;
			for (uint32_t at = 0; at < header->row_size; at += 8) {
				memcpy(&word, row + at, 8);
				sum += word;
			}
			const char *name = fay_saved_name(saved, sum);
			sum += name ? strlen(name) : 0;
		}
		volatile uint64_t used = sum;
		(void)used;
		fay_saved_close(saved);
	}
	close(fd);
	return 0;
}
