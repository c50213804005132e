/* SPDX-License-Identifier: MIT */
/* USDT notes without a process: operand strings, well-formed and hostile, and files whose notes
 * lie. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "fay/loader.h"
#include "loader/flow/flow.h"
#include "loader/names/operands_private.h"
#include "loader/suggest/suggest.h"

#define NONE FAY_OPERAND_NO_REGISTER

static struct fay_parsed_operand one(const char *text)
{
	struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS];

	assert_int_equal(fay_operands_parse(text, strlen(text), parsed), 1);
	return parsed[0];
}

static void expect(const char *text, unsigned form, unsigned size, bool is_signed, unsigned base,
		   unsigned index, unsigned scale, int64_t value)
{
	struct fay_parsed_operand parsed = one(text);

	if (parsed.problem)
		fail_msg("%s %s", text, parsed.problem);
	assert_int_equal(parsed.operand.form, form);
	assert_int_equal(parsed.operand.size, size);
	assert_int_equal(parsed.operand.is_signed, is_signed);
	assert_int_equal(parsed.operand.base, base);
	assert_int_equal(parsed.operand.index, index);
	assert_int_equal(parsed.operand.scale, scale);
	assert_int_equal(parsed.operand.value, value);
}

static void test_registers(void **state)
{
	static const char *const whole[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp",
					       "rsi", "rdi", "r8",  "r9",  "r10", "r11",
					       "r12", "r13", "r14", "r15" };
	char text[32];

	for (unsigned i = 0; i < 16; i++) {
		snprintf(text, sizeof(text), "-8@%%%s", whole[i]);
		expect(text, FAY_OPERAND_REGISTER, 8, true, i, NONE, 1, 0);
	}
	expect("4@%r15d", FAY_OPERAND_REGISTER, 4, false, 15, NONE, 1, 0);
	expect("-2@%r8w", FAY_OPERAND_REGISTER, 2, true, 8, NONE, 1, 0);
	expect("1@%r12b", FAY_OPERAND_REGISTER, 1, false, 12, NONE, 1, 0);
	expect("1@%dil", FAY_OPERAND_REGISTER, 1, false, 7, NONE, 1, 0);
	/* No wider than the register: what is above is not the argument's. */
	expect("8@%eax", FAY_OPERAND_REGISTER, 4, false, 0, NONE, 1, 0);
	assert_true(one("1@%ch").operand.high_byte);
	assert_false(one("1@%cl").operand.high_byte);
}

static void test_memory(void **state)
{
	struct fay_parsed_operand parsed;

	expect("8@(%rsp)", FAY_OPERAND_MEMORY, 8, false, 4, NONE, 1, 0);
	expect("-4@-20(%rbp)", FAY_OPERAND_MEMORY, 4, true, 5, NONE, 1, -20);
	expect("8@0x10(%rax,%r9,4)", FAY_OPERAND_MEMORY, 8, false, 0, 9, 4, 16);
	expect("8@8-16+1(,%rbx,8)", FAY_OPERAND_MEMORY, 8, false, NONE, 3, 8, -7);
	expect("8@(%rdi,%rsi)", FAY_OPERAND_MEMORY, 8, false, 7, 6, 1, 0);
	expect("8@4096", FAY_OPERAND_MEMORY, 8, false, NONE, NONE, 1, 4096);
	expect("8@&-24(%rbp)", FAY_OPERAND_ADDRESS, 8, false, 5, NONE, 1, -24);
	expect("8@&(%rdi,%rsi)", FAY_OPERAND_ADDRESS, 8, false, 7, 6, 1, 0);
	parsed = one("8@$16400+.");
	assert_null(parsed.problem);
	assert_int_equal(parsed.symbol_length, 1);
	assert_int_equal(parsed.operand.value, 16400);
	parsed = one("-8@64+CheckpointStats(%rip)");
	assert_null(parsed.problem);
	assert_int_equal(parsed.symbol_length, 15);
	assert_memory_equal(parsed.symbol, "CheckpointStats", 15);
	assert_int_equal(parsed.operand.value, 64);
	parsed = one("8@counters.1234-8(%rip)");
	assert_int_equal(parsed.symbol_length, 13);
	assert_int_equal(parsed.operand.value, -8);
}

