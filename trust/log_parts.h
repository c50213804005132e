/* SPDX-License-Identifier: MIT */
/* Between log.c, which writes the log, and log_read.c, which reads it: what a line is, and what
 * binds it to those before it. */
#ifndef FAY_TRUST_LOG_PARTS_H
#define FAY_TRUST_LOG_PARTS_H

#include "trust.h"

#define FAY_LOG_SCHEME "fay-log-1"
#define FAY_LOG_LINE_MAX 4096u /* bytes, the end among them */
#define FAY_LOG_HEAD_SIZE (20u + 1 + 20 + 1 + FAY_LOG_HASH_HEX + 1)

/* Takes up one more line, `size` bytes with its end, whether it is an entry or not. */
void fay_log_chain(struct fay_log_state *state, const char *line, size_t size);
/* A line without its end, which is cut into its words. False: it is no entry. */
bool fay_log_parse(char *line, struct fay_log_line *entry);
/* "NUMBER SIZE HASH\n", what FILE.head has; each number of 20 digits. */
void fay_log_head_write(char text[FAY_LOG_HEAD_SIZE + 1], const struct fay_log_state *state);
bool fay_log_head_read(const char *text, size_t size, struct fay_log_state *state);

#endif
