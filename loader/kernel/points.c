/* SPDX-License-Identifier: MIT */
/* From the probes' patterns to functions of the kernel that can be traced; what cannot is kept with
 * the reason. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_private.h"
#include "loader/bisect.h"
#include "loader/names/target.h"
#include "loader/process/process.h"

int fay_kernel_take_probes(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_verdict *verdict = session->verdict;

	if (verdict->outcome != FAY_ACCEPTED)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image was not accepted by the verifier");
	if (verdict->probe_count > FAY_KERNEL_PROBES_MAX)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the image has %u probes; the kernel allows at most %u",
				     verdict->probe_count, FAY_KERNEL_PROBES_MAX);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		uint32_t can = facts->kind == FAY_PROBE_ENTRY    ? FAY_KERNEL_FIELDS_ENTRY
			       : facts->kind == FAY_PROBE_RETURN ? FAY_KERNEL_FIELDS_RETURN
								 : FAY_FIELDS_ALWAYS;

		if (facts->kind != FAY_PROBE_ENTRY && facts->kind != FAY_PROBE_RETURN &&
		    !fay_kernel_hosted(facts->kind))
			return fay_error_set(error, FAY_E_REFUSED,
					     "probe %u: the kernel has no probes of kind \"%s\"", i,
					     fay_probe_kind_name(facts->kind));
		if (fay_loader_check_cpu(facts, i, error))
			return error->code;
		if (facts->clobbered_vectors || facts->uses_mxcsr)
			return fay_error_set(error, FAY_E_REFUSED,
					     "probe %u uses vector registers, which the kernel's "
					     "programs do not have",
					     i);
		if (facts->event_fields & ~can)
			return fay_error_set(error, FAY_E_REFUSED,
					     "probe %u (%s) reads event.%s, which it does not have "
					     "in the kernel",
					     i, facts->pattern,
					     fay_event_field_name((unsigned)__builtin_ctz(
						     facts->event_fields & ~can)));
		session->probes[i] =
			(struct fay_kernel_probe){ .kind = facts->kind,
						   .code_offset = facts->code_offset,
						   .fields = facts->event_fields,
						   .clobbers = (uint16_t)facts->clobbered_gprs,
						   .arguments = (uint16_t)facts->arguments_used };
		session->periods[i] = facts->kind == FAY_PROBE_TIMER ? facts->parameter : 0;
	}
	session->probe_count = verdict->probe_count;
	return FAY_OK;
}

int fay_kernel_skip(struct fay_kernel_session *session, const char *name, const char *reason)
{
	if (session->skipped_count == session->skipped_room) {
		size_t room = session->skipped_room ? session->skipped_room * 2 : 64;
		struct fay_skipped_point *grown = realloc(session->skipped, room * sizeof(*grown));

		if (!grown)
			return -1;
		session->skipped = grown;
		session->skipped_room = room;
	}
	struct fay_skipped_point *one = &session->skipped[session->skipped_count++];
	snprintf(one->function, sizeof(one->function), FAY_KERNEL_MODULE_NAME "!%s", name);
	snprintf(one->reason, sizeof(one->reason), "%s", reason);
	return 0;
}

/* `globs`: of the probes, by number. */
static uint64_t matching(const struct fay_kernel_session *session, const struct fay_glob *globs,
			 const char *name)
{
	size_t length = strlen(name);
	uint64_t mask = 0;

	for (uint32_t i = 0; i < session->probe_count; i++)
		if (!fay_kernel_hosted(session->probes[i].kind) &&
		    fay_glob_match(&globs[i], name, length))
			mask |= UINT64_C(1) << i;
	return mask;
}

