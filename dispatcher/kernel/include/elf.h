/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What libc's elf.h has and the kernel's does not (System V ABI, chapters 4 and 5). */
#include <linux/elf.h>

#define ELFOSABI_SYSV 0
#define ELFOSABI_GNU 3
#define SHF_MERGE (1 << 4)
#define SHF_STRINGS (1 << 5)
#define SHF_INFO_LINK (1 << 6)
#define SHF_TLS (1 << 10)
#define SHT_INIT_ARRAY 14
#define SHT_FINI_ARRAY 15
#define SHT_PREINIT_ARRAY 16
#define SHT_RELR 19
#define DT_BIND_NOW 24
#define DT_FLAGS 30
#define DT_GNU_HASH 0x6ffffef5
#define DF_SYMBOLIC 2
#define DF_BIND_NOW 8
