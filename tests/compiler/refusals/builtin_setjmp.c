#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	void *back[5];

	if (!__builtin_setjmp(back))
		n.n++;
}
