#include <fay/probe.h>

FAY_COUNT(n);

FAY_BEGIN()
{
	n.n = 1;
}

FAY_ENTRY("a!b")
{
	fay_probe_0(event, fay_local, fay_global);
}
