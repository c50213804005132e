/* SPDX-License-Identifier: MIT */
/* What /proc says of a thread. A process's own number is that of its first thread. */
#ifndef FAY_LOADER_THREAD_H
#define FAY_LOADER_THREAD_H

#include <sys/types.h>

/* The number behind `name` ("Seccomp:") in /proc/PID/task/TID/status; -1: not there. */
long fay_thread_field(pid_t pid, pid_t tid, const char *name);
/* 'R', 'S', 'Z' ... (proc(5)); 0: gone. */
char fay_thread_state(pid_t pid, pid_t tid);
/* "?" if the process is gone. */
void fay_process_comm(pid_t pid, char comm[64]);
/* A thread's id as the process itself sees it. */
pid_t fay_inner_id(pid_t pid, pid_t tid);

#endif