static void test_constants(void **state)
{
	expect("-4@$-7", FAY_OPERAND_CONSTANT, 4, true, NONE, NONE, 1, -7);
	expect("8@$18446744073709551615", FAY_OPERAND_CONSTANT, 8, false, NONE, NONE, 1, -1);
	expect("8@$0777", FAY_OPERAND_CONSTANT, 8, false, NONE, NONE, 1, 511);
	expect("8@$0", FAY_OPERAND_CONSTANT, 8, false, NONE, NONE, 1, 0);
}

static void test_several(void **state)
{
	struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS];
	static const char text[] = " 8@%rdi  -4@%esi junk 1@$1 ";
	char many[1000] = "";

	assert_int_equal(fay_operands_parse(text, strlen(text), parsed), 4);
	assert_null(parsed[1].problem);
	assert_non_null(parsed[2].problem);
	assert_null(parsed[3].problem);
	assert_int_equal(fay_operands_parse("", 0, parsed), 0);
	for (unsigned i = 0; i < 60; i++)
		strcat(many, "8@%rax ");
	assert_int_equal(fay_operands_parse(many, strlen(many), parsed), FAY_MARKER_MAX_ARGUMENTS);
}

static void test_malformed(void **state)
{
	static const char *const texts[] = {
		"8",
		"@%rax",
		"3@%rax",
		"16@%rax",
		"-@%rax",
		"8@",
		"8@%",
		"8@%rip",
		"8@%r16",
		"8@%r7",
		"8@%r08",
		"8@%xmm0",
		"8f@%xmm0",
		"8@%raxx",
		"8@%r8q",
		"8@$",
		"8@$%rax",
		"8@$-",
		"8@$1+",
		"8@$a+b",
		"8@$1-a",
		"8@$0x",
		"8@$18446744073709551616",
		"8@$99999999999999999999999",
		"8@(",
		"8@()x",
		"8@(%rax",
		"8@(%eax)",
		"8@8(%rip)",
		"8@(%rax,%rsp,1)",
		"8@(%rax,%rcx,3)",
		"8@(%rax,%rcx,)",
		"8@(%rax,,)",
		"8@%fs:8",
		"8@x@tpoff(%rax)",
		"8@a(%rip,%rax,1)",
		"8@*%rax",
		"--8@%rax",
		"8@%rax,",
		"8@\xff\xfe",
		"99999999999999999999@%rax",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!one(texts[i]).problem)
			fail_msg("`%s` was taken for an operand", texts[i]);
}

/* Every string of 4 characters out of those that mean something, and the first ones cut short: an
 * answer, and nothing read behind the end. */
static void test_all_short_texts(void **state)
{
	static const char letters[] = "8-@%$(),+.r5 xa";
	const size_t n = sizeof(letters) - 1;
	struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS];
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *text = page + 4096 - 6;

	assert_true(page != MAP_FAILED);
	assert_int_equal(mprotect(page + 4096, 4096, PROT_NONE), 0);
	memcpy(text, "8@", 2);
	for (size_t i = 0; i < n * n * n * n; i++) {
		for (size_t k = 0, rest = i; k < 4; k++, rest /= n)
			text[2 + k] = letters[rest % n];
		for (size_t skip = 0; skip <= 2; skip += 2)
			assert_true(fay_operands_parse(text + skip, 6 - skip, parsed) <= 3);
	}
	munmap(page, 8192);
}

/* --- files
 * -------------------------------------------------------------------------------------------------
 * */

static uint8_t file[65536];

static void put_note(size_t *at, const void *description, uint32_t size, uint32_t claimed)
{
	const uint32_t header[3] = { 8, claimed, 3 };

	memcpy(file + *at, header, 12);
	memcpy(file + *at + 12, "stapsdt", 8);
	memcpy(file + *at + 20, description, size);
	*at += 20 + ((size + 3) & ~3u);
}

