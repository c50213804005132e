#include <fay/probe.h>

FAY_COUNT(n);

#include <setjmp.h>

FAY_ENTRY("a!b")
{
	jmp_buf back;

	if (!setjmp(back))
		n.n++;
}
