/* SPDX-License-Identifier: MIT */
/*
 * The image parser on the worked example: what it reads of it, every truncation, every byte
 * changed, and named contradictions.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "verifier/image/image.h"

static uint8_t *file;
static size_t file_size;

static struct fay_arena *new_arena(void)
{
	struct fay_arena *arena = fay_arena_create((size_t)16 << 20);
	assert_non_null(arena);
	return arena;
}

static void test_valid(void **state)
{
	struct fay_arena *arena = new_arena();
	struct fay_image image;
	struct fay_refusal refusal = fay_image_parse(arena, file, file_size, &image);

	if (refusal.rule != FAY_RULE_NONE)
		fail_msg("%s: %s", fay_rule_id(refusal.rule), refusal.what);
	assert_int_equal(image.probe_count, 1);
	assert_string_equal(image.probes[0].pattern, "libc!read");
	assert_int_equal(image.probes[0].kind, FAY_PROBE_ENTRY);
	assert_int_equal(image.layout_base + image.probes[0].code_offset, image.text.start);
	assert_int_equal(image.layout.bytes[image.layout.code_offset], 0x48);
	assert_int_equal(image.schema.state_count, 2);
	assert_string_equal(image.schema.states[0].name, "requests");
	assert_int_equal(image.schema.states[1].kind, FAY_STATE_STREAM);
	assert_int_equal(image.schema.column_count, 3);
	assert_string_equal(image.schema.columns[1].name, "bytes");
	assert_int_equal(image.layout.slot_count, 1);
	assert_int_equal(image.layout.slots[0].helper, FAY_HELPER_EMIT);
	assert_int_equal(fay_image_slot(&image, image.layout_base + image.layout.slots[0].offset),
			 FAY_HELPER_EMIT);
	assert_int_equal(
		fay_image_slot(&image, image.layout_base + image.layout.slots[0].offset + 1), -1);
	for (uint64_t i = 0; i < image.got.size; i++)
		assert_int_equal(image.layout.bytes[image.got.start - image.layout_base + i], 0);
	assert_int_equal(image.symbol_count, 1);
	assert_string_equal(image.symbols[0].name, "probe_read");
	fay_arena_destroy(arena);
}

static enum fay_rule parse_rule(const void *bytes, size_t size)
{
	struct fay_arena *arena = new_arena();
	struct fay_image image;
	struct fay_refusal refusal = fay_image_parse(arena, bytes, size, &image);

	/* Whoever is let through has all that later stages rely on; whoever is refused is told why.
	 * */
	if (refusal.rule != FAY_RULE_NONE) {
		assert_non_null(refusal.what);
		assert_true(refusal.outcome != FAY_ACCEPTED);
	} else {
		assert_true(image.text.size > 0 && image.text.start >= image.layout_base);
		assert_true(image.text.start + image.text.size <=
			    image.layout_base + image.layout.size);
		for (uint32_t i = 0; i < image.probe_count; i++)
			assert_true(image.probes[i].code_offset - image.layout.code_offset <
				    image.layout.code_size);
	}
	fay_arena_destroy(arena);
	return refusal.rule;
}

static void test_truncated(void **state)
{
	/* In an allocation of its exact size, so that a sanitizer sees a read past the end. */
	for (size_t size = 0; size < file_size; size++) {
		uint8_t *copy = malloc(size ? size : 1);

		memcpy(copy, file, size);
		if (parse_rule(copy, size) == FAY_RULE_NONE)
			fail_msg("%zu of %zu bytes accepted", size, file_size);
		free(copy);
	}
}

static void test_flipped(void **state)
{
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };
	uint8_t *copy = malloc(file_size);
	unsigned accepted = 0;

	memcpy(copy, file, file_size);
	for (size_t at = 0; at < file_size; at++) {
		for (unsigned i = 0; i < sizeof(masks); i++) {
			copy[at] ^= masks[i];
			accepted += parse_rule(copy, file_size) == FAY_RULE_NONE;
			copy[at] ^= masks[i];
		}
	}
	free(copy);
	print_message("%u of %zu changed files still parse (gaps, code, names)\n", accepted,
		      3 * file_size);
}

static Elf64_Shdr *section_header(uint8_t *bytes, const char *name)
{
	Elf64_Ehdr *header = (void *)bytes;
	Elf64_Shdr *sections = (void *)(bytes + header->e_shoff);

	for (unsigned i = 0; i < header->e_shnum; i++) {
		if (strcmp((char *)bytes + sections[header->e_shstrndx].sh_offset +
				   sections[i].sh_name,
			   name) == 0)
			return &sections[i];
	}
	fail_msg("no section %s", name);
	return NULL;
}