/* Every symbol that some pattern wants, each address once. */
static int find_points(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_kernel_symbols *symbols = session->symbols;
	struct fay_glob globs[FAY_KERNEL_PROBES_MAX];

	for (uint32_t i = 0; i < session->probe_count; i++)
		if (!fay_kernel_hosted(session->probes[i].kind))
			fay_glob_init(&globs[i], session->verdict->probes[i].pattern +
							 sizeof(FAY_KERNEL_MODULE_NAME));
	session->points = calloc(symbols->count + 1, sizeof(*session->points));
	for (size_t i = 0; session->points && i < symbols->count; i++) {
		const struct fay_kernel_symbol *symbol = &symbols->items[i];
		uint64_t mask = matching(session, globs, symbol->name);
		struct kernel_point *last =
			session->point_count ? &session->points[session->point_count - 1] : NULL;

		if (!mask)
			continue;
		if (symbol->in_module) {
			if (fay_kernel_skip(session, symbol->name,
					    "is in a loadable module, which could be unloaded "
					    "during the trace"))
				break;
		} else if (last && last->place.address == symbol->address) {
			last->probes |= mask;
		} else {
			session->points[session->point_count++] =
				(struct kernel_point){ .place = { symbol->address,
								  fay_name_hash(symbol->name) },
						       .name = symbol->name,
						       .probes = mask };
		}
	}
	if (!session->points)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (session->point_count > FAY_KERNEL_CHECK_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "%zu kernel functions match; at most %u can be examined",
				     session->point_count, FAY_KERNEL_CHECK_MAX);
	return FAY_OK;
}

/*
 * Functions that are not always left by a return: such calls would never end. They are those of
 * Linux 6.1 from which do_exit(), kthread_exit() or a processor's end can be reached by direct
 * calls (objdump of the image), or, for a processor's end, by pointers; without what follows a
 * fault of the kernel's own.
 */
static const char *const never_return[] = { "do_exit",
					    "do_group_exit",
					    "do_task_dead",
					    "make_task_dead",
					    "kthread_exit",
					    "kthread_complete_and_exit",
					    "__module_put_and_kthread_exit",
					    "kthread",
					    "__x64_sys_exit",
					    "__x64_sys_exit_group",
					    "__ia32_sys_exit",
					    "__ia32_sys_exit_group",
					    "__do_sys_exit_group",
					    "cryptomgr_probe",
					    "cryptomgr_test",
					    "panic",
					    "nmi_panic",
					    "__stack_chk_fail",
					    "stop_this_cpu",
					    "smp_stop_nmi_callback",
					    "__sysvec_reboot",
					    "cpu_startup_entry",
					    "start_secondary",
					    "rest_init",
					    "cpu_bringup_and_idle",
					    "machine_restart",
					    "machine_halt",
					    "machine_power_off",
					    "emergency_restart",
					    "native_machine_halt",
					    "machine_kexec",
					    NULL };
static const char *const end_tasks[] = { "x64_sys_call",
					 "ia32_sys_call",
					 "get_signal",
					 "arch_do_signal_or_restart",
					 "exit_to_user_mode_prepare",
					 "exit_to_user_mode_loop",
					 "syscall_exit_to_user_mode_work",
					 "syscall_enter_from_user_mode_work",
					 "syscall_trace_enter",
					 "__secure_computing",
					 "__seccomp_filter",
					 "emulate_vsyscall",
					 "call_usermodehelper_exec_async",
					 "io_wqe_worker",
					 "io_wq_worker",
					 "io_sq_thread",
					 "io_sqd_handle_event",
					 "reboot_pid_ns",
					 "__x64_sys_reboot",
					 "__ia32_sys_reboot",
					 "__do_sys_reboot",
					 NULL };
static const char *const end_processors[] = {
	"do_idle",           "arch_cpu_idle_dead", "native_play_dead",
	"xen_pv_play_dead",  "play_dead_common",   "resume_play_dead",
	"hlt_play_dead",     "mwait_play_dead",    "acpi_idle_play_dead",
	"cpuidle_play_dead", "tboot_shutdown",     NULL
};

/*
 * A machine wakes from S3 where do_suspend_lowlevel() left off, with the stack of then: what it had
 * called to write the sleep registers, and to read them until they take effect, is not returned
 * from. So does one from its image on disk (swsusp_save()).
 */
