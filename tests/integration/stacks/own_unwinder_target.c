/* SPDX-License-Identifier: MIT */
/* own_unwinder_target LIBRARY [later]: loads it, if later at the first line of its input, and says
 * at each further one what two calls come to that end by exceptions. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int pass_on(void (*throws)(void));

/* An exception passes here. */
__attribute__((noinline)) int pass_on(void (*throws)(void))
{
	throws();
	return 1;
}

static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	int (*call)(int (*)(void (*)(void)));
	void *library;

	if (count > 2)
		say("ready");
	if (count > 2 && getchar() == EOF)
		return 1;
	library = dlopen(arguments[1], RTLD_NOW);
	call = library ? (int (*)(int (*)(void (*)(void))))dlsym(library, "own_catch") : NULL;
	if (!call)
		return fprintf(stderr, "%s\n", dlerror()), 2;
	say("loaded");
	while (getchar() != EOF)
		printf("%d %d\n", call(NULL), call(pass_on)), fflush(stdout);
	return 0;
}
