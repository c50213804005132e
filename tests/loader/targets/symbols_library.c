/* SPDX-License-Identifier: MIT */
/* libfaysym-1.2.so.3: a library whose file name has every kind of version. */
int fay_sym_only_in_library(int x);
unsigned long fay_sym_own_address(void);
int fay_sym_only_in_library(int x)
{
	return x + 1;
}

/* The real address: what a non-PIE program takes for it is a stub of its own. */
extern int own(int x) __attribute__((alias("fay_sym_only_in_library"), visibility("hidden")));
unsigned long fay_sym_own_address(void)
{
	return (unsigned long)own;
}
