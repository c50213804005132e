#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("read")
{
	n.n++;
}
