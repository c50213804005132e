/* SPDX-License-Identifier: MIT */
/* Random queries over saved traces. */
#ifndef FAY_TESTS_QUERY_RANDOM_SAVED_H
#define FAY_TESTS_QUERY_RANDOM_SAVED_H

/* So many, each over five files that were saved in one way. Returns how many pairs there were. */
unsigned run_saved_queries(unsigned queries);

#endif
