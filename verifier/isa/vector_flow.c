/* SPDX-License-Identifier: MIT */
/*
 * Which bytes of a vector instruction's result were written, given which of its operands were: the
 * column "flow" of opcodes_vector.def. Nothing is said of numbers. Prover and checker both ask
 * here, and test_vector_cpu compares the answers with the CPU.
 */
#include "vector.h"

static bool has(uint32_t bytes, uint32_t all)
{
	return (bytes & all) == all;
}

/* Groups of `size` bytes: all of them or none. */
static uint32_t groups(uint32_t bytes, unsigned size)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i += size)
		if (has(bytes >> i, fay_vector_low(size)))
			r |= fay_vector_low(size) << i;
	return r;
}

/* The low `size` bytes if all `read` bytes are there; the rest is `kept`. */
static uint32_t low_then(uint32_t from, unsigned read, unsigned size, uint32_t kept)
{
	uint32_t low = fay_vector_low(size);

	return (kept & ~low) | (has(from, fay_vector_low(read)) ? low : 0);
}

/*
 * A shift by an immediate, of bits or of a lane's bytes: a byte depends on one or two bytes of its
 * element. Compilers extend 16-bit numbers by interleaving with garbage and shifting that out.
 */
static uint32_t shifted(const struct fay_insn *insn, uint32_t from, unsigned size)
{
	unsigned digit = fay_vector_row(insn)->ext; /* 2 3 logical right, 4 arithmetic, 6 7 left */
	unsigned bits = size == 16 ? insn->imm * 8u : insn->imm;
	int bytes = (int)bits / 8, part = bits % 8 != 0, last = (int)size - 1;
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i++) {
		int base = (int)(i / size * size), at = (int)(i % size);
		int first = digit >= 6 ? at - bytes - part : at + bytes;
		bool all = true;

		for (int k = first; k <= first + part; k++) {
			int source = digit == 4 && k > last ? last : k; /* the sign's byte */

			if (source >= 0 && source <= last)
				all = all && (from >> (base + source) & 1);
		}
		r |= (uint32_t)all << i;
	}
	return r;
}

/* The halves of a lane interleaved, first src2. */
static uint32_t interleaved(const struct fay_vector_bytes *of, unsigned size, bool high)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i++) {
		unsigned at = i % 16, from = at / (2 * size) * size + at % size + (high ? 8 : 0);

		r |= ((at / size & 1 ? of->src : of->first) >> (i - at + from) & 1) << i;
	}
	return r;
}

/* Each lane's doublewords as two bits of `by` say; `two`: the lower two of src2. */
static uint32_t shuffled(const struct fay_vector_bytes *of, unsigned by, bool two)
{
	uint32_t r = 0;

	for (unsigned i = 0; i < 32; i++) {
		unsigned at = i % 16, from = (by >> 2 * (at / 4) & 3) * 4 + at % 4;

		r |= ((two && at < 8 ? of->first : of->src) >> (i - at + from) & 1) << i;
	}
	return r;
}

uint32_t fay_vector_flow(const struct fay_insn *insn, const struct fay_vector_bytes *of,
			 unsigned length)
{
	const struct fay_vector_row *row = fay_vector_row(insn);
	uint32_t all = fay_vector_low(length), both = of->src & of->first & of->third;
	uint32_t kept = row->shape == VSHAPE_FMA ? of->third : of->first; /* above a scalar */
	uint32_t part = fay_vector_low(row->memory);
	unsigned at = insn->imm * row->memory % (row->memory == 16 ? 32 : 16);
	unsigned size = 1u << row->flow % 8;

	switch (row->flow) {
	case VFLOW_L1:
	case VFLOW_L2:
	case VFLOW_L4:
	case VFLOW_L8:
	case VFLOW_LANE:
		return row->shape == VSHAPE_VMI ? shifted(insn, of->src, size) : groups(both, size);
	case VFLOW_ALL: return has(both, all) ? all : 0;
	case VFLOW_S4: return low_then(both, 4, 4, kept);
	case VFLOW_S8: return low_then(both, 8, 8, kept);
	case VFLOW_U4: return low_then(of->src, insn->access, 4, of->first);
	case VFLOW_U8: return low_then(of->src, insn->access, 8, of->first);
	case VFLOW_U4TO8: return low_then(of->src, 4, 8, of->first);
	case VFLOW_U8TO4: return low_then(of->src, 8, 4, of->first);
	case VFLOW_LOW: return has(of->src, fay_vector_low(insn->access)) ? all : 0;
	case VFLOW_INTO: return (of->first & ~(part << at)) | (of->src & part) << at;
	case VFLOW_OUT: return of->src >> at;
	case VFLOW_COUNT: return has(of->src, fay_vector_low(8)) ? groups(of->first, 8) : 0;
	case VFLOW_HL: return low_then(of->src >> 8, 8, 8, of->first);
	case VFLOW_IL1:
	case VFLOW_IL2:
	case VFLOW_IL4:
	case VFLOW_IL8: return interleaved(of, size, false);
	case VFLOW_IH1:
	case VFLOW_IH2:
	case VFLOW_IH4:
	case VFLOW_IH8: return interleaved(of, size, true);
	case VFLOW_SHUF: return shuffled(of, insn->imm, false);
	case VFLOW_SHUF2: return shuffled(of, insn->imm, true);
	default: return shuffled(of, row->flow, false); /* DDUP, SLDUP, SHDUP, HIGH */
	}
}
