/* SPDX-License-Identifier: MIT */
#include "stop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loader/bisect.h"

#define PAGE 4096u
#define PAGES_MAX (1u << 20) /* 4 GiB of code */
#define RUNS_AT_ONCE 64u
#define SPARE_MAX (16u << 20)

static int by_address(const void *a, const void *b)
{
	const struct fay_text_page *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int fay_text_want(struct fay_text *text, uint64_t address, size_t size, struct fay_error *error)
{
	uint64_t first = address & ~(uint64_t)(PAGE - 1),
		 last = (address + size - 1) & ~(uint64_t)(PAGE - 1);

	for (uint64_t page = first; size && page <= last; page += PAGE) {
		if (text->count && text->pages[text->count - 1].address == page)
			continue;
		if (text->count == text->capacity) {
			size_t more = text->capacity ? 2 * text->capacity : 64;
			struct fay_text_page *grown =
				more > 2 * PAGES_MAX ? NULL
						     : realloc(text->pages, more * sizeof(*grown));

			if (!grown)
				return fay_error_set(
					error, FAY_E_LIMIT,
					"too many pages of code (limit %u), or out of memory",
					PAGES_MAX);
			text->pages = grown;
			text->capacity = more;
		}
		text->pages[text->count++] = (struct fay_text_page){ .address = page };
	}
	return 0;
}

/* The buffer of a text that is done with, for the next one: who attaches to one process after the
 * other would have its pages made and cleared each time. */
struct fay_text_buffer {
	void *bytes;
	size_t size;
};
static struct fay_text_buffer *spare;

static void buffer_free(struct fay_text_buffer *buffer)
{
	if (buffer)
		munmap(buffer->bytes, buffer->size);
	free(buffer);
}

static struct fay_text_buffer *buffer_take(size_t size)
{
	struct fay_text_buffer *buffer = __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQ_REL);

	if (buffer && buffer->size >= size)
		return buffer;
	buffer_free(buffer);
	buffer = malloc(sizeof(*buffer));
	if (!buffer)
		return NULL;
	*buffer = (struct fay_text_buffer){ mmap(NULL, size, PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
					    size };
	if (buffer->bytes != MAP_FAILED)
		return buffer;
	free(buffer);
	return NULL;
}

static void buffer_give(struct fay_text_buffer *buffer)
{
	bool kept = buffer && buffer->size <= SPARE_MAX;

	buffer_free(kept ? __atomic_exchange_n(&spare, buffer, __ATOMIC_ACQ_REL) : buffer);
}

int fay_text_ready(struct fay_text *text, struct fay_error *error)
{
	size_t kept = 0;

	if (!text->count)
		return 0;
	qsort(text->pages, text->count, sizeof(*text->pages), by_address);
	for (size_t i = 0; i < text->count; i++)
		if (!kept || text->pages[kept - 1].address != text->pages[i].address)
			text->pages[kept++] = text->pages[i];
	text->count = kept;
	text->buffer = buffer_take(kept * PAGE);
	if (!text->buffer)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory for %zu pages of code",
				     kept);
	text->bytes = text->buffer->bytes;
	return 0;
}

/* How many pages from `first` on lie side by side, changed ones only if that is asked. */
static size_t run_length(const struct fay_text *text, size_t first, bool changed)
{
	size_t length = 1;

	while (first + length < text->count &&
	       text->pages[first + length].address == text->pages[first].address + length * PAGE &&
	       (!changed || text->pages[first + length].changed))
		length++;
	return length;
}

/*
 * Bytes of the process: by process_vm_readv(2), which looks many pages up at a time and copies them
 * once, or, where that may not read them, as it may not what is not readable there, by
 * /proc/PID/mem.
 */
static ssize_t read_there(const struct fay_text *text, int memory, void *to, size_t size,
			  uint64_t address)
{
	struct iovec here = { to, size }, there = { (void *)address, size };

	if (text->thread && process_vm_readv(text->thread, &here, 1, &there, 1, 0) == (ssize_t)size)
		return (ssize_t)size;
	return pread(memory, to, size, (off_t)address);
}

