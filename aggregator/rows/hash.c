/* SPDX-License-Identifier: MIT */
#include "rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>

static struct fay_hash_key key;

static void draw(void)
{
	if (getrandom(&key, sizeof(key), 0) != (ssize_t)sizeof(key))
		/* a kernel without it cannot run Fay; 16 bytes are never cut short (getrandom(2))
		 * */
		abort();
}

const struct fay_hash_key *fay_hash_key(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, draw);
	return &key;
}
