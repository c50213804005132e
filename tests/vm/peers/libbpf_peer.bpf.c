/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The same questions as cost.sh asks Fay, as one would write them by hand with libbpf: entries
 * counted, returns counted, durations added up. Each processor counts in a place of its own of a
 * global array, which is what costs least there: no map is looked up.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define PROCESSORS 64 /* a power of two */

struct {
	__u64 events, nanoseconds, unused[6]; /* a cache line */
} counts[PROCESSORS];

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, __u64);
	__type(value, __u64);
} begun SEC(".maps");

SEC("fentry/__do_sys_getppid")
int BPF_PROG(entry)
{
	counts[bpf_get_smp_processor_id() & (PROCESSORS - 1)].events++;
	return 0;
}

SEC("fexit/__do_sys_getppid")
int BPF_PROG(leave)
{
	counts[bpf_get_smp_processor_id() & (PROCESSORS - 1)].events++;
	return 0;
}

SEC("fentry/__do_sys_getppid")
int BPF_PROG(duration_entry)
{
	__u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns();

	bpf_map_update_elem(&begun, &thread, &now, BPF_ANY);
	return 0;
}

SEC("fexit/__do_sys_getppid")
int BPF_PROG(duration_leave)
{
	__u64 thread = bpf_get_current_pid_tgid(), now = bpf_ktime_get_ns(),
	      *since = bpf_map_lookup_elem(&begun, &thread);
	__u32 cpu = bpf_get_smp_processor_id() & (PROCESSORS - 1);

	if (!since)
		return 0;
	counts[cpu].events++;
	counts[cpu].nanoseconds += now - *since;
	bpf_map_delete_elem(&begun, &thread);
	return 0;
}

char license_text[] SEC("license") = "Dual MIT/GPL";
