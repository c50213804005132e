#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	uint64_t now;

	__asm__ volatile("rdtsc; shl $32, %%rdx; or %%rdx, %%rax" : "=a"(now) : : "rdx");
	n.n += now;
}
