/* SPDX-License-Identifier: MIT */
/*
 * The place of a refusal as people name it: function, marked disassembly, source line.
 *
 * For `--source DIR`, the file's name comes from the image, that is, from whoever made it: only its
 * last component is used, only regular files in DIR itself are opened, without following links, and
 * no more than a line of what was asked for is shown.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "explain.h"

/* Conditions as compilers and debuggers write them: `ja`, where Zydis has `jnbe`. */
static void name_condition(char *text)
{
	static const char *const prefixes[] = { "j", "set", "cmov" };
	static const struct {
		const char *from, *to;
	} names[] = {
		{ "nbe", "a" }, { "nle", "g" }, { "nb", "ae" },
		{ "nl", "ge" }, { "nz", "ne" }, { "z", "e" },
	};

	for (unsigned i = 0; i < 3 * 6; i++) {
		size_t before = strlen(prefixes[i / 6]), length = strlen(names[i % 6].from),
		       to = strlen(names[i % 6].to);
		char *at = text + before;

		if (strncmp(text, prefixes[i / 6], before) ||
		    strncmp(at, names[i % 6].from, length) || at[length] != ' ')
			continue;
		memcpy(at, names[i % 6].to, to);
		memmove(at + to, at + length, strlen(at + length) + 1);
		return;
	}
}

int fay_disassemble(const uint8_t *bytes, size_t available, uint64_t address, bool att, char *text,
		    size_t text_size)
{
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    ZYAN_FAILED(ZydisFormatterInit(&formatter, att ? ZYDIS_FORMATTER_STYLE_ATT
							   : ZYDIS_FORMATTER_STYLE_INTEL)) ||
	    ZYAN_FAILED(ZydisFormatterSetProperty(&formatter,
						  ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
						  ZYDIS_PADDING_DISABLED)) ||
	    ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, available, &insn, operands)) ||
	    ZYAN_FAILED(ZydisFormatterFormatInstruction(&formatter, &insn, operands,
							insn.operand_count_visible, text, text_size,
							address, NULL)))
		return 0;
	name_condition(text);
	return insn.length;
}

static bool in_text(const struct fay_image *image, uint64_t address)
{
	return address - image->text.start < image->text.size;
}

static const uint8_t *text_at(const struct fay_image *image, uint64_t address)
{
	return image->layout.bytes + (address - image->layout_base);
}

/* Name of the function that holds `address`: nearest symbol at or before it, else "probe N", else
 * ".text". *start is set to its first address. */
static const char *function_at(struct fay_arena *arena, const struct fay_image *image,
			       uint64_t address, uint64_t *start)
{
	const char *name = NULL;
	uint64_t best = image->text.start;

	/* Symbols are for messages; they are sorted, but a linear look is enough for the one place
	 * of a refusal. */
	for (uint32_t i = 0; i < image->symbol_count && image->symbols[i].address <= address; i++) {
		if (in_text(image, image->symbols[i].address)) {
			name = image->symbols[i].name;
			best = image->symbols[i].address;
		}
	}
	for (uint32_t i = 0; !name && i < image->probe_count; i++) {
		uint64_t code = image->layout_base + image->probes[i].code_offset;

		if (code <= address && code >= best) {
			name = fay_arena_printf(arena, "probe %" PRIu32, i);
			best = code;
		}
	}
	*start = best;
	return name ? name : ".text";
}

#define LINES_AROUND 3
#define LINE_BYTES 160
/* How far back the start of a listing may be looked for, in instructions. */
#define LISTING_MAX 65536

static void format_line(const struct fay_image *image, uint64_t address, uint64_t marked,
			char *line, unsigned *length)
{
	char text[96];
	uint64_t offset = address - image->text.start;
	int size = fay_disassemble(text_at(image, address), image->text.size - offset, offset,
				   false, text, sizeof(text));

	if (size <= 0) {
		size = 1;
		snprintf(text, sizeof(text), "(not an instruction) %02x", *text_at(image, address));
	}
	*length = (unsigned)size;
	snprintf(line, LINE_BYTES, "  %s %6" PRIx64 ":  %s\n", address == marked ? "=>" : "  ",
		 offset, text);
}

