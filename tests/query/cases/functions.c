/* Functions that the cases call by `extend "functions.c"`. */
#include <stdarg.h>
#include <stdbool.h>

struct pair {
	long a, b;
};
struct small {
	int a;
};
union either {
	int a;
	float b;
};

long bucket(long x, int width)
{
	return width ? x / width : 0;
}

bool is_hot(unsigned x)
{
	return x % 10 == 3;
}

int length(const char *s)
{
	int n = 0;
	while (n < 16 && s[n])
		n++;
	return n;
}

double halved(long x)
{
	return x / 2.0;
}
long rounded(double x)
{
	return (long)x;
}
long sum(struct pair p)
{
	return p.a + p.b;
}
long part(struct small p)
{
	return p.a;
}
int one_of(union either e)
{
	return e.a;
}
long many(int count, ...)
{
	return count;
}
long behind(const long *p)
{
	return *p;
}
const char *named(long x)
{
	return x ? "yes" : "no";
}
void nothing(long x)
{
}
long seven(long a, long b, long c, long d, long e, long f, long g)
{
	return a + b + c + d + e + f + g;
}
static long hidden(long x)
{
	return x;
}
long shown(long x)
{
	return hidden(x);
}
__attribute__((ms_abi)) long elsewhere(long x)
{
	return x;
}
int whole(_Complex int x)
{
	return __real__ x;
}
int process(int x)
{
	return x;
}
int limited(const char *restrict s)
{
	return s[0];
}
