#include <fay/probe.h>

FAY_COUNT(n);

__asm__(".globl attack; attack: ret");

FAY_ENTRY("a!b")
{
	n.n++;
}
