/* SPDX-License-Identifier: MIT */
/* libbpf_peer OBJECT entry|leave|duration: runs these programs of libbpf_peer.bpf.c until SIGINT,
 * then says how many events they counted. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

static int say(const char *what)
{
	perror(what);
	return 1;
}

static unsigned long long counted(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".bss");
	unsigned long long words[64 * 8], sum = 0;
	unsigned zero = 0;

	if (!map || bpf_map_lookup_elem(bpf_map__fd(map), &zero, words))
		return 0;
	for (unsigned cpu = 0; cpu < 64; cpu++)
		sum += words[cpu * 8];
	return sum;
}

int main(int argc, char **argv)
{
	struct bpf_program *program;
	struct bpf_object *object = argc == 3 ? bpf_object__open(argv[1]) : NULL;

	if (!object)
		return say("libbpf_peer: open");
	bpf_object__for_each_program(program, object) bpf_program__set_autoload(
		program, !strncmp(bpf_program__name(program), argv[2], strlen(argv[2])));
	if (bpf_object__load(object))
		return say("libbpf_peer: load");
	bpf_object__for_each_program(
		program,
		object) if (bpf_program__autoload(program) &&
			    !bpf_program__attach(program)) return say("libbpf_peer: attach");
	signal(SIGINT, end);
	puts("ready");
	fflush(stdout);
	while (!ended)
		usleep(100000);
	printf("counted %llu\n", counted(object));
	return 0;
}
