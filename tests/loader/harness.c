/* SPDX-License-Identifier: MIT */
/* See harness.h. Starts only its own target program and ends it by closing its standard input. */
#include "harness.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verifier/image/sha256.h"

void victim_start(struct victim *victim)
{
	victim_start_program(victim, TARGET_PROGRAM);
}

void victim_start_program(struct victim *victim, const char *program)
{
	int in[2], out[2];

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	victim->pid = fork();
	if (victim->pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[0]), close(in[1]), close(out[0]), close(out[1]);
		execl(program, program, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	victim->to = fdopen(in[1], "w");
	victim->from = fdopen(out[0], "r");
	victim_ask(victim, "checksum"); /* it is up */
}

void victim_end(struct victim *victim)
{
	int status;

	fclose(victim->to);
	assert_int_equal(waitpid(victim->pid, &status, 0), victim->pid);
	fclose(victim->from);
	if (WIFSIGNALED(status))
		fail_msg("the target died of signal %d", WTERMSIG(status));
	assert_int_equal(status, 0);
}

static void tell(struct victim *victim, const char *format, va_list args)
{
	vfprintf(victim->to, format, args);
	fputc('\n', victim->to);
	fflush(victim->to);
}

void victim_tell(struct victim *victim, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(victim, format, args);
	va_end(args);
}

uint64_t victim_answer(struct victim *victim)
{
	if (!fgets(victim->answer, sizeof(victim->answer), victim->from)) {
		int status = 0;

		waitpid(victim->pid, &status, 0);
		fail_msg("the target is gone, wait status %#x", status);
	}
	return strtoull(victim->answer, NULL, 10);
}

uint64_t victim_ask(struct victim *victim, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell(victim, format, args);
	va_end(args);
	return victim_answer(victim);
}

#define CODE_AT 64u
#define REG(name) (1u << FAY_##name)
#define CALLER_SAVED                                                                               \
	(REG(RAX) | REG(RCX) | REG(RDX) | REG(RSI) | REG(RDI) | REG(R8) | REG(R9) | REG(R10) |     \
	 REG(R11))

extern const uint8_t probe_count[], probe_count_end[], probe_slow[], probe_slow_end[],
	probe_greedy[], probe_greedy_end[], probe_event[], probe_event_end[], probe_emit[],
	probe_emit_end[];

static const struct {
	const uint8_t *code, *end;
	uint32_t clobbered, arguments, fields, helpers;
} hand_probes[] = {
	[PROBE_COUNT] = { probe_count, probe_count_end, 0, REG(RSI), 0, 0 },
	[PROBE_SLOW] = { probe_slow, probe_slow_end, CALLER_SAVED & ~REG(RSI), REG(RSI), 0, 0 },
	[PROBE_GREEDY] = { probe_greedy, probe_greedy_end, REG(RSI) | REG(RDI) | REG(RDX),
			   REG(RSI) | REG(RDX), 0, 0 },
	[PROBE_EVENT] = { probe_event, probe_event_end, REG(RAX) | REG(RCX), REG(RSI) | REG(RDI),
			  0x1ffff & ~FAY_FIELD_RETVAL, 0 },
	[PROBE_EMIT] = { probe_emit, probe_emit_end, CALLER_SAVED & ~REG(RSI), REG(RSI) | REG(RDI),
			 FAY_FIELD_ARG0 | FAY_FIELD_TID, 1 },
};

void hand_verdict(struct hand_verdict *hand, enum hand_probe which, const char *pattern)
{
	struct fay_layout *layout = &hand->verdict.layout;

	memset(hand, 0, sizeof(*hand));
	hand->verdict.outcome = FAY_ACCEPTED;
	layout->bytes = hand->bytes;
	layout->code_offset = CODE_AT;
	layout->code_size = (uint32_t)(hand_probes[which].end - hand_probes[which].code);
	layout->size = CODE_AT + layout->code_size;
	memcpy(hand->bytes + CODE_AT, hand_probes[which].code, layout->code_size);
	if (hand_probes[which].helpers) {
		layout->slot_count = 1;
		layout->slots[0].offset = 0;
		layout->slots[0].helper = FAY_HELPER_EMIT;
		hand->states[0] = (struct fay_schema_state){ .name = "rows",
							     .kind = FAY_STATE_STREAM,
							     .scope = FAY_SCOPE_LOCAL,
							     .rows = 1,
							     .row_size = 96 };
		hand->verdict.schema.states = hand->states;
		hand->verdict.schema.state_count = 1;
	}
	fay_sha256(layout->bytes, layout->size, layout->sha256);
	hand->verdict.schema.local_size = 256;
	hand->verdict.schema.global_size = 64;
	hand->verdict.probes = hand->probes;
	hand->probes[0] = (struct fay_probe_facts){ .pattern = pattern,
						    .kind = FAY_PROBE_ENTRY,
						    .code_offset = CODE_AT,
						    .event_fields = hand_probes[which].fields,
						    .clobbered_gprs = hand_probes[which].clobbered,
						    .arguments_used = hand_probes[which].arguments,
						    .helpers = hand_probes[which].helpers };
	hand->verdict.probe_count = 1;
}

void hand_verdict_also(struct hand_verdict *hand, const char *pattern)
{
	struct fay_probe_facts *facts = &hand->probes[hand->verdict.probe_count++];

	*facts = hand->probes[0];
	facts->pattern = pattern;
}

uint32_t slots_used(struct fay_session *session)
{
	size_t size;

	return fay_session_shm(session, &size)->slot_next;
}

static struct fay_slot_header *slot_at(struct fay_session *session, uint32_t slot)
{
	size_t size;
	struct fay_shm_control *shm = fay_session_shm(session, &size);

	assert_true(slot < shm->slot_max);
	return (void *)((char *)shm + shm->slots_offset + slot * shm->slot_stride);
}

uint64_t *local_of(struct fay_session *session, uint32_t slot)
{
	return (uint64_t *)((char *)slot_at(session, slot) + FAY_SLOT_HEADER);
}

uint64_t total(struct fay_session *session, uint32_t pid)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slots_used(session); i++)
		if (!pid || slot_at(session, i)->pid == pid)
			sum += *local_of(session, i);
	return sum;
}

