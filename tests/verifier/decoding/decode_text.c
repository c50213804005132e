/* SPDX-License-Identifier: MIT */
/*
 * decode_text FILE...: reads raw code from its first byte on and prints each instruction that the
 * allow-list decoder or the other two readers refuse. `objcopy -O binary -j .text x.o x.bin` makes
 * such a file. The last line counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/explain/explain.h"
#include "verifier/prover/decoders/agree.h"

int main(int argc, char **argv)
{
	static uint8_t bytes[1 << 24];
	struct fay_agree *agree = fay_agree_create();
	unsigned long good = 0, bad = 0;

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;

		if (!f || !agree) {
			perror(argv[i]);
			return 2;
		}
		fclose(f);
		for (size_t at = 0; at < size;) {
			struct fay_arena *arena = fay_arena_create(1 << 16);
			char text[128] = "?";
			int length = fay_disassemble(bytes + at, size - at, at, false, text,
						     sizeof(text));
			struct fay_insn insn;
			struct fay_refusal r = fay_decode(arena, bytes + at, size - at, at, &insn);

			if (r.rule == FAY_RULE_NONE)
				r = fay_agree_check(agree, arena, bytes + at, size - at, &insn);
			if (r.rule == FAY_RULE_NONE)
				good++;
			else
				bad++, printf("%s | %s\n", text, r.what);
			fay_arena_destroy(arena);
			at += length > 0 ? (size_t)length : 1;
		}
	}
	printf("%lu decoded, %lu refused\n", good, bad);
	fay_agree_destroy(agree);
	return 0;
}
