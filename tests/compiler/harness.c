/* SPDX-License-Identifier: MIT */
/* See harness.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fay/verify.h"
#include "harness.h"

#define PAGE 4096u

struct helper_log helper_log;
static struct loaded *current;

static uint64_t test_flush(void *local, uint64_t state)
{
	const struct fay_image_state *s = &current->states[state];
	struct fay_table_header *header = (void *)((uint8_t *)local + s->offset);
	uint8_t *rows = (uint8_t *)(header + 1);

	assert_ptr_equal(local, current->local);
	assert_int_equal(s->kind, FAY_STATE_TABLE);
	helper_log.flushes++;
	if (helper_log.flush_result)
		return 1;
	for (uint32_t r = 0; r < s->rows; r++) {
		const struct fay_image_column *value = &current->columns[s->first_column + s->keys];
		uint8_t *row = rows + (size_t)r * s->row_size;

		if (!*(uint64_t *)row || helper_log.flushed_rows == HARNESS_ROWS)
			continue;
		memcpy(&helper_log.rows[helper_log.flushed_rows].key, row + 8, 8);
		memcpy(&helper_log.rows[helper_log.flushed_rows++].value, row + value->offset, 8);
	}
	memset(header, 0, s->size);
	return 0;
}

static uint64_t test_emit(void *local, uint64_t state, const void *row)
{
	assert_ptr_equal(local, current->local);
	assert_int_equal(current->states[state].kind, FAY_STATE_STREAM);
	helper_log.emits++;
	helper_log.emitted_state = state;
	memcpy(helper_log.emitted, row, current->states[state].row_size);
	return 0;
}

int64_t harness_try_read(void *to, uint64_t size, uint64_t address)
{
	const struct helper_log *log = &helper_log;
	uint64_t start = (uintptr_t)log->readable;
	bool can = address >= PAGE;

	if (log->readable)
		can = address >= start && size <= log->readable_size &&
		      address - start <= log->readable_size - size;
	assert_true(size <= FAY_TRY_READ_MAX);
	helper_log.reads++;
	if (!can) {
		memset(to, 0, size);
		return -1;
	}
	memcpy(to, (const void *)address, size);
	return 0;
}

void *harness_guarded(size_t size)
{
	size_t room = (size + PAGE - 1) / PAGE * PAGE;
	uint8_t *p = mmap(NULL, room + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + PAGE, room, PROT_READ | PROT_WRITE), 0);
	return p + PAGE + room - size;
}

void harness_guarded_free(void *p, size_t size)
{
	size_t room = (size + PAGE - 1) / PAGE * PAGE;

	munmap((uint8_t *)p + size - room - PAGE, room + 2 * PAGE);
}

static void fill_slot(struct loaded *l, const Elf64_Rela *r, const Elf64_Sym *symbols,
		      const char *names)
{
	const char *name = names + symbols[ELF64_R_SYM(r->r_info)].st_name;
	void *helper = NULL;

	assert_int_equal(ELF64_R_TYPE(r->r_info), R_X86_64_GLOB_DAT);
	assert_int_equal(r->r_addend, 0);
	if (!strcmp(name, "fay_flush"))
		helper = (void *)test_flush;
	else if (!strcmp(name, "fay_emit"))
		helper = (void *)test_emit;
	else if (!strcmp(name, "fay_try_read"))
		helper = (void *)harness_try_read;
	assert_non_null(helper);
	memcpy(l->base + r->r_offset, &helper, sizeof(helper));
	l->slots++;
}

/* Only what the dynamic linker of a program would write may be writable. */
static void check_section(const Elf64_Ehdr *e, const Elf64_Shdr *s, const char *name)
{
	const Elf64_Phdr *p = (const void *)((const uint8_t *)e + e->e_phoff);
	unsigned in = 0;

	bool linked = !strcmp(name, ".got") || !strcmp(name, ".dynamic");

	assert_true(linked || !(s->sh_flags & SHF_WRITE));
	if (!s->sh_size)
		return;
	for (unsigned i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type != PT_LOAD || s->sh_addr < p[i].p_vaddr ||
		    s->sh_addr + s->sh_size > p[i].p_vaddr + p[i].p_memsz)
			continue;
		in++;
		assert_int_equal(s->sh_offset - p[i].p_offset, s->sh_addr - p[i].p_vaddr);
		assert_int_equal(!!(s->sh_flags & SHF_EXECINSTR), !!(p[i].p_flags & PF_X));
		assert_true(linked || !(p[i].p_flags & PF_W));
	}
	assert_int_equal(in, 1);
}

