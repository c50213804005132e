/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences (loader/stop/rseq.c): their instructions may not run from a copy elsewhere.
 * Programs list their sections, for debuggers, in an ELF section __rseq_cs of descriptors, or in
 * __rseq_cs_ptr_array, of their addresses. Those of a program that does not are not known.
 */
#include "plan_private.h"

#include <elf.h>
#include <linux/rseq.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/bisect.h"
#include "loader/names/target.h"

static int append(struct fay_rseqs *rseqs, uint64_t start, uint64_t end)
{
	if ((rseqs->count & (rseqs->count - 1)) == 0) { /* a power of two: full */
		size_t room = rseqs->count ? 2 * rseqs->count : 1;
		struct fay_rseq *grown = room > 2 * FAY_RSEQ_MAX
						 ? NULL
						 : realloc(rseqs->items, room * sizeof(*grown));

		if (!grown)
			return -1;
		rseqs->items = grown;
	}
	rseqs->items[rseqs->count++] = (struct fay_rseq){ .start = start, .end = end };
	return 0;
}

static int add(struct fay_rseqs *rseqs, const struct rseq_cs *section)
{
	if (!fay_rseq_is_valid(section))
		return 0;
	return append(rseqs, section->start_ip, section->start_ip + section->post_commit_offset) ||
	       append(rseqs, section->abort_ip, section->abort_ip);
}

/* `size` bytes of descriptors, or of their addresses, at an address in the process: relocated, as
 * the file does not have them. */
static int read_list(int memory, uint64_t address, uint64_t size, bool addresses,
		     struct fay_rseqs *rseqs)
{
	uint64_t each = addresses ? sizeof(uint64_t) : sizeof(struct rseq_cs);

	if (size / each > FAY_RSEQ_MAX)
		return -1;
	for (uint64_t i = 0; i < size / each; i++) {
		uint64_t at = address + i * each;
		struct rseq_cs section;

		if (addresses && pread(memory, &at, sizeof(at), (off_t)at) != (ssize_t)sizeof(at))
			break; /* not mapped: the file says what is not so */
		if (pread(memory, &section, sizeof(section), (off_t)at) ==
			    (ssize_t)sizeof(section) &&
		    add(rseqs, &section))
			return -1;
	}
	return 0;
}

/* One of the module's executable mappings: its bias, unless one before it had the same. */
static bool is_new_bias(const struct fay_module *module, size_t index)
{
	if (!module->ranges[index].placed)
		return false;
	for (size_t i = 0; i < index; i++)
		if (module->ranges[i].placed &&
		    module->ranges[i].bias == module->ranges[index].bias)
			return false;
	return true;
}

static int read_module(const struct fay_module *module, int memory, struct fay_rseqs *rseqs)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(module->object->elf, &names))
		return 0;
	while ((section = elf_nextscn(module->object->elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header && header->sh_flags & SHF_ALLOC
					   ? elf_strptr(module->object->elf, names, header->sh_name)
					   : NULL;
		bool addresses = name && !strcmp(name, "__rseq_cs_ptr_array");

		if (!name || (!addresses && strcmp(name, "__rseq_cs") != 0))
			continue;
		for (size_t i = 0; i < module->range_count; i++)
			if (is_new_bias(module, i) &&
			    read_list(memory, header->sh_addr + module->ranges[i].bias,
				      header->sh_size, addresses, rseqs))
				return -1;
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct fay_rseq *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int fay_rseqs_read(const struct fay_target *target, int memory, struct fay_rseqs *rseqs,
		   struct fay_error *error)
{
	memset(rseqs, 0, sizeof(*rseqs));
	for (size_t i = 0; i < target->module_count; i++)
		if (target->modules[i].object && read_module(&target->modules[i], memory, rseqs)) {
			fay_rseqs_deinit(rseqs);
			return fay_error_set(
				error, FAY_E_LIMIT,
				"%s: more than %u restartable sequences (rseq), or out of memory",
				target->modules[i].name, FAY_RSEQ_MAX / 2);
		}
	if (rseqs->count)
		qsort(rseqs->items, rseqs->count, sizeof(*rseqs->items), by_start);
	for (size_t i = 0; i < rseqs->count; i++) {
		uint64_t before = i ? rseqs->items[i - 1].reach : 0;

		rseqs->items[i].reach = rseqs->items[i].end > before ? rseqs->items[i].end : before;
	}
	return 0;
}

bool fay_rseqs_touch(const struct fay_rseqs *rseqs, uint64_t address, uint64_t length)
{
	size_t until = FAY_COUNT_UNTIL(rseqs->items, rseqs->count, start, address + length);

	return until && rseqs->items[until - 1].reach > address;
}

void fay_rseqs_deinit(struct fay_rseqs *rseqs)
{
	free(rseqs->items);
	memset(rseqs, 0, sizeof(*rseqs));
}