static Elf64_Phdr *segment(uint8_t *bytes, uint32_t type, unsigned skip)
{
	Elf64_Ehdr *header = (void *)bytes;
	Elf64_Phdr *segments = (void *)(bytes + header->e_phoff);

	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == type && skip-- == 0)
			return &segments[i];
	}
	fail_msg("no segment of type %u", type);
	return NULL;
}

#define EHDR ((Elf64_Ehdr *)b)
#define SECTION(name) section_header(b, name)
#define LOAD(n) segment(b, PT_LOAD, n)
#define AT(name, type, offset) (*(type *)(b + SECTION(name)->sh_offset + (offset)))
#define RELA ((Elf64_Rela *)(b + SECTION(".rela.dyn")->sh_offset))

/* The value of the entry of .dynamic with this tag. */
static uint64_t *dynamic(uint8_t *b, int64_t tag)
{
	Elf64_Dyn *entry = (Elf64_Dyn *)(b + SECTION(".dynamic")->sh_offset);

	while (entry->d_tag != tag)
		assert_true((entry++)->d_tag != DT_NULL);
	return &entry->d_un.d_val;
}

/* The same relocation twice, with everything else in order: the section, .dynamic and the segment
 * grow by one entry. */
static int double_relocation(uint8_t *b)
{
	RELA[1] = RELA[0];
	SECTION(".rela.dyn")->sh_size += sizeof(Elf64_Rela);
	LOAD(0)->p_filesz += sizeof(Elf64_Rela);
	LOAD(0)->p_memsz += sizeof(Elf64_Rela);
	*dynamic(b, DT_RELASZ) += sizeof(Elf64_Rela);
	return 0;
}

/*
 * A second segment in the tail of the code's last page, from another page of the file: a loader
 * that maps whole pages puts that page over the code. It takes the place of PT_GNU_STACK in the
 * header table, behind the code's segment, so that the order stays ascending.
 */
static int foreign_page(uint8_t *b)
{
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)b;
	Elf64_Phdr *table = (Elf64_Phdr *)(b + ehdr->e_phoff);
	unsigned code = 0, spare = 0;

	while (!(table[code].p_flags & PF_X) || table[code].p_type != PT_LOAD)
		code++;
	while (table[spare].p_type != PT_GNU_STACK)
		spare++;
	memmove(table + code + 2, table + code + 1, (spare - code - 1) * sizeof(*table));
	uint64_t end = (table[code].p_vaddr + table[code].p_memsz + 15) & ~(uint64_t)15;
	table[code + 1] = (Elf64_Phdr){ .p_type = PT_LOAD,
					.p_flags = PF_R | PF_X,
					.p_offset = end & 0xfff,
					.p_vaddr = end,
					.p_paddr = end,
					.p_filesz = 16,
					.p_memsz = 16,
					.p_align = 4096 };
	return 0;
}

/* The stream becomes a cell in the middle of the other cell. */
static int overlapping_cell(uint8_t *b)
{
	AT(".fay.state", uint16_t, 48 + 4) = FAY_STATE_CELL;
	AT(".fay.state", uint32_t, 48 + 8) = 8;  /* offset */
	AT(".fay.state", uint32_t, 48 + 12) = 8; /* size */
	AT(".fay.state", uint32_t, 48 + 16) = 0; /* first column */
	AT(".fay.state", uint16_t, 48 + 20) = 0; /* keys */
	AT(".fay.state", uint16_t, 48 + 22) = 1; /* values */
	return 0;
}

/* .rodata under a name that means nothing. */
static int unknown_section(uint8_t *b, uint32_t type, uint64_t flags)
{
	SECTION(".rodata")->sh_type = type;
	SECTION(".rodata")->sh_flags |= flags;
	SECTION(".rodata")->sh_name = SECTION(".shstrtab")->sh_name;
	return 0;
}

/* A relocation and a half, with everything else in order. */
static int ragged_relocations(uint8_t *b)
{
	SECTION(".rela.dyn")->sh_size -= 8;
	*dynamic(b, DT_RELASZ) -= 8;
	return 0;
}

/* The cell's two columns become one histogram of buckets as wide as that. */
static int linear_histogram(uint8_t *b, int64_t width)
{
	AT(".fay.image", uint32_t, 16) = 24;
	AT(".fay.state", uint32_t, 12) = AT(".fay.state", uint32_t, 28) = 24;
	AT(".fay.state", uint16_t, 22) = 1;
	AT(".fay.columns", uint16_t, 6) = FAY_MERGE_HIST_LINEAR;
	AT(".fay.columns", uint32_t, 12) = 24;
	AT(".fay.columns", int64_t, 24) = width;
	return 0;
}

/* The name at `field` is the end of a string. */
static int name_nothing(uint8_t *b, const char *table, uint32_t field)
{
	Elf64_Shdr *strings = SECTION(".fay.strings"), *section = section_header(b, table);

	*(int32_t *)(b + section->sh_offset + field) =
		(int32_t)(strings->sh_addr + strlen((char *)b + strings->sh_offset) -
			  section->sh_addr - field);
	return 0;
}

