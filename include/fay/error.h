/* SPDX-License-Identifier: MIT */
/*
 * One error type for everything fallible outside the verifier (whose results are values of their
 * own).
 *
 * The caller owns the `struct fay_error`; a function that can fail takes it last, returns 0 on
 * success and the error's code otherwise, and fills the message only when it fails. The codes are
 * the exit codes of the `fay` command.
 */
#ifndef FAY_ERROR_H
#define FAY_ERROR_H

#include <stdarg.h>
#include <stdio.h>

enum fay_error_code {
	FAY_OK = 0,
	FAY_E_REFUSED = 1,  /* rejected by the verifier, or the query cannot run here */
	FAY_E_USAGE = 2,    /* the caller's words are off: syntax, unknown name, bad option */
	FAY_E_LIMIT = 3,    /* a named limit was hit: time, memory, size */
	FAY_E_INTERNAL = 4, /* a failure that should not happen: system call, library */
};

struct fay_error {
	enum fay_error_code code;
	char message[2048]; /* UTF-8, no trailing newline; may hold several lines */
};

/* Fills *err and returns `code`, so that callers write `return fay_error_set(err, ...)`. err may be
 * NULL. */
static inline int __attribute__((format(printf, 3, 4)))
fay_error_set(struct fay_error *err, enum fay_error_code code, const char *format, ...)
{
	if (err) {
		va_list args;
		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
	}
	return (int)code;
}

#endif
