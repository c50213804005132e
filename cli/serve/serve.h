/* SPDX-License-Identifier: MIT */
/* `fay serve`: results of queries over HTTP, for Prometheus and browsers. */
#ifndef FAY_CLI_SERVE_H
#define FAY_CLI_SERVE_H

/* main()'s arguments from the subcommand's name on. */
int fay_serve_main(int argc, char **argv);

#endif
