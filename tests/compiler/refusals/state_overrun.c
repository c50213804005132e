#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	(&n.n)[3] = 1;
}