/*
 * Disassembly of up to three instructions before and after virtual address `address`, that one
 * marked "=>", one a line, in the arena. NULL if the address is not in .text. Lines before are
 * found by decoding from the nearest symbol, so they are right where the code is, and left out
 * where it is not.
 */
static const char *disassembly(struct fay_arena *arena, const struct fay_image *image,
			       uint64_t address)
{
	char lines[2 * LINES_AROUND + 1][LINE_BYTES], all[(2 * LINES_AROUND + 1) * LINE_BYTES] = "";
	unsigned count = 0, length;
	uint64_t at;

	if (!in_text(image, address))
		return NULL;
	function_at(arena, image, address, &at);
	/* Before: the last lines of a walk from the function's start, if the walk meets the
	 * address. */
	for (unsigned walked = 0; at < address && walked < LISTING_MAX; walked++) {
		if (count == LINES_AROUND) {
			memmove(lines[0], lines[1], sizeof(lines[0]) * (LINES_AROUND - 1));
			count--;
		}
		format_line(image, at, address, lines[count++], &length);
		at += length;
	}
	if (at != address) {
		count = 0;
		at = address;
	}
	unsigned end = count + LINES_AROUND + 1;
	while (count < end && in_text(image, at)) {
		format_line(image, at, address, lines[count++], &length);
		at += length;
	}
	for (unsigned i = 0; i < count; i++)
		strcat(all, lines[i]);
	return fay_arena_printf(arena, "%s", all);
}

/* What to change in a probe that breaks the rule; NULL if nothing is said. */
static const char *rule_hint(enum fay_rule rule)
{
	static const struct {
		const char *id, *text;
	} hints[] = {
#define HINT(id, text) { id, text },
#include "hints.inc" /* from docs/rules.md */
#undef HINT
	};

	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		if (!strcmp(hints[i].id, fay_rule_id(rule)))
			return hints[i].text;
	return NULL;
}

const struct fay_image_line *fay_source_line(const struct fay_image *image, uint64_t offset)
{
	uint32_t low = 0, high = image->line_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->lines[middle].code_offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &image->lines[low - 1] : NULL;
}

void fay_rejection_fill(struct fay_arena *arena, const struct fay_image *image,
			const struct fay_refusal *refusal, struct fay_rejection *rejection)
{
	const struct fay_image_line *line;
	uint64_t start;

	rejection->rule = refusal->rule;
	rejection->outcome = refusal->outcome;
	rejection->what = refusal->what;
	rejection->missing = refusal->missing;
	rejection->hint = rule_hint(refusal->rule);
	if (!image || !image->layout.bytes || !in_text(image, refusal->address))
		return;
	rejection->function = function_at(arena, image, refusal->address, &start);
	rejection->function_offset = refusal->address - start;
	rejection->text_offset = refusal->address - image->text.start;
	rejection->disassembly = disassembly(arena, image, refusal->address);
	line = fay_source_line(image, rejection->text_offset);
	if (!line)
		return;
	rejection->source_file = image->line_files[line->file];
	rejection->source_line = line->line;
	rejection->source_column = line->column;
}

/* ---- the source ---- */

#define MAX_LINE 400
#define MAX_FILE ((off_t)16 << 20)

static FILE *open_source(const char *directory, const char *name)
{
	const char *slash = strrchr(name, '/');
	int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;
	FILE *file = NULL;

	name = slash ? slash + 1 : name;
	if (dir >= 0 && *name && strcmp(name, ".") && strcmp(name, ".."))
		fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (dir >= 0)
		close(dir);
	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_FILE)
		file = fdopen(fd, "r");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

void fay_verdict_source(struct fay_verdict *verdict, const char *source)
{
	struct fay_rejection *r = &verdict->rejection;
	char line[MAX_LINE + 2];
	uint32_t number = 1;
	FILE *file;

	if (!verdict->arena || !r->source_file || !r->source_line)
		return;
	file = open_source(source, r->source_file);
	while (file && fgets(line, sizeof(line), file)) {
		if (number == r->source_line) {
			line[strcspn(line, "\r\n")] = 0;
			r->source_text = fay_arena_printf(verdict->arena, "%s", line);
			break;
		}
		number += strchr(line, '\n') != NULL;
	}
	if (file)
		fclose(file);
}
