/* SPDX-License-Identifier: MIT */
#ifndef FAY_TESTS_LIBDW_RULE_H
#define FAY_TESTS_LIBDW_RULE_H

#include <elfutils/libdw.h>
#include <stdint.h>

/* The rule (fay/stacks.h) at an address, as libdw reads the unwind table. */
uint32_t libdw_rule(Dwarf_CFI *cfi, uint64_t address);

#endif
