#include <fay/probe.h>

FAY_COUNT(n);

void count(void)
{
	n.n++;
}
