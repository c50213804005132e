/* SPDX-License-Identifier: MIT */
/* What the parsers share: numbers as networks have them. */
#ifndef FAY_BENCH_EXTENSIONS_PARSERS_PACKET_H
#define FAY_BENCH_EXTENSIONS_PARSERS_PACKET_H

#include "../kernel.h"

static inline uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t be24(const uint8_t *at)
{
	return (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
}

static inline uint32_t be32(const uint8_t *at)
{
	return be16(at) << 16 | be16(at + 2);
}

#endif
