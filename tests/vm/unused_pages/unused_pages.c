// SPDX-License-Identifier: MIT OR GPL-2.0
/* Two pages in the direct mapping: one like all others, and one that is marked as a balloon marks
 * what it holds. */
#include <linux/mm.h>
#include <linux/module.h>

static unsigned long normal, offline; /* addresses */
module_param(normal, ulong, 0444);
module_param(offline, ulong, 0444);

static void unused_pages_exit(void)
{
	if (offline)
		__ClearPageOffline(virt_to_page((void *)offline));
	free_page(normal);
	free_page(offline);
}

static int __init unused_pages_init(void)
{
	normal = __get_free_page(GFP_KERNEL);
	offline = __get_free_page(GFP_KERNEL);
	if (offline)
		__SetPageOffline(virt_to_page((void *)offline));
	if (normal && offline)
		return 0;
	unused_pages_exit();
	return -ENOMEM;
}

module_init(unused_pages_init);
module_exit(unused_pages_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("For fay's tests");
