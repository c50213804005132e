/* SPDX-License-Identifier: MIT */
/* `fay export`: saved traces for other programs. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/options/options.h"

#include "ctf_private.h"
#include "export.h"

static const char usage[] = "usage: fay export --ctf DIRECTORY SAVED.fay...\n";

static int export_files(struct fay_ctf *ctf, char **files, struct fay_error *error)
{
	uint64_t events;
	for (; *files; files++) {
		struct fay_saved *saved;
		if (fay_saved_open(*files, &saved, error))
			return error->code;
		if (fay_saved_cut_off(saved))
			fprintf(stderr,
				"fay: %s is truncated: its writer was killed or ran out of space; "
				"functions have no names\n",
				*files);
		if (fay_saved_header(saved)->events_lost)
			fprintf(stderr,
				"fay: %s: %" PRIu64 " events were lost while it was saved\n",
				*files, fay_saved_header(saved)->events_lost);
		int result = fay_ctf_add(ctf, saved, *files, error);
		fay_saved_close(saved);
		if (result)
			return result;
	}
	int result = fay_ctf_finish(ctf, &events, error);
	if (!result)
		fprintf(stderr, "fay: %" PRIu64 " event%s\n", events, events == 1 ? "" : "s");
	return result;
}

int fay_export_main(int argc, char **argv)
{
	static const struct option options[] = { { "ctf", required_argument, NULL, 'c' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	const char *directory = NULL;
	struct fay_ctf *ctf;
	struct fay_error error = { 0 };
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "h", options)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			printf("\n"
			       "  --ctf DIRECTORY  write the events of all saved traces, on one "
			       "timeline, as a\n"
			       "                   CTF trace, which babeltrace2 and Trace Compass "
			       "read\n");
			return FAY_OK;
		}
		if (option != 'c') {
			fputs(usage, stderr);
			return FAY_E_USAGE;
		}
		directory = optarg;
	}
	if (!directory || optind == argc) {
		fputs(usage, stderr);
		return FAY_E_USAGE;
	}
	int result = fay_ctf_create(directory, &ctf, &error);
	if (result)
		return fay_cli_fail(&error);
	result = export_files(ctf, argv + optind, &error);
	fay_ctf_destroy(ctf);
	return result ? fay_cli_fail(&error) : FAY_OK;
}
