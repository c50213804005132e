/* SPDX-License-Identifier: MIT */
/*
 * An image from gcc and a linker script alone: the code is plain C against fay/event.h, the tables
 * are written by requests.lds.
 *
 *     gcc -O2 -fPIC -fvisibility=hidden -fno-plt -mgeneral-regs-only -mno-red-zone \
 *         -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \
 *         -fomit-frame-pointer -ffreestanding -Iinclude -c -o requests.o examples/images/requests.c
 *     ld -shared -nostdlib -z now -z noexecstack --build-id=none \
 *         -T examples/images/requests.lds -o requests.fay requests.o
 *     fay verify requests.fay
 */
#include <fay/event.h>
#include <fay/image.h>

struct state {
	uint64_t count, bytes;
	uint64_t sizes[FAY_HIST_LOG2_BUCKETS];
	uint64_t recent[8]; /* not in the table: the probe's own memory */
	uint64_t next;
};
_Static_assert(sizeof(struct state) == 608, "requests.lds says so");

__attribute__((section(".fay.strings"), used)) static const struct {
	char pattern[10], name[9], count[6], bytes[6], sizes[6];
} strings = { "libc!read", "requests", "count", "bytes", "sizes" };

void probe(const struct fay_event *event, struct state *state, void *global);
void probe(const struct fay_event *event, struct state *state, void *global __attribute__((unused)))
{
	uint64_t size = event->arg[2];

	for (unsigned i = 0; i < 8; i++) /* the same size again and again counts once */
		if (state->recent[i] == size)
			return;
	state->recent[state->next++ & 7] = size;
	state->count++;
	state->bytes += size;
	state->sizes[(int64_t)size <= 0 ? 0 : 64 - __builtin_clzll(size)]++;
}
