/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fay/clock.h"
#include "process/delay/delay.h"
#include "process/process.h"

#include "agent.h"
#include "feeds_private.h"

#define SECOND 1000000000ull
#define HELLO_EVERY 5u /* s */
#define HELLO_RAREST 3600u
#define IDLE_MS 50

struct fay_answer {
	uint64_t query;
	bool accepted;
	uint32_t processes, functions;
	char reason[FAY_WIRE_REASON_MAX + 1];
};

struct fay_agent {
	struct fay_agent_options options;
	const struct fay_keys *keys;
	struct fay_key_file signers;
	struct fay_bus *bus;
	struct fay_subscription *mine, *ping;
	uint64_t id, next_hello, connections;
	uint32_t hello_every; /* s */
	char kernel[256];
	struct fay_job *jobs[FAY_AGENT_JOBS_MAX];
	size_t job_count;
	/* the newest at answered_count - 1, modulo */
	struct fay_answer answered[FAY_AGENT_REMEMBERED];
	uint64_t answered_count;
	/* when one is written into the audit log again; those that were not */
	uint64_t next_stranger, strangers;
	struct fay_writer_buffer out;
};

static void hello(struct fay_agent *agent, uint64_t ping_time)
{
	fay_wire_begin(&agent->out, FAY_WIRE_HELLO, 0, agent->id);
	fay_wire_put64(&agent->out, ping_time);
	fay_wire_put64(&agent->out, fay_realtime());
	fay_wire_put32(&agent->out, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
	fay_wire_put32(&agent->out, (uint32_t)agent->job_count);
	fay_wire_put_text(&agent->out, agent->options.name, FAY_WIRE_NAME_MAX);
	fay_wire_put_text(&agent->out, agent->kernel, FAY_WIRE_NAME_MAX);
	fay_wire_put_text(&agent->out, agent->options.labels ? agent->options.labels : "",
			  FAY_WIRE_NAME_MAX);
	fay_wire_put_text(&agent->out, FAY_VERSION, FAY_WIRE_NAME_MAX);
	if (fay_wire_end(&agent->out, agent->keys))
		fay_bus_send(agent->bus, "fay.1.hello", agent->out.bytes, agent->out.size);
}

/* Not all machines at the same moment. */
static uint64_t next_hello(const struct fay_agent *agent)
{
	uint64_t period = agent->hello_every * SECOND;
	return fay_monotonic() + period / 2 + fay_keys_random() % period;
}

/* --- START --- */

/* `signer` NULL: a stranger. */
static void audit(const struct fay_agent *agent, const struct fay_wire_head *head,
		  const struct fay_wire_start *start, const struct fay_key_entry *signer,
		  const struct fay_verdict *verdict, const char *outcome)
{
	const struct fay_role *role = signer ? fay_key_file_role(&agent->signers, signer) : NULL;
	char key[FAY_KEY_HEX + 1], sha[FAY_KEY_HEX + 1] = "", text[FAY_WIRE_TEXT_MAX + 1];
	FILE *out = agent->options.audit;
	if (!out)
		return;
	fay_keys_hex(key, head->key);
	if (verdict)
		fay_keys_hex(sha, verdict->image_sha256);
	fay_text_copy(text, sizeof(text), start->text);
	fprintf(out,
		"{\"time\":%" PRIu64 ",\"query\":\"%016" PRIx64 "\",\"signer\":", fay_realtime(),
		head->query);
	fay_json_text(out, "", signer ? signer->name : "");
	fay_json_text(out, ",\"role\":", role ? role->name : "");
	fprintf(out, ",\"key\":\"%s\",\"image_sha256\":\"%s\",\"text\":", key, sha);
	fay_json_string(out, text, strlen(text));
	fprintf(out, ",\"processes\":[");
	struct fay_reader comms = { .at = start->comms.bytes, .end = start->comms_end };
	for (uint16_t i = 0; i < start->comms.count; i++) {
		fay_text_copy(text, sizeof(text), fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
		fay_json_text(out, i ? "," : "", text);
	}
	for (uint16_t i = 0; i < start->pids.count; i++) {
		uint32_t pid;
		memcpy(&pid, start->pids.bytes + i * sizeof(pid), sizeof(pid));
		fprintf(out, "%s%u", i || start->comms.count ? "," : "", pid);
	}
	fprintf(out, "],\"outcome\":");
	fay_text_copy(text, sizeof(text), (struct fay_text){ outcome, (uint16_t)strlen(outcome) });
	fay_json_string(out, text, strlen(text));
	fprintf(out, "}\n");
	fflush(out);
}

static void answer(struct fay_agent *agent, uint64_t sent, const struct fay_answer *what)
{
	char subject[64];
	snprintf(subject, sizeof(subject), "fay.1.q.%016" PRIx64 ".up", what->query);
	fay_wire_begin(&agent->out, FAY_WIRE_ANSWER, what->query, agent->id);
	fay_wire_put64(&agent->out, sent);
	fay_wire_put64(&agent->out, fay_realtime());
	fay_wire_put8(&agent->out, what->accepted);
	fay_wire_put32(&agent->out, what->processes);
	fay_wire_put32(&agent->out, what->functions);
	fay_wire_put_text(&agent->out, what->reason, FAY_WIRE_REASON_MAX);
	if (fay_wire_end(&agent->out, agent->keys))
		fay_bus_send(agent->bus, subject, agent->out.bytes, agent->out.size);
}

/* What the role admits of the query before anything of it is looked at. A query that has ended
 * counts until its results are taken: it has a place, and memory. */
static int check_role(const struct fay_agent *agent, const struct fay_role *role,
		      const struct fay_wire_start *start, struct fay_error *error)
{
	uint32_t running = 0;
	if (!role)
		return FAY_OK;
	if (start->flags & FAY_START_BPF && !role->kernel)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the role '%s' does not include queries about the kernel",
				     role->name);
	for (size_t i = 0; i < agent->job_count; i++) {
		const struct fay_key_entry *asker =
			fay_key_file_find(&agent->signers, agent->jobs[i]->asker);
		running += asker && fay_key_file_role(&agent->signers, asker) == role;
	}
	if (role->queries && running >= role->queries)
		return fay_error_set(error, FAY_E_LIMIT,
				     "the role '%s' may have %u queries at once, and that many are "
				     "running or waiting for their results to be fetched",
				     role->name, role->queries);
	return FAY_OK;
}

static uint64_t lesser(uint64_t own, uint64_t of_role)
{
	return of_role && (!own || of_role < own) ? of_role : own;
}

static struct fay_job_limits limits_of(const struct fay_agent *agent, const struct fay_role *role)
{
	struct fay_job_limits limits = agent->options.limits;
	if (role) {
		limits.memory = lesser(limits.memory, role->memory);
		limits.bytes_per_second = lesser(limits.bytes_per_second, role->bytes_per_second);
	}
	return limits;
}

static int make_feed(const struct fay_agent *agent, const struct fay_wire_start *start,
		     const struct fay_role *role, const struct fay_trust_log *log,
		     struct fay_verdict *verdict, struct fay_feed *feed, struct fay_error *error)
{
	if (agent->options.feed)
		return agent->options.feed(verdict, start, feed, error);
	if (start->flags & FAY_START_BPF && fay_trust_log_install(log, "the kernel, by BPF", error))
		return error->code;
	if (start->flags & FAY_START_BPF)
		return fay_kernel_feed_create((struct fay_object *)verdict, start,
					      limits_of(agent, role).memory, feed, error);
	return fay_processes_create(verdict, start, role, log, limits_of(agent, role).memory, feed,
				    error);
}

/* *job: started. The verdict is the job's then. */
static int launch(struct fay_agent *agent, const struct fay_wire_head *head,
		  const struct fay_wire_start *start, const struct fay_role *role,
		  const struct fay_trust_log *log, struct fay_verdict *verdict,
		  struct fay_job **job, struct fay_error *error)
{
	struct fay_job_limits limits = limits_of(agent, role);
	struct fay_feed feed;
	int result = make_feed(agent, start, role, log, verdict, &feed, error);
	if (result)
		return result;
	result = fay_job_create(agent->bus, agent->keys, agent->id, head, start, verdict, &feed,
				&limits, job, error);
	if (result) {
		feed.stop(feed.context);
		feed.destroy(feed.context);
	} else if (feed.on_row) {
		feed.on_row(feed.context, fay_job_row, *job);
	}
	return result;
}

static int start_query(struct fay_agent *agent, const struct fay_wire_head *head,
		       const struct fay_wire_start *start, const struct fay_key_entry *signer,
		       struct fay_error *error)
{
	const struct fay_role *role = fay_key_file_role(&agent->signers, signer);
	struct fay_asked asked = { head, start, &agent->signers, signer };
	struct fay_verdict *verdict = NULL;
	struct fay_trust_log log;
	if (agent->job_count == FAY_AGENT_JOBS_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "%u queries are running already",
				     FAY_AGENT_JOBS_MAX);
	int result = check_role(agent, role, start, error);
	if (!result)
		result = fay_agent_admit(&asked, &verdict, &log, error);
	audit(agent, head, start, signer, verdict, result ? error->message : "accepted");
	if (!result) {
		result = launch(agent, head, start, role, &log, verdict,
				&agent->jobs[agent->job_count], error);
		if (!result) {
			agent->job_count++;
			return FAY_OK;
		}
		audit(agent, head, start, signer, verdict, error->message);
	}
	if (verdict)
		fay_verdict_deinit(verdict);
	free(verdict);
	return result;
}

/* Strangers are not remembered, so that they cannot make the agent forget what it has started, and
 * once a second one is written into the audit log. */
static void refuse_stranger(struct fay_agent *agent, const struct fay_wire_head *head,
			    const struct fay_wire_start *start)
{
	struct fay_answer refusal = { .query = head->query };
	char outcome[128];
	snprintf(refusal.reason, sizeof(refusal.reason),
		 "the query's signer is not among this machine's signers");
	answer(agent, start->sent, &refusal);
	if (fay_monotonic() < agent->next_stranger) {
		agent->strangers++;
		return;
	}
	snprintf(outcome, sizeof(outcome),
		 "the query's signer is not among this machine's signers (%" PRIu64
		 " more since the last such line)",
		 agent->strangers);
	audit(agent, head, start, NULL, NULL, agent->strangers ? outcome : refusal.reason);
	agent->strangers = 0;
	agent->next_stranger = fay_monotonic() + SECOND;
}

/* A query that was answered is answered again in the same way, and not started again. */
static void receive_start(struct fay_agent *agent, const struct fay_wire_head *head)
{
	struct fay_wire_start start;
	struct fay_error error = { 0 };
	if (head->sender || !head->query || !fay_wire_read_start(head->body, &start) ||
	    start.target != agent->id)
		return;
	const struct fay_key_entry *signer = fay_key_file_find(&agent->signers, head->key);
	if (!signer) {
		refuse_stranger(agent, head, &start);
		return;
	}
	for (size_t i = 0; i < FAY_AGENT_REMEMBERED; i++)
		if (agent->answered[i].query == head->query) {
			answer(agent, start.sent, &agent->answered[i]);
			return;
		}
	struct fay_answer *what = &agent->answered[agent->answered_count++ % FAY_AGENT_REMEMBERED];
	int result = start_query(agent, head, &start, signer, &error);
	what->query = head->query;
	what->accepted = !result;
	what->processes = result ? 0 : agent->jobs[agent->job_count - 1]->feed.processes;
	what->functions = result ? 0 : agent->jobs[agent->job_count - 1]->feed.functions;
	snprintf(what->reason, sizeof(what->reason), "%.*s", (int)FAY_WIRE_REASON_MAX,
		 error.message);
	answer(agent, start.sent, what);
}

/* --- life --- */

static struct fay_job *find_job(const struct fay_agent *agent, uint64_t query)
{
	for (size_t i = 0; i < agent->job_count; i++)
		if (agent->jobs[i]->query == query)
			return agent->jobs[i];
	return NULL;
}

/* An asking side says how often it wants to hear of so many machines, without asking. */
static void receive_ping(struct fay_agent *agent, uint64_t time, uint32_t period)
{
	hello(agent, time);
	if (!period)
		return;
	agent->hello_every = period < HELLO_EVERY    ? HELLO_EVERY
			     : period > HELLO_RAREST ? HELLO_RAREST
						     : period;
	agent->next_hello = next_hello(agent);
}

static void receive(struct fay_agent *agent, const struct fay_message *message)
{
	struct fay_wire_head head;
	uint64_t time;
	uint32_t period;
	if (!fay_wire_open(message->bytes, message->size, &head))
		return;
	struct fay_job *job = find_job(agent, head.query);
	if (head.type == FAY_WIRE_PING && fay_wire_read_ping(head.body, &time, &period))
		receive_ping(agent, time, period);
	else if (head.type == FAY_WIRE_START)
		receive_start(agent, &head);
	else if (job)
		fay_job_receive(job, &head, message->bytes, message->size);
}

static void drain(struct fay_agent *agent, struct fay_subscription *subscription, int timeout_ms)
{
	struct fay_message message;
	for (unsigned i = 0; i < 256 && fay_bus_next(subscription, timeout_ms, &message); i++) {
		receive(agent, &message);
		fay_message_done(&message);
		timeout_ms = 0;
	}
}

/* How long to wait for a message. */
static int patience_ms(const struct fay_agent *agent)
{
	int least = IDLE_MS;
	if (agent->job_count && agent->options.busy_ms)
		return agent->options.busy_ms;
	for (size_t i = 0; i < agent->job_count; i++) {
		int one = fay_job_patience_ms(agent->jobs[i]);
		least = one < least ? one : least;
	}
	return least;
}

static void tick_jobs(struct fay_agent *agent)
{
	for (size_t i = 0; i < agent->job_count;) {
		fay_job_tick(agent->jobs[i]);
		if (!agent->jobs[i]->done) {
			i++;
			continue;
		}
		fay_job_destroy(agent->jobs[i]);
		agent->jobs[i] = agent->jobs[--agent->job_count];
	}
}

int fay_agent_tick(struct fay_agent *agent, struct fay_error *error)
{
	uint64_t now = fay_monotonic(), connections = fay_bus_connections(agent->bus);
	if (fay_bus_check_open(agent->bus, error))
		return error->code;
	if (now >= agent->next_hello || connections != agent->connections) {
		agent->next_hello = next_hello(agent);
		agent->connections = connections;
		hello(agent, 0);
	}
	drain(agent, agent->ping, 0);
	drain(agent, agent->mine, patience_ms(agent));
	tick_jobs(agent);
	return FAY_OK;
}

void fay_agent_end(struct fay_agent *agent, int timeout_ms)
{
	uint64_t until = fay_monotonic() + (uint64_t)timeout_ms * 1000000u;
	for (size_t i = 0; i < agent->job_count; i++)
		fay_job_end(agent->jobs[i], FAY_FINAL_AGENT);
	while (agent->job_count && fay_monotonic() < until) {
		drain(agent, agent->mine, patience_ms(agent));
		tick_jobs(agent);
	}
}

static int open_agent(struct fay_agent *agent, struct fay_error *error)
{
	char subject[64];
	if (fay_key_file_read(agent->options.signers, "signer", &agent->signers, error))
		return error->code;
	if (fay_bus_open(&agent->options.bus, &agent->bus, error))
		return error->code;
	snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, agent->id);
	if (fay_bus_subscribe(agent->bus, subject, &agent->mine, error) ||
	    fay_bus_subscribe(agent->bus, "fay.1.ping", &agent->ping, error))
		return error->code;
	fay_bus_flush(agent->bus, 2000);
	return FAY_OK;
}

int fay_agent_create(const struct fay_agent_options *options, const struct fay_keys *keys,
		     struct fay_agent **result, struct fay_error *error)
{
	struct utsname system;
	struct fay_agent *agent = calloc(1, sizeof(*agent));
	if (!agent)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	agent->options = *options;
	agent->keys = keys;
	agent->id = fay_keys_random();
	agent->hello_every = HELLO_EVERY;
	if (!uname(&system))
		snprintf(agent->kernel, sizeof(agent->kernel), "%.60s %.60s %.60s", system.sysname,
			 system.release, system.machine);
	if (open_agent(agent, error)) {
		fay_agent_destroy(agent);
		return error->code;
	}
	*result = agent;
	return FAY_OK;
}

void fay_agent_destroy(struct fay_agent *agent)
{
	if (!agent)
		return;
	while (agent->job_count)
		fay_job_destroy(agent->jobs[--agent->job_count]);
	fay_bus_unsubscribe(agent->mine);
	fay_bus_unsubscribe(agent->ping);
	fay_bus_close(agent->bus);
	fay_key_file_deinit(&agent->signers);
	fay_wire_free(&agent->out);
	free(agent);
}
