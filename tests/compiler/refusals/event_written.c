#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	((struct fay_event *)event)->arg[0] = 1;
}
