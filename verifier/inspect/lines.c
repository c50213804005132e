/* SPDX-License-Identifier: MIT */
/* An image's code line by line, and the constants that read as text. */
#include <inttypes.h>
#include <string.h>

#include "fay/utf8.h"
#include "inspect.h"

static const uint8_t *bytes_at(const struct fay_image *image, uint64_t address)
{
	return image->layout.bytes + (address - image->layout_base);
}

static const struct fay_insn *insn_at(const struct fay_inspected *in, uint64_t address)
{
	const struct fay_cfg *cfg = &in->run->cfg;
	uint32_t low = 0, high = in->block_count ? cfg->insn_count : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (cfg->insns[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return in->block_count && low < cfg->insn_count && cfg->insns[low].address == address
		       ? &cfg->insns[low]
		       : NULL;
}

/* What lies at an address that an instruction names. */
static void note_place(const struct fay_image *image, uint64_t address, char *note, size_t size)
{
	int helper = fay_image_slot(image, address);

	if (helper >= 0)
		snprintf(note, size, "slot of %s", fay_helper_name((unsigned)helper));
	else if (address - image->rodata.start < image->rodata.size)
		snprintf(note, size, ".rodata+0x%" PRIx64, address - image->rodata.start);
	else if (address - image->text.start < image->text.size)
		snprintf(note, size, ".text+0x%" PRIx64, address - image->text.start);
}

static void note_insn(const struct fay_inspected *in, const struct fay_insn *insn, char *note,
		      size_t size)
{
	const struct fay_image *image = &in->run->image;
	const struct fay_operand *operands[] = { &insn->dst, &insn->src, &insn->src2 };

	if (insn->op == OP_CALL_SLOT) {
		note_place(image, insn->target, note, size);
	} else if (insn->op == OP_CALL) {
		const struct fay_inspected_function *f = fay_inspect_function(in, insn->target);

		snprintf(note, size, "%s", f ? f->name : "");
	} else {
		for (unsigned i = 0; i < 3; i++)
			if (operands[i]->kind == OPERAND_MEM && operands[i]->rip)
				note_place(image, (uint64_t)operands[i]->disp, note, size);
	}
}

unsigned fay_inspect_line(const struct fay_inspected *in, uint64_t address, bool att,
			  struct fay_inspected_line *line)
{
	const struct fay_image *image = &in->run->image;
	uint64_t offset = fay_inspect_offset(in, address);
	const struct fay_insn *insn = insn_at(in, address);
	int length = fay_disassemble(bytes_at(image, address), image->text.size - offset, offset,
				     att, line->text, sizeof(line->text));

	*line->note = 0;
	line->source = in->verdict.probe_count ? fay_source_line(image, offset) : NULL;
	if (length <= 0) {
		snprintf(line->text, sizeof(line->text), "(not an instruction) %02x",
			 *bytes_at(image, address));
		return 1;
	}
	if (insn)
		note_insn(in, insn, line->note, sizeof(line->note));
	return (unsigned)length;
}

bool fay_inspect_text(const struct fay_inspected *in, uint64_t *at, uint64_t *offset,
		      const char **text)
{
	const struct fay_image *image = &in->run->image;
	const uint8_t *bytes;

	if (!fay_inspect_has_code(in) || !image->rodata.size)
		return false;
	bytes = bytes_at(image, image->rodata.start);
	while (*at < image->rodata.size) {
		uint64_t end = *at, characters = 0, length;

		while ((length = fay_utf8_printable(bytes + end, image->rodata.size - end))) {
			end += length;
			characters++;
		}
		*offset = *at;
		*at = end + 1;
		if (characters < FAY_INSPECT_TEXT || end == image->rodata.size || bytes[end])
			continue;
		*text = (const char *)bytes + *offset;
		return true;
	}
	return false;
}
