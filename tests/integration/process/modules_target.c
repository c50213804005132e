/* SPDX-License-Identifier: MIT */
/*
 * A program that loads and unloads modules. Its arguments are done in order:
 *
 *	cycle FILE N COUNT   N times: dlopen, COUNT calls of the module's work, dlclose
 *	spaces FILE N COUNT  the same with dlmopen, each time into a namespace of its own
 *	threads FILE N COUNT the same as cycle, by four threads at once, each with a file of its
 *	  own: FILE.0 to FILE.3
 *	fork FILE N COUNT    the same in a child
 *	signals              from now on SIGALRM comes a thousand times a second, and its handler
 *			     calls main_work
 *	quiet                no more
 *	births               from now on threads are begun just before each dlopen, which they
 *			     outlive
 *	missing FILE         dlopen, which must fail
	keep FILE            dlopen
 *	calls N              N calls of main_work
 *	wait                 says so, and waits for a line
 *
 * It says how often a module came to lie where the one before had been.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

long main_work(long number);

__attribute__((noinline, noclone)) long main_work(long number)
{
	__asm__ volatile("" ::: "memory");
	return number * 3;
}

struct job {
	const char *file;
	long rounds, calls;
	int spaces;
	long same; /* rounds in which the module lay where it had been in the round before */
};

#define BIRTHS 8
static int births;
static pthread_mutex_t outlived = PTHREAD_MUTEX_INITIALIZER;

static void *outlive(void *unused)
{
	pthread_mutex_lock(&outlived);
	pthread_mutex_unlock(&outlived);
	return unused;
}

static void *open_module(const struct job *job)
{
	pthread_t threads[BIRTHS];
	pthread_mutex_lock(&outlived);
	for (int i = 0; i < births; i++)
		if (pthread_create(&threads[i], NULL, outlive, NULL))
			abort();
	void *module = job->spaces ? dlmopen(LM_ID_NEWLM, job->file, RTLD_NOW)
				   : dlopen(job->file, RTLD_NOW);
	pthread_mutex_unlock(&outlived);
	for (int i = 0; i < births; i++)
		pthread_join(threads[i], NULL);
	return module;
}

static void *run(void *argument)
{
	struct job *job = argument;
	void *before = NULL;
	for (long i = 0; i < job->rounds; i++) {
		void *module = births        ? open_module(job)
			       : job->spaces ? dlmopen(LM_ID_NEWLM, job->file, RTLD_NOW)
					     : dlopen(job->file, RTLD_NOW);
		long (*work)(long) = module ? (long (*)(long))dlsym(module, "plugin_work") : NULL;
		if (!work) {
			fprintf(stderr, "%s\n", dlerror());
			exit(4);
		}
		job->same += (void *)work == before;
		before = (void *)work;
		for (long k = 0; k < job->calls; k++)
			if (work(k) != k + 5)
				abort();
		dlclose(module);
	}
	return NULL;
}

static void run_threads(struct job *job)
{
	pthread_t threads[THREADS];
	struct job jobs[THREADS];
	char files[THREADS][4096];
	for (int i = 0; i < THREADS; i++) {
		snprintf(files[i], sizeof(files[i]), "%s.%d", job->file, i);
		jobs[i] = *job;
		jobs[i].file = files[i];
		if (pthread_create(&threads[i], NULL, run, &jobs[i]))
			abort();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void run_child(struct job *job)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		run(job);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

static void on_alarm(int number)
{
	main_work(number);
}

static void signals(long microseconds)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval every = { { 0, microseconds }, { 0, microseconds } };
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void say_and_wait(void)
{
	puts("waiting");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *what = argv[i];
		if (!strcmp(what, "wait")) {
			say_and_wait();
		} else if (!strcmp(what, "signals") || !strcmp(what, "quiet")) {
			signals(what[0] == 's' ? 1000 : 0);
		} else if (!strcmp(what, "births")) {
			births = BIRTHS;
		} else if (!strcmp(what, "calls") && i + 1 < argc) {
			for (long k = atol(argv[++i]); k > 0; k--)
				main_work(k);
		} else if ((!strcmp(what, "missing") || !strcmp(what, "keep")) && i + 1 < argc) {
			if (!dlopen(argv[++i], RTLD_NOW) == (what[0] == 'k'))
				return 3;
		} else if (i + 3 < argc) {
			struct job job = { .file = argv[i + 1],
					   .rounds = atol(argv[i + 2]),
					   .calls = atol(argv[i + 3]),
					   .spaces = !strcmp(what, "spaces") };
			if (!strcmp(what, "threads"))
				run_threads(&job);
			else if (!strcmp(what, "fork"))
				run_child(&job);
			else
				run(&job);
			fprintf(stderr, "same place %ld times\n", job.same);
			i += 3;
		} else {
			return 2;
		}
	}
	return 0;
}