static void contradict(uint8_t *b, unsigned which, enum fay_rule *rule, const char **text)
{
	unsigned number = 0;
#define C(expected, statement)                                                                     \
	if (number++ == which) {                                                                   \
		*rule = FAY_RULE_##expected;                                                       \
		*text = #statement;                                                                \
		(void)(statement);                                                                 \
		return;                                                                            \
	}
#include "contradictions.def"
#undef C
	*rule = FAY_RULE_NONE;
}

static void test_contradictions(void **state)
{
	uint8_t *copy = malloc(file_size);
	unsigned which = 0, wrong = 0;

	for (;; which++) {
		enum fay_rule expected, got;
		const char *text = NULL;

		memcpy(copy, file, file_size);
		contradict(copy, which, &expected, &text);
		if (expected == FAY_RULE_NONE)
			break;
		got = parse_rule(copy, file_size);
		if (got != expected) {
			print_error("%s: expected %s, got %s\n", text, fay_rule_id(expected),
				    fay_rule_id(got));
			wrong++;
		}
	}
	free(copy);
	print_message("%u contradictions\n", which);
	assert_int_equal(wrong, 0);
}

/*
 * `count` slots and their relocations, in a segment of their own behind the file, in place of
 * PT_GNU_STACK. `b` has room for it.
 */
static size_t with_slots(uint8_t *b, unsigned count)
{
	Elf64_Phdr *own = segment(b, PT_GNU_STACK, 0), *last = LOAD(3);
	uint64_t at = (file_size + 4095) & ~(uint64_t)4095,
		 address = ((last->p_vaddr + last->p_memsz + 4095) & ~(uint64_t)4095) + 4096;
	uint64_t slots = 8 * count, relocations = sizeof(Elf64_Rela) * count;
	Elf64_Rela *rela = (Elf64_Rela *)(b + at + slots);

	memset(b + file_size, 0, at - file_size + slots);
	for (unsigned i = 0; i < count; i++)
		rela[i] = (Elf64_Rela){ .r_offset = address + 8 * i, .r_info = RELA->r_info };
	*own = (Elf64_Phdr){ .p_type = PT_LOAD,
			     .p_flags = PF_R,
			     .p_offset = at,
			     .p_vaddr = address,
			     .p_filesz = slots + relocations,
			     .p_memsz = slots + relocations };
	SECTION(".got")->sh_addr = address;
	SECTION(".got")->sh_offset = at;
	SECTION(".got")->sh_size = slots;
	SECTION(".rela.dyn")->sh_addr = address + slots;
	SECTION(".rela.dyn")->sh_offset = at + slots;
	SECTION(".rela.dyn")->sh_size = relocations;
	*dynamic(b, DT_RELA) = address + slots;
	*dynamic(b, DT_RELASZ) = relocations;
	return at + slots + relocations;
}

static void test_slots(void **state)
{
	uint8_t *copy = malloc(file_size + 16384);

	for (unsigned count = FAY_IMAGE_MAX_HELPERS - 1; count <= FAY_IMAGE_MAX_HELPERS + 1;
	     count++) {
		memcpy(copy, file, file_size);
		assert_int_equal(parse_rule(copy, with_slots(copy, count)),
				 count > FAY_IMAGE_MAX_HELPERS ? FAY_RULE_IMG_LIMIT
							       : FAY_RULE_NONE);
	}
	free(copy);
}

/* A size is refused before anything is read: the file that is said to be so large need not be. */
static void test_size(void **state)
{
	assert_int_equal(parse_rule(file, (size_t)FAY_IMAGE_MAX_FILE + 1), FAY_RULE_IMG_LIMIT);
}

/* What linear_histogram() changes is in order but for the width. */
static void test_histogram(void **state)
{
	uint8_t *copy = malloc(file_size);

	memcpy(copy, file, file_size);
	linear_histogram(copy, 1);
	assert_int_equal(parse_rule(copy, file_size), FAY_RULE_NONE);
	free(copy);
}

static void hash_text(const char *text, char hex[65])
{
	uint8_t digest[32];

	fay_sha256(text, strlen(text), digest);
	for (unsigned i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* FIPS 180-4 examples, and the two sides of the padding's edge. */
static void test_sha256(void **state)
{
	char hex[65];

	hash_text("", hex);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_text("abc", hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_text("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", hex);
	assert_string_equal(hex,
			    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static int set_up(void **state)
{
	FILE *in = fopen(EXAMPLE_IMAGE, "rb");

	if (!in)
		return -1;
	file = malloc(1 << 20);
	file_size = fread(file, 1, 1 << 20, in);
	fclose(in);
	return 0;
}

static int tear_down(void **state)
{
	free(file);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid),   cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_flipped), cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_slots),   cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_sha256),  cmocka_unit_test(test_size),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