static const char *const sleep_in[] = { "x86_acpi_enter_sleep_state",
					"acpi_enter_sleep_state",
					"acpi_hw_sleep_dispatch",
					"acpi_hw_legacy_sleep",
					"acpi_hw_extended_sleep",
					"acpi_hw_write_pm1_control",
					"acpi_write",
					"acpi_hw_write",
					"acpi_hw_write_port",
					"acpi_os_write_port",
					"acpi_os_write_memory",
					"acpi_read_bit_register",
					"acpi_hw_register_read",
					"acpi_hw_read_multiple",
					"acpi_read",
					"acpi_hw_read",
					"acpi_hw_read_port",
					"acpi_os_read_port",
					"acpi_os_read_memory",
					"acpi_hw_get_bit_register_info",
					"acpi_hw_validate_register",
					"acpi_hw_validate_io_request",
					"acpi_hw_get_access_bit_width",
					"acpi_os_enter_sleep",
					"acpi_os_prepare_sleep",
					"tboot_sleep",
					"swsusp_save",
					"copy_data_pages",
					"copy_data_page",
					"safe_copy_page",
					"do_copy_page",
					NULL };

/* The compiler's copies of a function (`.constprop.0`) are meant, too. */
static bool is_among(const char *const *names, const char *name)
{
	size_t length = strcspn(name, ".");

	for (; *names; names++)
		if (strlen(*names) == length && !memcmp(*names, name, length))
			return true;
	return false;
}

static const char *no_return(const char *name)
{
	return is_among(never_return, name) ? "does not return"
	       : is_among(end_tasks, name)  ? "does not return if its task ends or is killed in it"
	       : is_among(end_processors, name) ? "does not return if its processor goes offline"
	       : is_among(sleep_in, name)       ? "does not return if the machine sleeps in it"
						: NULL;
}

/* The name in the source of what the compiler made of it (`.isra.0`, `.constprop.0`); but what it
 * has cut off a function (`.part.0`, `.cold`) is no other one of that name. */
static size_t source_name_length(const char *name)
{
	size_t length = strcspn(name, ".");

	return !strncmp(name + length, ".part.", 6) || !strncmp(name + length, ".cold", 5)
		       ? strlen(name)
		       : length;
}

static int by_source_name(const void *a, const void *b)
{
	const struct fay_kernel_symbol *const *x = a, *const *y = b;
	size_t length = source_name_length((*x)->name), other = source_name_length((*y)->name);
	int order = memcmp((*x)->name, (*y)->name, length < other ? length : other);

	return order ? order : (length > other) - (length < other);
}

/*
 * The kernel's own functions by their names, those left out whose name others have: BTF may have
 * such a name once, with the prototype of one of them, even one of which only copies are left.
 */
int fay_kernel_find_own_names(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_kernel_symbols *symbols = session->symbols;
	const struct fay_kernel_symbol **names = calloc(symbols->count + 1, sizeof(*names));
	size_t count = 0, until;

	if (!names)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; i < symbols->count; i++)
		if (!symbols->items[i].in_module)
			names[count++] = &symbols->items[i];
	qsort(names, count, sizeof(*names), by_source_name);
	for (size_t from = 0; from < count; from = until) {
		bool one = true;

		for (until = from + 1;
		     until < count && !by_source_name(&names[from], &names[until]); until++)
			one &= names[until]->address == names[from]->address;
		if (one)
			names[session->own_name_count++] = names[from];
	}
	session->own_names = names;
	return FAY_OK;
}

static bool is_own_name(const struct fay_kernel_session *session,
			const struct fay_kernel_symbol *symbol)
{
	return bsearch(&symbol, session->own_names, session->own_name_count, sizeof(symbol),
		       by_source_name) != NULL;
}

/* By any name that the function alone has: system calls have several, and BTF knows one. */
static bool find_prototype(const struct fay_kernel_session *session, uint64_t address,
			   struct fay_kernel_prototype *prototype)
{
	const struct fay_kernel_symbols *symbols = session->symbols;
	size_t at = FAY_COUNT_BELOW(symbols->items, symbols->count, address, address);
	bool found = false;

