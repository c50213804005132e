// SPDX-License-Identifier: MIT OR GPL-2.0
/* Switches ftrace off for good, as a fault found in it would. `kill` is the address of the kernel's
 * ftrace_kill(). */
#include <linux/module.h>

static unsigned long kill;
module_param(kill, ulong, 0);

static int __init ftrace_dead_init(void)
{
	((void (*)(void))kill)();
	return 0;
}
module_init(ftrace_dead_init);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("For fay's tests");
