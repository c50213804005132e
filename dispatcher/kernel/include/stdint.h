/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include <linux/limits.h>
#include <linux/types.h>

#define UINT16_MAX 0xffff
#define INT32_MAX 0x7fffffff
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 0xffffffffu
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 0xffffffffffffffffull
#define UINT64_C(n) n##ull
