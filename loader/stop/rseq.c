/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences (rseq(2), Linux 4.18). A thread that enters a section stores the address of
 * its descriptor (struct rseq_cs) in memory that the kernel knows. When the thread was preempted
 * and is to go on within the section, the kernel sends it to the section's abort handler; when it
 * is to go on anywhere else, the kernel forgets the section.
 *
 * So a thread that a stop has caught in a section must not be given another place, be it to run a
 * system call there: the kernel would forget the section, and the thread, back in it, would end it
 * as if nobody had come between. It goes to its abort handler first. That is what the kernel would
 * have done: a thread that stops is one that was preempted.
 */
#include "stop_private.h"

#include <linux/rseq.h>
#include <stddef.h>
#include <sys/ptrace.h>

/* struct ptrace_rseq_configuration of linux/ptrace.h, which does not go with sys/ptrace.h; Linux
 * 5.13. */
#define GET_RSEQ_CONFIGURATION 0x420f
struct rseq_configuration {
	uint64_t area; /* struct rseq; 0: none is registered */
	uint32_t size, signature, flags, pad;
};

/* As the kernel looks at them (rseq_get_rseq_cs()). */
bool fay_rseq_is_valid(const struct rseq_cs *section)
{
	return section->version == 0 && section->post_commit_offset &&
	       section->start_ip + section->post_commit_offset > section->start_ip &&
	       section->abort_ip - section->start_ip >= section->post_commit_offset;
}

/* The section that the thread is in. *at: where its descriptor's address is. */
static bool section_of(const struct fay_stop *stop, const struct fay_stopped_thread *thread,
		       uint64_t *at, struct rseq_cs *section)
{
	struct rseq_configuration configuration = { 0 };
	uint64_t descriptor = 0;
	uint32_t signature;

	if (ptrace((enum __ptrace_request)GET_RSEQ_CONFIGURATION, thread->tid,
		   sizeof(configuration), &configuration) < 0 ||
	    !configuration.area)
		return false;
	*at = configuration.area + offsetof(struct rseq, rseq_cs);
	if (fay_stop_read(stop, *at, &descriptor, sizeof(descriptor)) || !descriptor ||
	    fay_stop_read(stop, descriptor, section, sizeof(*section)))
		return false;
	return fay_rseq_is_valid(section) &&
	       thread->registers.rip - section->start_ip < section->post_commit_offset &&
	       !fay_stop_read(stop, section->abort_ip - sizeof(signature), &signature,
			      sizeof(signature)) &&
	       signature == configuration.signature;
}

void fay_rseq_abort(struct fay_stop *stop)
{
	const uint64_t none = 0;

	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];
		struct rseq_cs section;
		uint64_t at;

		/* Sections make no system calls, and most threads wait in one. */
		if (thread->gone || !thread->stopped || (int64_t)thread->registers.orig_rax >= 0 ||
		    !section_of(stop, thread, &at, &section))
			continue;
		thread->registers.rip = section.abort_ip;
		if (ptrace(PTRACE_SETREGS, thread->tid, 0, &thread->registers) == 0)
			fay_stop_write(stop, at, &none, sizeof(none));
	}
}