/* All pages, many runs at a time. False: some cannot be read so. */
static bool read_all(const struct fay_text *text)
{
	struct iovec there[RUNS_AT_ONCE];
	size_t first = 0, next = 0, runs = 0;

	while (next < text->count) {
		size_t length = run_length(text, next, false);

		there[runs++] = (struct iovec){ (void *)text->pages[next].address, length * PAGE };
		next += length;
		if (runs < RUNS_AT_ONCE && next < text->count)
			continue;
		struct iovec here = { text->bytes + first * PAGE, (next - first) * PAGE };

		if (process_vm_readv(text->thread, &here, 1, there, runs, 0) !=
		    (ssize_t)here.iov_len)
			return false;
		first = next;
		runs = 0;
	}
	return true;
}

void fay_text_read(struct fay_text *text, int memory, pid_t thread)
{
	bool all;

	text->thread = thread;
	text->edit_count = 0;
	all = thread && read_all(text);
	for (size_t i = 0; i < text->count; i++) {
		text->pages[i].readable = all;
		text->pages[i].changed = false;
	}
	for (size_t i = 0, length; i < text->count && !all; i += length) {
		uint8_t *to = text->bytes + i * PAGE;

		length = run_length(text, i, false);
		ssize_t got = read_there(text, memory, to, length * PAGE, text->pages[i].address);

		for (size_t k = 0; k < length; k++) {
			/* behind a page that is not there, the others one by one */
			bool whole = got >= (ssize_t)((k + 1) * PAGE) ||
				     pread(memory, to + k * PAGE, PAGE,
					   (off_t)text->pages[i + k].address) == PAGE;

			text->pages[i + k].readable = whole;
		}
	}
}

/* The pages' index; text->count if any byte is missing. */
static size_t find(const struct fay_text *text, uint64_t address, size_t size)
{
	uint64_t page = address & ~(uint64_t)(PAGE - 1);
	bool near = text->near < text->count && text->pages[text->near].address == page;
	size_t low = near ? text->near : FAY_COUNT_BELOW(text->pages, text->count, address, page),
	       last;

	last = low + (size_t)((address - page + size - 1) / PAGE);
	if (!size || !text->bytes || last >= text->count)
		return text->count;
	for (size_t i = low; i <= last; i++)
		if (text->pages[i].address != page + (i - low) * PAGE || !text->pages[i].readable)
			return text->count;
	return low;
}

const uint8_t *fay_text_at(const struct fay_text *text, uint64_t address, size_t size)
{
	size_t at = find(text, address, size);

	return at == text->count ? NULL : text->bytes + at * PAGE + address % PAGE;
}

static bool add_edit(struct fay_text *text, uint64_t address, const void *was, const void *bytes,
		     size_t size)
{
	struct fay_text_edit *edit;

	if (size > FAY_TEXT_CHANGE_MAX)
		return false;
	if (text->edit_count == text->edit_capacity) {
		size_t more = text->edit_capacity ? 2 * text->edit_capacity : 64;
		struct fay_text_edit *grown = realloc(text->edits, more * sizeof(*grown));

		if (!grown)
			return false;
		text->edits = grown;
		text->edit_capacity = more;
	}
	edit = &text->edits[text->edit_count];
	*edit = (struct fay_text_edit){ .address = address,
					.order = text->edit_count++,
					.size = (uint8_t)size };
	memcpy(edit->was, was, size);
	memcpy(edit->bytes, bytes, size);
	return true;
}

bool fay_text_change(struct fay_text *text, uint64_t address, const void *bytes, size_t size)
{
	size_t at = find(text, address, size);

	if (at == text->count ||
	    !add_edit(text, address, text->bytes + at * PAGE + address % PAGE, bytes, size))
		return false;
	memcpy(text->bytes + at * PAGE + address % PAGE, bytes, size);
	for (size_t i = at; i <= at + (address % PAGE + size - 1) / PAGE; i++)
		text->pages[i].changed = true;
	return true;
}

