/* SPDX-License-Identifier: MIT */
/* Stops a child of the test, and runs a system call in it. */
#ifndef FAY_TESTS_LOADER_STOPPING_H
#define FAY_TESTS_LOADER_STOPPING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "loader/stop/stop.h"

void stop_child(pid_t child, struct fay_stop *stopped);
/* getpid() in the stopped child: fay_stop_syscall()'s answer. */
int stop_borrow(struct fay_stop *stopped, struct fay_error *error);

#endif
