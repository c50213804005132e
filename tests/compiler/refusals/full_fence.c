#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	n.n++;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}