/* An executable of one segment that holds all, with these bytes as .note.stapsdt. */
static void make_file(size_t notes, size_t size)
{
	static const char names[] = "\0.shstrtab\0.text\0.note.stapsdt";
	Elf64_Ehdr *header = (void *)file;
	Elf64_Phdr *segment = (void *)(file + 64);
	Elf64_Shdr *sections = (void *)(file + 0x8000);

	*header = (Elf64_Ehdr){ .e_type = ET_EXEC,
				.e_machine = EM_X86_64,
				.e_version = 1,
				.e_phoff = 64,
				.e_shoff = 0x8000,
				.e_ehsize = 64,
				.e_phentsize = 56,
				.e_phnum = 1,
				.e_shentsize = 64,
				.e_shnum = 4,
				.e_shstrndx = 1 };
	memcpy(header->e_ident, ELFMAG, 4);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = 1;
	*segment = (Elf64_Phdr){ .p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = 0x400000,
				 .p_filesz = sizeof(file),
				 .p_memsz = sizeof(file),
				 .p_align = 4096 };
	memset(sections, 0, 4 * sizeof(*sections));
	memcpy(file + 0x7000, names, sizeof(names));
	sections[1] = (Elf64_Shdr){
		.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = 0x7000, .sh_size = sizeof(names)
	};
	sections[2] = (Elf64_Shdr){ .sh_name = 11,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				    .sh_addr = 0x401000,
				    .sh_offset = 0x1000,
				    .sh_size = 0x1000 };
	sections[3] = (Elf64_Shdr){ .sh_name = 17,
				    .sh_type = SHT_NOTE,
				    .sh_offset = notes,
				    .sh_size = size,
				    .sh_addralign = 4 };
}

/* How many markers the file has. */
static size_t markers(struct fay_error *error)
{
	struct fay_target *target;
	struct fay_function_list list = { 0 };
	char path[64];
	size_t count;
	int fd = memfd_create("notes", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, sizeof(file)), sizeof(file));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(fay_target_open_file(path, &target, error), 0);
	if (fay_target_find_markers(target, "*!*", &list, error)) {
		assert_int_equal(error->code, FAY_E_USAGE);
		fay_suggest(target, error);
	}
	count = list.count;
	for (size_t i = 0; i < count; i++) {
		assert_true(strchr(list.items[i].name, ':') != NULL);
		assert_true(list.items[i].address >= 0x400000 &&
			    list.items[i].address < 0x400000 + sizeof(file));
	}
	fay_function_list_deinit(&list);
	fay_target_close(target);
	close(fd);
	return count;
}

#define DESCRIPTION(address, strings)                                                              \
	address "\0\0\0\0\0"                                                                       \
		"\0\0\0\0\0\0\0\0"                                                                 \
		"\0\0\0\0\0\0\0\0" strings
static const char good[] = DESCRIPTION("\x04\x10\x40", "p\0n\0"
						       "8@%rdi");

static void test_hostile_notes(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		const char *what;
	} bad[] = {
		{ good, 20, "no room for the addresses" },
		{ good, 26, "no strings" },
		{ DESCRIPTION("\x04\x10\x40", "p\0n"), 27, "a name without its end" },
		{ DESCRIPTION("\x04\x10\x40", "\0n\0\0"), 28, "no provider" },
		{ DESCRIPTION("\x04\x10\x40", "p\0\0\0"), 28, "no name" },
		{ DESCRIPTION("\x04\x10\x40", "p:q\0n\0\0"), 31, "a colon in the provider" },
		{ DESCRIPTION("\x04\x10\x40", "p\nq\0n\0\0"), 31, "a control character" },
	};
	struct fay_error error;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		size_t at = 0x2000;

		memset(file, 0, sizeof(file));
		put_note(&at, good, sizeof(good), sizeof(good));
		put_note(&at, bad[i].bytes, (uint32_t)bad[i].size, (uint32_t)bad[i].size);
		put_note(&at, good, sizeof(good), sizeof(good));
		make_file(0x2000, at - 0x2000);
		if (markers(&error) != 1)
			fail_msg("%s: not exactly the marker before it was found", bad[i].what);
	}
}

