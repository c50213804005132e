/* SPDX-License-Identifier: MIT */
/* libFuzzer: the input as a saved trace; all that can be asked of it is asked. The magic is put in,
 * else nothing else is ever looked at. */
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
	if (fd < 0 || size < 8 || write(fd, data, size) != (ssize_t)size ||
	    pwrite(fd, FAY_SAVED_MAGIC, 8, 0) != 8 ||
	    (data[0] & 7 && pwrite(fd, &header_size, 4, 8) != 4)) {
		close(fd);
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!fay_saved_open(path, &saved, &error)) {
		uint64_t sum = fay_saved_header(saved)->row_count;
		for (uint32_t stream = 0; stream < fay_saved_header(saved)->stream_count;
		     stream++) {
			const struct fay_saved_stream *of = fay_saved_stream_at(saved, stream);
			fay_saved_select(saved, stream);
			for (uint32_t i = 0; i < of->column_count; i++)
				sum += fay_saved_column(saved,
							fay_saved_column_at(saved, stream, i)->name)
					       ->size +
				       strlen(of->pattern);
		}
		/* Of all streams, of one, and of some functions of one. */
		if (data[0] & 8 || fay_saved_header(saved)->stream_count > 1)
			fay_saved_select(saved, data[0] & 8 ? 0 : FAY_SAVED_STREAMS);
		if (data[0] & 16 && data[0] & 8)
			sum += fay_saved_only(saved, "r*");
		for (const uint8_t *row; (row = fay_saved_next(saved, &error));) {
			uint64_t word;
			for (uint32_t at = 0;
			     at < fay_saved_stream_at(saved, fay_saved_row_stream(saved))->row_size;
			     at += 8) {
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