static int by_place(const void *a, const void *b)
{
	const struct fay_text_edit *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int transfer(const struct fay_text *text, int memory, size_t first, size_t length,
		    bool write)
{
	size_t done = 0, size = length * PAGE;

	while (done < size) {
		uint8_t *at = text->bytes + first * PAGE + done;
		off_t there = (off_t)(text->pages[first].address + done);
		ssize_t got = write ? pwrite(memory, at, size - done, there)
				    : read_there(text, memory, at, size - done, (uint64_t)there);

		if (got <= 0) {
			errno = got < 0 ? errno : EFAULT;
			return -1;
		}
		done += (size_t)got;
	}
	return 0;
}

/* One run: as it is now, with our changes. */
static int write_run(struct fay_text *text, int memory, size_t first, size_t length)
{
	uint64_t start = text->pages[first].address;
	size_t at = FAY_COUNT_BELOW(text->edits, text->edit_count, address, start);

	if (transfer(text, memory, first, length, false))
		return -1;
	for (; at < text->edit_count && text->edits[at].address < start + length * PAGE; at++) {
		const struct fay_text_edit *edit = &text->edits[at];
		uint8_t *bytes = text->bytes + first * PAGE + (edit->address - start);

		if (memcmp(bytes, edit->was, edit->size)) {
			errno = EBUSY;
			return -1;
		}
		memcpy(bytes, edit->bytes, edit->size);
	}
	return transfer(text, memory, first, length, true);
}

int fay_text_write(struct fay_text *text, int memory)
{
	for (size_t i = 1; i < text->edit_count; i++)
		if (by_place(&text->edits[i - 1], &text->edits[i]) > 0) {
			qsort(text->edits, text->edit_count, sizeof(*text->edits), by_place);
			break;
		}
	for (size_t i = 0, length; i < text->count; i += length) {
		length = 1;
		if (!text->pages[i].changed)
			continue;
		length = run_length(text, i, true);
		if (write_run(text, memory, i, length))
			return -1;
		for (size_t k = i; k < i + length; k++)
			text->pages[k].changed = false;
	}
	return 0;
}

bool fay_text_swap(struct fay_text *text, uint64_t address, const void *was, size_t was_size,
		   const void *bytes, size_t size)
{
	size_t at = find(text, address, was_size);
	uint8_t *place;

	if (at == text->count || size > was_size)
		return false;
	text->near = at;
	place = text->bytes + at * PAGE + address % PAGE;
	if (memcmp(place, was, was_size))
		return false;
	if (size)
		memcpy(place, bytes, size);
	for (size_t i = at; size && i <= at + (address % PAGE + size - 1) / PAGE; i++)
		text->pages[i].changed = true;
	return true;
}

static int replace_run(struct fay_text *text, int memory, size_t first, size_t length,
		       fay_text_changer *change, void *context)
{
	uint64_t start = text->pages[first].address;
	size_t end = first + length;

	bool read = transfer(text, memory, first, length, false) == 0;

	for (size_t i = first; i < end; i++) {
		text->pages[i].readable = read;
		text->pages[i].changed = false;
	}
	if (!read || !change(context, start, start + length * PAGE)) {
		errno = EBUSY;
		return -1;
	}
	for (size_t i = first; i < end; i += length) {
		length = text->pages[i].changed ? run_length(text, i, true) : 1;
		if (text->pages[i].changed && transfer(text, memory, i, length, true))
			return -1;
	}
	return 0;
}

int fay_text_replace(struct fay_text *text, int memory, pid_t thread, fay_text_changer *change,
		     void *context)
{
	text->thread = thread;
	for (size_t i = 0, length; i < text->count; i += length) {
		length = run_length(text, i, false);
		if (replace_run(text, memory, i, length, change, context))
			return -1;
	}
	return 0;
}

void fay_text_deinit(struct fay_text *text)
{
	buffer_give(text->buffer);
	free(text->pages);
	free(text->edits);
	memset(text, 0, sizeof(*text));
}