	for (; !found && at < symbols->count && symbols->items[at].address == address; at++)
		found = is_own_name(session, &symbols->items[at]) &&
			fay_kernel_btf_prototype(session->btf, symbols->items[at].name, prototype);
	return found;
}

const char *fay_kernel_return_refusal(struct fay_kernel_session *session,
				      struct kernel_point *point)
{
	const char *reason = no_return(point->name);

	if (reason)
		return reason;
	if (find_prototype(session, point->place.address, &point->prototype))
		return NULL;
	return "its return cannot be traced: the kernel's BTF does not say which arguments it "
	       "takes on the stack";
}

uint64_t fay_kernel_return_probes(const struct fay_kernel_session *session)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < session->probe_count; i++)
		if (session->probes[i].kind == FAY_PROBE_RETURN)
			mask |= UINT64_C(1) << i;
	return mask;
}

/* What ftrace cannot trace, or whose return cannot be. */
static int judge_points(struct fay_kernel_session *session, struct fay_error *error)
{
	size_t count = session->point_count, kept = 0;
	uint64_t returns = fay_kernel_return_probes(session),
		 *addresses = calloc(count + 1, sizeof(*addresses));
	uint8_t *answers = calloc(count + 1, 1);
	struct fay_kernel_check check = { (uint64_t)addresses, (uint64_t)answers, (uint32_t)count,
					  0 };
	int result =
		addresses && answers ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; !result && i < count; i++)
		addresses[i] = session->points[i].place.address;
	if (!result && count && ioctl(session->device, FAY_KERNEL_CHECK, &check))
		result = errno == ENODEV
				 ? fay_error_set(error, FAY_E_REFUSED,
						 FAY_KERNEL_FTRACE_DEAD
						 "; until the next boot no functions are traced")
				 : fay_error_set(error, FAY_E_INTERNAL,
						 "fay.ko does not say what can be traced: %s",
						 strerror(errno));
	for (size_t i = 0; !result && i < count; i++) {
		struct kernel_point *point = &session->points[i];
		const char *reason =
			!answers[i] ? "has no hotpatch point (notrace, inlined code, or assembly)"
			: point->probes & returns ? fay_kernel_return_refusal(session, point)
						  : NULL;

		if (!reason)
			session->points[kept++] = *point;
		else if (fay_kernel_skip(session, point->name, reason))
			result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	free(addresses);
	free(answers);
	session->point_count = kept;
	if (!result && kept > FAY_KERNEL_POINTS_MAX)
		result = fay_error_set(
			error, FAY_E_LIMIT,
			"%zu kernel functions match; at most %u can be traced at once", kept,
			FAY_KERNEL_POINTS_MAX);
	return result;
}

static int no_match(const struct fay_kernel_session *session, struct fay_error *error)
{
	for (uint32_t i = 0; i < session->probe_count; i++)
		if (!fay_kernel_hosted(session->probes[i].kind) && session->skipped_count)
			return fay_error_set(
				error, FAY_E_REFUSED,
				"no kernel function that matches `%s` can be traced: %s: %s",
				session->verdict->probes[i].pattern, session->skipped[0].function,
				session->skipped[0].reason);
		else if (!fay_kernel_hosted(session->probes[i].kind))
			return fay_error_set(error, FAY_E_USAGE, "no kernel function matches `%s`",
					     session->verdict->probes[i].pattern);
	return fay_error_set(error, FAY_E_USAGE, "the image has no probe at a kernel function");
}

int fay_kernel_find_points(struct fay_kernel_session *session, struct fay_error *error)
{
	int result = find_points(session, error);

	if (!result && session->allowed.functions) {
		result = fay_kernel_judge_allowed(session, error);
	} else if (!result) {
		if (fay_kernel_return_probes(session))
			result = fay_kernel_find_own_names(session, error);
		if (!result)
			result = judge_points(session, error);
	}
	return result || session->point_count ? result : no_match(session, error);
}
