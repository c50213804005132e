/* SPDX-License-Identifier: MIT */
/* What the kernel says of a process, from outside: /proc and the clocks. */
#ifndef FAY_LOADER_PROCESS_H
#define FAY_LOADER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fay/error.h"
#include "fay/facts.h"
#include "fay/loader.h"

/* --- cpu.c --- */
/* Whether this machine has the instructions that a probe needs; else the error says which are
 * missing. */
int fay_loader_check_cpu(const struct fay_probe_facts *facts, uint32_t probe,
			 struct fay_error *error);
/* --- thread.c. A process's own number is that of its first thread. --- */
/* The first size - 1 bytes of /proc/PID/name, with a zero behind; their number, 0: cannot be
 * read. */
size_t fay_proc_read(pid_t pid, const char *name, char *buffer, size_t size);
/* The number behind `name` ("Seccomp:") in /proc/PID/task/TID/status; -1: not there. */
long fay_thread_field(pid_t pid, pid_t tid, const char *name);
/* 'R', 'S', 'Z' ... (proc(5)); 0: gone. */
char fay_thread_state(pid_t pid, pid_t tid);
/* Whether it is a worker of the kernel's (io_uring, vhost), which is listed among the program's
 * threads and runs none of its code. */
bool fay_thread_is_worker(pid_t pid, pid_t tid);
/* Now, as fay_process_start() counts: clock ticks since the machine was started. */
uint64_t fay_ticks_now(void);
/* The first thread, or, where that has ended and given its memory back, another one that has it
 * still; 0: there is none. By its number /proc has the process's memory. */
pid_t fay_process_thread(pid_t pid);
/* Whether the process has ended, or given its memory back on its way there. */
bool fay_process_gone(pid_t pid);
/* Opens the process's memory; -1: errno says why not. */
int fay_process_memory(pid_t pid, int flags);
/* Where its heap (brk(2)) begins, or will; 0: that may not be known. */
uint64_t fay_process_heap(pid_t pid);
/* What the kernel told the program of these types (getauxval(3)); 0 where there is none. False: it
 * cannot be read. */
bool fay_process_auxiliary(pid_t pid, const uint64_t *types, uint64_t *values, size_t count);
/* "?" if the process is gone. */
void fay_process_comm(pid_t pid, char comm[64]);
/* A thread's id as the process itself sees it. */
pid_t fay_inner_id(pid_t pid, pid_t tid);

/* --- maps.c: /proc/PID/maps as a table, and holes in it --- */
struct fay_map {
	uint64_t start, end;
	uint64_t device, inode;
	char permissions[5];
	char name[80]; /* truncated; "" anonymous */
};
struct fay_maps {
	struct fay_map *items;
	size_t count;
	uint64_t heap; /* where a heap that there is not yet will begin: fay_maps_note_heap(); 0 */
};

int fay_maps_read(pid_t pid, struct fay_maps *maps, struct fay_error *error);
/* For fay_maps_hole(), which otherwise knows of heaps that have begun only. */
void fay_maps_note_heap(struct fay_maps *maps, pid_t pid);
void fay_maps_deinit(struct fay_maps *maps);
const struct fay_map *fay_maps_find(const struct fay_maps *maps, uint64_t address);
/* A free range of `size` bytes that reaches [low, high) by rel32 in both directions; 0: none. low
 * == high == 0: anywhere. */
uint64_t fay_maps_hole(const struct fay_maps *maps, uint64_t size, uint64_t low, uint64_t high);

/* --- clock.c --- */
/* Of CLOCK_MONOTONIC. */
uint64_t fay_loader_clock_ns(void);
/* event.time = (tsc * multiplier >> 32) + offset. Waits 20 ms if no reading of the last two seconds
 * was kept. */
void fay_clock_calibrate(uint64_t *multiplier, uint64_t *offset);
/* Keeps a reading for that now and then; to be called again and again while a session lives. */
void fay_clock_keep(void);

#endif
