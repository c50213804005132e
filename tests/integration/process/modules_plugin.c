/* SPDX-License-Identifier: MIT */
/* A module whose function is called when it is loaded, three times, and when it is unloaded, twice.
 * */
long plugin_work(long number);
long plugin_other(long number);

#ifdef OTHER
/* So that other code lies where the function is in the module that was made without it. */
__attribute__((noinline)) long plugin_other(long number)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::: "memory");
	return number * 7;
}
#endif

__attribute__((noinline)) long plugin_work(long number)
{
	__asm__ volatile("" ::: "memory");
	return number + 5;
}

__attribute__((constructor)) static void begin(void)
{
	for (long i = 0; i < 3; i++)
		plugin_work(i);
}

__attribute__((destructor)) static void end(void)
{
	for (long i = 0; i < 2; i++)
		plugin_work(i);
}
