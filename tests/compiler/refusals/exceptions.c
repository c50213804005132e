#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	try {
		n.n++;
	} catch (...) {
		n.n--;
	}
}
