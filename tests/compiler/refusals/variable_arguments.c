#include <fay/probe.h>

FAY_COUNT(n);

static int sum(int count, ...)
{
	__builtin_va_list list;
	int total = 0;

	__builtin_va_start(list, count);
	for (int i = 0; i < count; i++)
		total += __builtin_va_arg(list, int);
	__builtin_va_end(list);
	return total;
}

FAY_ENTRY("a!b")
{
	n.n += (uint64_t)sum(2, 3, 4);
}
