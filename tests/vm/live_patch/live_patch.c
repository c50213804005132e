// SPDX-License-Identifier: MIT OR GPL-2.0
/* A live patch of __x64_sys_getpgid: it says -ESRCH whatever it is asked, and counts what tasks
 * named kernel_calls ask. */
#include <linux/atomic.h>
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

static atomic_t calls = ATOMIC_INIT(0);

static int calls_get(char *buffer, const struct kernel_param *parameter)
{
	return sprintf(buffer, "%d\n", atomic_read(&calls));
}
static const struct kernel_param_ops calls_ops = { .get = calls_get };
module_param_cb(calls, &calls_ops, NULL, 0444);

static asmlinkage long patched_getpgid(const struct pt_regs *registers)
{
	if (!strcmp(current->comm, "kernel_calls"))
		atomic_inc(&calls);
	return -ESRCH;
}

static struct klp_func functions[] = {
	{ .old_name = "__x64_sys_getpgid", .new_func = patched_getpgid }, {}
};
/* no name: the kernel itself */
static struct klp_object objects[] = { { .funcs = functions }, {} };
static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objects };

static int __init live_patch_init(void)
{
	return klp_enable_patch(&patch);
}

static void __exit live_patch_exit(void)
{
}

module_init(live_patch_init);
module_exit(live_patch_exit);
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
MODULE_DESCRIPTION("For fay's tests");
