/* SPDX-License-Identifier: MIT */
/* fay_try_read of what is there and of what is not: the path that access() was called with, and
 * addresses that nothing may read. */
#include <fay/probe.h>

FAY_COUNT(calls);
FAY_COUNT(path_right);
FAY_COUNT(kernel_read); /* the registers that the system call left on the kernel's stack */
FAY_COUNT(faults);
FAY_COUNT(named_read); /* addresses that rmdir() was called with */
FAY_COUNT(named_refused);
FAY_SUM(named_value);

static int readable(uint64_t address)
{
	uint64_t word;

	return fay_try_read(&word, sizeof(word), address) == 0;
}

FAY_ENTRY("kernel!__x64_sys_access")
{
	uint64_t path = 0, text = 0;

	fay_count(&calls);
	/* struct pt_regs: rdi is the 15th word */
	if (fay_try_read(&path, sizeof(path), event->arg[0] + 14 * 8) == 0)
		fay_count(&kernel_read);
	/* "/known/p" */
	if (fay_try_read(&text, sizeof(text), path) == 0 && text == 0x702f6e776f6e6b2f)
		fay_count(&path_right);
	if (!readable(0))
		fay_count(&faults); /* the null page */
	if (!readable(0x7ffffffff000))
		fay_count(&faults); /* behind user memory */
	if (!readable(0x8000000000000000))
		fay_count(&faults); /* no address at all */
	if (!readable(0xfffffffffffffffc))
		fay_count(&faults); /* would wrap around */
	if (!readable(0xffff800000000000))
		fay_count(&faults); /* kernel half, nothing there */
	if (!readable(0xffffffffff600000))
		fay_count(&faults); /* the vsyscall page */
	if (!readable((path & ~UINT64_C(0xfff)) | UINT64_C(0x400000000000)))
		fay_count(&faults); /* not mapped */
}

FAY_ENTRY("kernel!__x64_sys_rmdir")
{
	uint64_t address = 0, value = 0;

	if (fay_try_read(&address, sizeof(address), event->arg[0] + 14 * 8) == 0 &&
	    fay_try_read(&value, sizeof(value), address) == 0) {
		fay_count(&named_read);
		fay_sum(&named_value, (int64_t)value);
	} else {
		fay_count(&named_refused);
	}
}