static void test_notes_that_lie(void **state)
{
	static const uint32_t claims[] = { 0xffffffff, 0x7fffffff, 0x10000, sizeof(good) + 4 };
	struct fay_error error;

	for (size_t i = 0; i < sizeof(claims) / sizeof(*claims); i++) {
		size_t at = 0x2000;

		memset(file, 0, sizeof(file));
		put_note(&at, good, sizeof(good), claims[i]);
		make_file(0x2000, at - 0x2000);
		assert_int_equal(markers(&error), 0);
		assert_non_null(strstr(error.message, "malformed"));
	}
	/* An address outside the code: no marker is there. */
	size_t at = 0x2000;
	memset(file, 0, sizeof(file));
	put_note(&at, DESCRIPTION("\x04\x10\x90", "p\0n\0"), 29, 29);
	put_note(&at, good, sizeof(good), sizeof(good));
	make_file(0x2000, at - 0x2000);
	assert_int_equal(markers(&error), 1);
}

/* --- jumps before a short instruction
 * ------------------------------------------------------------------------------ */

/* A function of `size` bytes at `address`, and the bytes behind it. */
struct function {
	const uint8_t *bytes;
	uint64_t address;
	size_t size, tail;
};

static size_t read_function(void *context, uint64_t address, void *to, size_t size)
{
	const struct function *function = context;
	uint64_t at = address - function->address, all = function->size + function->tail;

	if (at >= all)
		return 0;
	if (size > all - at)
		size = all - at;
	memcpy(to, function->bytes + at, size);
	return size;
}

/* Whether the place can be patched, here only before it. */
static bool before(const char *body, size_t size, size_t offset, size_t *site)
{
	struct function function = { (const uint8_t *)body, 0x1000, size, 0 };
	struct fay_flow_program program = { .context = &function, .read = read_function };
	char reason[FAY_REASON_MAX];
	struct fay_place place;

	if (!fay_place_judge(&program, 0x1000, 0x1000 + size, 0x1000 + offset, FAY_PLACE_AT_MARKER,
			     &place, reason))
		return false;
	assert_int_equal(place.back, 0x1000 + offset - place.site);
	*site = place.site - 0x1000;
	return true;
}

static void test_before(void **state)
{
	size_t site;
	/* test %edi, %edi; je +6; mov %edi, %eax; nop; ret */
	static const char joined[] = "\x85\xff\x74\x03\x89\xf8\x90\xc3";
	/* The jump leads to the nop itself, or between: then what runs there would not be counted,
	 * or would run into the jump. */
	static const char to_nop[] = "\x85\xff\x74\x02\x89\xf8\x90\xc3",
			  between[] = "\x85\xff\x31\xc0\x89\xf8\x90\x74\xfb\xc3";
	static const char call[] = "\xe8\x00\x00\x00\x00\x90\xc3",
			  ended[] = "\x85\xff\x31\xc0\xc3\x90\xc3",
			  jumps[] = "\x85\xff\x31\xc0\x31\xc9\x90\xff\xe0";

	assert_true(before(joined, 8, 6, &site));
	assert_int_equal(site, 2);
	assert_false(before(to_nop, 8, 6, &site));
	assert_false(before(between, 10, 6, &site));
	assert_false(before(call, 7, 5, &site));
	assert_false(before(ended, 7, 5, &site));
	assert_false(before(jumps, 9, 6, &site));
	assert_false(before(joined, 8, 5, &site)); /* no instruction begins there */
	assert_false(before("\x90\xc3", 2, 0, &site));
	assert_false(before("\x31\xc0\x90\xc3", 4, 2, &site)); /* too near the start */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registers),      cmocka_unit_test(test_memory),
		cmocka_unit_test(test_constants),      cmocka_unit_test(test_several),
		cmocka_unit_test(test_malformed),      cmocka_unit_test(test_all_short_texts),
		cmocka_unit_test(test_before),         cmocka_unit_test(test_hostile_notes),
		cmocka_unit_test(test_notes_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
