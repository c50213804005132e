/* SPDX-License-Identifier: MIT */
/* The `fay cc` command. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "front_private.h"

struct request {
	const char *source, *output;
	struct fay_compile_options options;
	bool assembly, extension, tuned; /* tuned: as only an extension can be */
	unsigned report;
	const char *extra[64];
	unsigned extra_count;
};

static void print_usage(FILE *out)
{
	fputs("usage: fay cc PROBE.c -o IMAGE [-g] [-S] [-march=ARCH] [--report] [--confined]\n"
	      "              [-I DIR] [-D NAME[=VALUE]]\n"
	      "       fay cc --extension SOURCE.c -o IMAGE [-I DIR] [-D NAME[=VALUE]]\n"
	      "              [-O1 | -O2 | -O3 | -Os] [-fno-ivopts]\n"
	      "\n"
	      "Compiles a probe written in C (#include <fay/probe.h>) to a guarded native\n"
	      "image.\n"
	      "\n"
	      "  -o IMAGE   the image to write\n"
	      "  -g         line information, so that a refusal by the verifier names source\n"
	      "             lines\n"
	      "  -march=ARCH  vectorise loops for x86-64, x86-64-v2 or x86-64-v3; general: no\n"
	      "             vector registers at all (default: general, and x86-64 without\n"
	      "             vectorising where the source has floating point)\n"
	      "  -S         write the guarded code as assembly instead of an image, each guard\n"
	      "             with a comment that says why\n"
	      "  --report   say how many guards and fuel counters were inserted\n"
	      "  --confined guards that hold on mispredicted paths, too (policy `speculation:\n"
	      "             confined`)\n"
	      "  --extension  an extension for a host of its own (#include\n"
	      "             <fay/host/entry.h>), without guards; `fay verify --interface FILE\n"
	      "             --certify` proves what it does\n"
	      "  -O1 -O2 -O3 -Os  of an extension: how it is optimised (default: -O2)\n"
	      "  -fno-ivopts  of an extension: loops keep their counters as written, where a\n"
	      "             bound is not found otherwise\n",
	      out);
}

/* What only an extension may be told, as clang calls it. */
static bool take_tuning(struct request *r, const char *a)
{
	static const char *const levels[] = { "-O1", "-O2", "-O3", "-Os" };

	if (r->extra_count + 2 > 64)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(a, levels[i])) {
			r->extra[r->extra_count++] = a;
			/* the level would ask for vectors again */
			r->extra[r->extra_count++] = "-fno-vectorize";
			return r->tuned = true;
		}
	if (strcmp(a, "-fno-ivopts"))
		return false;
	r->extra[r->extra_count++] = "-mllvm";
	r->extra[r->extra_count++] = "-disable-lsr";
	return r->tuned = true;
}

/* Takes one argument; returns how many words it used, 0 for a mistake. */
static int take(struct request *r, int left, char **at)
{
	const char *a = at[0];

	if (!strcmp(a, "-o") && left > 1) {
		r->output = at[1];
		return 2;
	}
	if ((!strcmp(a, "-I") || !strcmp(a, "-D")) && left > 1 && r->extra_count + 2 <= 64) {
		r->extra[r->extra_count++] = a;
		r->extra[r->extra_count++] = at[1];
		return 2;
	}
	if ((!strncmp(a, "-I", 2) || !strncmp(a, "-D", 2)) && a[2] && r->extra_count < 64)
		r->extra[r->extra_count++] = a;
	else if (!strcmp(a, "-g"))
		r->options.debug_lines = 1;
	else if (!strncmp(a, "-march=", 7)) {
		r->options.march = a + 7;
		if (strcmp(a + 7, "general") && r->extra_count < 64)
			r->extra[r->extra_count++] = a;
	} else if (!strcmp(a, "-S"))
		r->assembly = true;
	else if (!strcmp(a, "--report"))
		r->report = 1;
	else if (!strcmp(a, "--extension"))
		r->extension = true;
	else if (!strcmp(a, "--confined"))
		r->options.confined = 1;
	else if (take_tuning(r, a))
		return 1;
	else if (a[0] != '-' && !r->source)
		r->source = a;
	else
		return 0;
	return 1;
}

/* The whole file or none: written beside the target and renamed. A target that is not a file (a
 * pipe) is written to as it is. */
static int write_output(const char *path, const struct fay_buffer *b, struct fay_error *error)
{
	char temporary[4096];
	struct stat st;
	bool plain = !stat(path, &st) && !S_ISREG(st.st_mode);
	size_t done = 0;
	int fd;

	if (snprintf(temporary, sizeof(temporary), plain ? "%s" : "%s.XXXXXX", path) >=
	    (int)sizeof(temporary))
		return fay_error_set(error, FAY_E_USAGE, "%s: name too long", path);
	fd = plain ? open(path, O_WRONLY | O_CLOEXEC) : mkstemp(temporary);
	if (fd < 0)
		return fay_error_set(error, FAY_E_INTERNAL, "%s: %s", path, strerror(errno));
	while (done < b->size) {
		ssize_t n = write(fd, (char *)b->data + done, b->size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		done += (size_t)n;
	}
	if (done == b->size && !plain)
		fchmod(fd, 0644);
	if (close(fd) || done < b->size || (!plain && rename(temporary, path))) {
		int saved = errno;

		if (!plain)
			unlink(temporary);
		return fay_error_set(error, FAY_E_INTERNAL, "%s: %s", path, strerror(saved));
	}
	return 0;
}

int fay_cc_main(int argc, char **argv)
{
	struct request r = { .options = { .size = sizeof(r.options) } };
	struct fay_buffer image, assembly;
	struct fay_error error = { 0 };
	int result;

	for (int i = 1, used; i < argc; i += used) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_usage(stdout);
			return 0;
		}
		used = take(&r, argc - i, argv + i);
		if (!used) {
			fprintf(stderr, "fay cc: unexpected argument %s\n", argv[i]);
			print_usage(stderr);
			return FAY_E_USAGE;
		}
	}
	if (!r.source || !r.output) {
		fprintf(stderr, "fay cc: %s\n",
			r.source ? "-o IMAGE is missing" : "no source file");
		print_usage(stderr);
		return FAY_E_USAGE;
	}
	if (r.extension && (r.assembly || r.report || r.options.debug_lines || r.options.march ||
			    r.options.confined)) {
		fprintf(stderr, "fay cc: --extension takes -o, -I, -D, -O and -fno-ivopts only\n");
		return FAY_E_USAGE;
	}
	if (r.tuned && !r.extension) {
		fprintf(stderr, "fay cc: -O and -fno-ivopts are for --extension only\n");
		return FAY_E_USAGE;
	}
	fay_buffer_init(&image);
	fay_buffer_init(&assembly);
	if (r.extension)
		result = fay_source_extension(r.source, r.extra, r.extra_count, r.output, &error);
	else
		result = fay_source_compile(r.source, &r.options, r.report, r.extra, r.extra_count,
					    &image, r.assembly ? &assembly : NULL, &error);
	if (!result && !r.extension)
		result = write_output(r.output, r.assembly ? &assembly : &image, &error);
	if (result)
		/* a place says it all */
		fprintf(stderr, "%s%s\n",
			strchr(error.message, '|') ? "" : "fay cc: ", error.message);
	fay_buffer_deinit(&image);
	fay_buffer_deinit(&assembly);
	return result;
}
