/* SPDX-License-Identifier: MIT */
/* The tables by which probes walk stacks: the unwind rows of each file that a process has mapped,
 * read once a file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "process.h"
#include "unwind_private.h"

#define FILES_MAX 4096u

struct fay_stacks_file {
	uint64_t device, inode;
	struct fay_unwind_rows rows;
};

void fay_stacks_deinit(struct fay_stacks *stacks)
{
	for (size_t i = 0; i < stacks->count; i++)
		fay_unwind_rows_deinit(&stacks->files[i].rows);
	free(stacks->files);
	if (stacks->kernel)
		fay_unwind_rows_deinit(&stacks->kernel->rows);
	free(stacks->kernel);
	memset(stacks, 0, sizeof(*stacks));
}

/* The rows of the file, read once, none if they cannot be; NULL: no memory, or too many files. */
static const struct fay_unwind_rows *rows_of(struct fay_stacks *stacks,
					     const struct fay_code_range *range)
{
	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->files[i].device == range->device &&
		    stacks->files[i].inode == range->inode)
			return &stacks->files[i].rows;
	if (stacks->count == FILES_MAX)
		return NULL;
	struct fay_stacks_file *grown =
		realloc(stacks->files, (stacks->count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	stacks->files = grown;
	struct fay_stacks_file *file = &grown[stacks->count];
	file->device = range->device;
	file->inode = range->inode;
	fay_unwind_read_file(range->fd, &file->rows);
	stacks->count++;
	return &file->rows;
}

/* Where the process has the kernel's object. false: nowhere. */
static bool find_kernel(pid_t pid, struct fay_code_range *range)
{
	char path[64], line[512];
	uint64_t start, end;
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file)) {
		found = strstr(line, " [vdso]\n") &&
			sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2;
		if (found)
			*range = (struct fay_code_range){ .start = start,
							  .end = end,
							  .bias = start };
	}
	if (file)
		fclose(file);
	return found;
}

/* It is the same in all 64-bit processes, so that this one's own can be read. */
static const struct fay_unwind_rows *rows_of_kernel(struct fay_stacks *stacks,
						    const struct fay_code_range *range)
{
	struct fay_code_range own;
	if (!stacks->kernel)
		stacks->kernel = calloc(1, sizeof(*stacks->kernel));
	if (!stacks->kernel || !find_kernel(getpid(), &own) ||
	    own.end - own.start != range->end - range->start)
		return NULL;
	if (!stacks->kernel->rows.count)
		fay_unwind_read_memory((void *)own.start, own.end - own.start,
				       &stacks->kernel->rows);
	return &stacks->kernel->rows;
}

/* Which of the rows are about the mapping: the first may begin before it. */
static size_t first_row(const struct fay_unwind_rows *rows, uint64_t address)
{
	size_t low = 0, left = rows->count;
	while (left > 1) {
		size_t half = left / 2;
		bool above = rows->items[low + half].address <= address;
		low = above ? low + half : low;
		left = above ? left - half : half;
	}
	return low;
}

/* Appends the rows of one mapping to the tables, none if there is no room for all: false. */
static bool add_rows(const struct fay_unwind_rows *rows, struct fay_stack_tables *tables,
		     const struct fay_code_range *range, struct fay_stack_module *module)
{
	uint64_t from = range->start - range->bias, to = range->end - range->bias;
	if (!rows || !rows->count || to - from > UINT32_MAX)
		return true;
	module->first = (uint32_t)tables->row_count;
	for (size_t i = first_row(rows, from); i < rows->count && rows->items[i].address < to;
	     i++) {
		const struct fay_unwind_row *row = &rows->items[i];
		if (tables->row_count + module->count == FAY_STACK_ROWS) {
			module->count = 0;
			return false;
		}
		tables->rows[tables->row_count + module->count++] = (struct fay_stack_row){
			row->address < from ? 0 : (uint32_t)(row->address - from), row->rule
		};
	}
	tables->row_count += module->count;
	return true;
}

