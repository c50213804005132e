#include <fay/probe.h>

FAY_COUNT(n);

#include <pthread.h>

static pthread_mutex_t *lock;

FAY_ENTRY("a!b")
{
	pthread_mutex_lock(0);
	n.n++;
}