uint64_t lost_reentrant(struct fay_session *session)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < slots_used(session); i++)
		sum += slot_at(session, i)->lost_reentrant;
	return sum;
}

struct fay_session *attach(struct victim *victim, struct fay_target **target,
			   const struct hand_verdict *hand)
{
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };

	if (fay_target_open_pid(victim->pid, target, &error))
		fail_msg("open: %s", error.message);
	if (fay_session_attach(*target, &hand->verdict, NULL, &session, &error))
		fail_msg("attach: %s", error.message);
	return session;
}

struct fay_session *attach_sharing(struct fay_files *files, pid_t pid,
				   const struct hand_verdict *hand,
				   struct fay_attach_options options, struct fay_target **target)
{
	struct fay_session *session = NULL;
	struct fay_error error = { 0 };

	assert_int_equal(fay_target_open_pid(pid, target, &error), 0);
	fay_target_share(*target, files);
	if (fay_session_attach(*target, &hand->verdict, &options, &session, &error))
		fail_msg("attach: %s", error.message);
	return session;
}

void detach(struct fay_session *session, struct fay_target *target)
{
	struct fay_error error = { 0 };

	if (fay_session_detach(session, &error))
		fail_msg("detach: %s", error.message);
	fay_session_destroy(session);
	fay_target_close(target);
}

unsigned mappings(pid_t pid, const char *text)
{
	char path[64], line[512];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		count += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return count;
}

void assert_clean(struct victim *victim, uint64_t checksum)
{
	assert_true(victim_ask(victim, "checksum") == checksum);
	assert_int_equal(mappings(victim->pid, "fay-"), mappings(victim->pid, "fay-test-target"));
}

void scene_start(struct scene *scene, enum hand_probe which, const char *pattern)
{
	victim_start(&scene->victim);
	scene->checksum = victim_ask(&scene->victim, "checksum");
	hand_verdict(&scene->hand, which, pattern);
	scene->session = attach(&scene->victim, &scene->target, &scene->hand);
}

void scene_end(struct scene *scene)
{
	detach(scene->session, scene->target);
	assert_clean(&scene->victim, scene->checksum);
	victim_end(&scene->victim);
}

size_t point_named(const struct fay_session *session, const char *name)
{
	for (size_t i = 0; i < fay_session_point_count(session); i++)
		if (!strcmp(fay_session_point(session, i)->name, name))
			return i;
	fail_msg("no point %s", name);
	return 0;
}