/* The mapping as the current list has it; NULL: it is new. */
static const struct fay_stack_module *known(const struct fay_stack_modules *list,
					    const struct fay_stack_module *module)
{
	for (uint64_t i = 0; i < list->count; i++)
		if (list->items[i].start == module->start && list->items[i].size == module->size)
			return &list->items[i];
	return NULL;
}

/* The rows that were appended for the mapping are taken back if those of before say the same:
 * another file may lie at the same place now. */
static void reuse_rows(struct fay_stack_tables *tables, const struct fay_stack_modules *before,
		       struct fay_stack_module *module)
{
	const struct fay_stack_module *same = known(before, module);
	if (!same ||
	    (module->count && (module->count != same->count ||
			       memcmp(&tables->rows[module->first], &tables->rows[same->first],
				      same->count * sizeof(tables->rows[0])))))
		return;
	tables->row_count -= module->count;
	*module = *same;
}

/* To the list that is being made, if there is anything to say of it. */
static void add_module(struct fay_stacks *stacks, const struct fay_unwind_rows *rows,
		       struct fay_stack_tables *tables, const struct fay_code_range *range)
{
	uint64_t current = tables->current & 1;
	struct fay_stack_modules *list = &tables->lists[!current];
	struct fay_stack_module module = { .start = range->start,
					   .size = range->end - range->start };
	bool room = add_rows(rows, tables, range, &module);
	reuse_rows(tables, &tables->lists[current], &module);
	if (module.count && list->count < FAY_STACK_MODULES)
		list->items[list->count++] = module;
	else if (module.count || !room)
		stacks->left_out++;
}

static int compare_modules(const void *left, const void *right)
{
	const struct fay_stack_module *a = left, *b = right;
	return a->start < b->start ? -1 : a->start > b->start;
}

void fay_stacks_fill(struct fay_stacks *stacks, struct fay_target *target,
		     struct fay_stack_tables *tables)
{
	struct fay_stack_modules *list = &tables->lists[!(tables->current & 1)];
	struct fay_code_range range;
	bool more = true;
	list->count = 0;
	if (find_kernel(fay_target_pid(target), &range))
		add_module(stacks, rows_of_kernel(stacks, &range), tables, &range);
	for (size_t i = 0; more; i++)
		if (fay_target_code(target, i, &range, &more))
			add_module(stacks, rows_of(stacks, &range), tables, &range);
	qsort(list->items, list->count, sizeof(list->items[0]), compare_modules);
	tables->current++;
}

/* How many of the tables' bytes are used. */
static size_t used_size(const struct fay_stack_tables *tables)
{
	return offsetof(struct fay_stack_tables, rows) +
	       tables->row_count * sizeof(tables->rows[0]);
}

int fay_stacks_make(struct fay_stacks *stacks, struct fay_target *target,
		    struct fay_attach_options *options, struct fay_stack_tables **tables,
		    struct fay_error *error)
{
	*tables = calloc(1, sizeof(**tables));
	if (!*tables)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	fay_stacks_fill(stacks, target, *tables);
	options->global = *tables;
	options->global_size = used_size(*tables);
	return FAY_OK;
}

/* They are written and never read: the program can write there, too. */
static void publish(const struct fay_stack_tables *tables, uint64_t rows,
		    struct fay_session *session)
{
	size_t size;
	struct fay_stack_tables *there = fay_session_global(session, &size);
	if (!there || size < sizeof(*there))
		return;
	memcpy(&there->rows[rows], &tables->rows[rows],
	       (tables->row_count - rows) * sizeof(tables->rows[0]));
	there->lists[tables->current & 1] = tables->lists[tables->current & 1];
	__atomic_store_n(&there->current, tables->current, __ATOMIC_RELEASE);
}

void fay_stacks_renew(struct fay_stacks *stacks, struct fay_target *target,
		      struct fay_stack_tables *tables, struct fay_session *session)
{
	uint64_t rows = tables->row_count;
	fay_stacks_fill(stacks, target, tables);
	publish(tables, rows, session);
}
