/* SPDX-License-Identifier: MIT */
/*
 * `fay top`: which processes make most system calls, which functions of one are called most and how
 * long they take, and what calls these. Each view is a query that is traced while it is shown, and
 * that stands below it.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "trace/session/session.h"

#include "parts.h"
#include "top.h"

#define BUDGET "5%" /* as of `fay trace` */

static volatile sig_atomic_t over;

static struct fay_top_view *interrupted;

static void on_signal(int number)
{
	over = number;
	if (interrupted->tracer) /* may be attaching */
		fay_tracer_stop(interrupted->tracer);
}

/* What keys there are; false: the end. */
static bool take_keys(struct fay_top_screen *screen, bool *pressed)
{
	int key;
	while ((key = fay_top_screen_key()) >= 0) {
		*pressed = true;
		if (!fay_top_key(screen, key))
			return false;
	}
	return true;
}

/* Until a key is pressed, or a picture is there; false: the end. */
static bool wait_for_change(struct fay_top_screen *screen, struct fay_top_watch *watch)
{
	struct fay_top_view *view = screen->view;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	uint64_t picture = view->table.picture;
	bool failed = view->failed, pressed = false;
	while (!over && !pressed && view->table.picture == picture && view->failed == failed) {
		fay_top_view_wait(view, &watch->word, watch->seen);
		uint32_t now = __atomic_load_n(&watch->word, __ATOMIC_ACQUIRE);
		/* a signal may be a new size, which is a key */
		bool ready = poll(&input, 1, view->tracer || view->failed != failed ? 0 : -1) > 0;
		if (ready && (input.revents & (POLLHUP | POLLERR)))
			return false; /* the terminal is gone */
		if (!take_keys(screen, &pressed))
			return false;
		fay_top_watch_seen(watch, now);
	}
	return !over;
}

static int show(struct fay_top_view *view, struct fay_error *error)
{
	struct fay_top_screen screen = { .view = view };
	struct fay_top_watch watch;
	if (fay_top_watch_begin(&watch, error))
		return error->code;
	if (fay_top_screen_begin(error)) {
		fay_top_watch_end(&watch);
		return error->code;
	}
	interrupted = view;
	fay_cli_catch_ends(on_signal);
	fay_top_view_ask(view);
	fay_top_screen_draw(&screen);
	fay_top_view_open(view);
	do
		fay_top_screen_draw(&screen);
	while (wait_for_change(&screen, &watch));
	fay_top_watch_end(&watch);
	fay_top_screen_end();
	fay_top_view_close(view);
	fay_top_screen_forget(&screen);
	return FAY_OK;
}

static const char usage[] =
	"usage: fay top [-p PID | --comm NAME] [--budget 5% | --budget none]\n"
	"  processes by their system calls; Enter shows the functions of one, with rates\n"
	"  and latencies, and then the stacks by which one of these is called. With -p it\n"
	"  begins with the functions. Each view has the query behind it below.\n"
	"  Enter, Esc: into a row, and back; arrows: choose; s: sort by the next column;\n"
	"  f: other functions, such as libc!* or those of all libraries, *!*;\n"
	"  /: filter; p: pause; w: save as CSV; q: quit\n";

/* -1: go on. */
static int read_options(struct fay_top_view *view, pid_t *pid, const char **comm, int argc,
			char **argv)
{
	static const struct option options[] = { { "pid", required_argument, NULL, 'p' },
						 { "comm", required_argument, NULL, 'c' },
						 { "budget", required_argument, NULL, 'B' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	const char *budget = getenv("FAY_BUDGET");
	int option;
	char *end;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "p:h", options)) != -1) {
		if (option == 'h' || option == '?') {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? FAY_OK : FAY_E_USAGE;
		}
		if (option == 'c') {
			*comm = optarg;
			view->comm_count = 1;
			continue;
		}
		if (option == 'B') {
			budget = optarg;
			continue;
		}
		*pid = (pid_t)strtol(optarg, &end, 10);
		view->pid_count = 1;
		if (*pid <= 0 || *end || fay_process_of_thread(*pid) != *pid) {
			fprintf(stderr, "fay: there is no process %s\n", optarg);
			return FAY_E_REFUSED;
		}
	}
	if (fay_trace_read_budget(budget ? budget : BUDGET, &view->budget))
		fprintf(stderr, "fay top: '%s' is no budget such as 2%% or none\n", budget);
	else if (optind == argc && !(view->pid_count && view->comm_count))
		return -1;
	fputs(usage, stderr);
	return FAY_E_USAGE;
}

int fay_top_main(int argc, char **argv)
{
	pid_t pid = 0;
	const char *comm = NULL;
	struct fay_top_view view = { .pids = &pid, .comms = &comm };
	struct fay_error error;
	int result = read_options(&view, &pid, &comm, argc, argv);
	if (result >= 0)
		return result;
	view.pid = pid;
	view.kind = pid ? FAY_TOP_FUNCTIONS : FAY_TOP_PROCESSES;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("fay top: it needs a terminal; `fay trace` writes to files\n", stderr);
		return FAY_E_REFUSED;
	}
	return show(&view, &error) ? fay_cli_fail(&error) : FAY_OK;
}
