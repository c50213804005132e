#include <fay/probe.h>

FAY_COUNT(n);

extern int errno_of_program;

FAY_ENTRY("a!b")
{
	n.n += (uint64_t)errno_of_program;
}