static void take_section(struct loaded *l, const char *name, const Elf64_Shdr *s)
{
	const void *at = l->base + s->sh_addr;

	if (!strcmp(name, ".fay.image"))
		l->header = at;
	else if (!strcmp(name, ".fay.probes"))
		l->probes = at;
	else if (!strcmp(name, ".fay.state"))
		l->states = at;
	else if (!strcmp(name, ".fay.columns"))
		l->columns = at;
	else if (!strcmp(name, ".text"))
		l->text_size = s->sh_size;
	else if (!strcmp(name, ".rodata"))
		l->rodata_size = s->sh_size;
	else if (!strcmp(name, ".fay.lines")) {
		l->lines = at;
		l->line_count = s->sh_size / sizeof(*l->lines);
	}
}

void image_load(const struct fay_buffer *image, struct loaded *l)
{
	const uint8_t *bytes = image->data;
	const Elf64_Ehdr *e = image->data;
	const Elf64_Phdr *p = (const void *)(bytes + e->e_phoff);
	const Elf64_Shdr *s = (const void *)(bytes + e->e_shoff);
	const char *names = (const char *)bytes + s[e->e_shstrndx].sh_offset;

	memset(&helper_log, 0, sizeof(helper_log));
	memset(l, 0, sizeof(*l));
	current = l;
	assert_memory_equal(e->e_ident, ELFMAG, SELFMAG);
	assert_int_equal(e->e_type, ET_DYN);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && p[i].p_vaddr + p[i].p_memsz > l->span)
			l->span = p[i].p_vaddr + p[i].p_memsz;
	l->span = (l->span + PAGE - 1) / PAGE * PAGE;
	l->base = mmap(NULL, l->span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(l->base, MAP_FAILED);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD)
			memcpy(l->base + p[i].p_vaddr, bytes + p[i].p_offset, p[i].p_filesz);
	for (unsigned i = 1; i < e->e_shnum; i++) {
		if (s[i].sh_flags & SHF_ALLOC) {
			check_section(e, &s[i], names + s[i].sh_name);
			take_section(l, names + s[i].sh_name, &s[i]);
		}
		if (s[i].sh_type != SHT_RELA)
			continue;
		for (size_t r = 0; r < s[i].sh_size / sizeof(Elf64_Rela); r++)
			fill_slot(l, (const Elf64_Rela *)(bytes + s[i].sh_offset) + r,
				  (const Elf64_Sym *)(bytes + s[s[i].sh_link].sh_offset),
				  (const char *)bytes + s[s[s[i].sh_link].sh_link].sh_offset);
	}
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && (p[i].p_flags & PF_X))
			assert_int_equal(mprotect(l->base + p[i].p_vaddr, p[i].p_memsz,
						  PROT_READ | PROT_EXEC),
					 0);
	assert_non_null(l->header);
	assert_memory_equal(l->header->magic, FAY_IMAGE_MAGIC, 8);
	l->event = harness_guarded(sizeof(*l->event));
	l->local = harness_guarded(l->header->local_size ? l->header->local_size : 8);
	l->global = harness_guarded(l->header->global_size ? l->header->global_size : 8);
}

void image_unload(struct loaded *l)
{
	harness_guarded_free(l->event, sizeof(*l->event));
	harness_guarded_free(l->local, l->header->local_size ? l->header->local_size : 8);
	harness_guarded_free(l->global, l->header->global_size ? l->header->global_size : 8);
	munmap(l->base, l->span);
}

void image_call(struct loaded *l, unsigned probe)
{
	const struct fay_image_probe *p = &l->probes[probe];
	void (*code)(const void *, void *, void *);

	assert_true(probe < l->header->probe_count);
	code = (void (*)(const void *, void *, void *))((uintptr_t)&p->code +
							(uintptr_t)(intptr_t)p->code);
	code(l->event, l->local, l->global);
}

const char *image_string(const fay_rel32 *field)
{
	return (const char *)field + *field;
}

const struct fay_image_state *image_state_info(struct loaded *l, const char *name)
{
	for (uint32_t i = 0; i < l->header->state_count; i++)
		if (!strcmp(image_string(&l->states[i].name), name))
			return &l->states[i];
	fail_msg("no state %s", name);
	return NULL;
}

void *image_state(struct loaded *l, const char *name)
{
	const struct fay_image_state *s = image_state_info(l, name);

	return (s->scope == FAY_SCOPE_LOCAL ? l->local : l->global) + s->offset;
}

void image_verify(const char *name, const struct fay_buffer *image)
{
	struct fay_verdict verdict;

	fay_verify(image->data, image->size, NULL, &verdict);
	if (verdict.outcome != FAY_ACCEPTED)
		fay_verdict_print(stderr, name, &verdict);
	assert_int_equal(verdict.outcome, FAY_ACCEPTED);
	fay_verdict_deinit(&verdict);
}
