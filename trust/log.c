/* SPDX-License-Identifier: MIT */
/*
 * The log of verdicts and installs: a line an entry,
 *
 *     fay-log-1 NUMBER PREVIOUS TIME USER EVENT IMAGE POLICY TEXT
 *
 * PREVIOUS is the hash of all lines before it: that of a line is the SHA-256 of the hash before it
 * and the line with its end, beginning with zeros. FILE.head has the number of the last entry, the
 * size of the file then, and the hash, so that one line is added without reading the others, and
 * what is missing at the end is noticed.
 *
 * Nothing that was written is ever changed. Of an entry for which there is no room, or whose writer
 * dies, part of a line may stay: the next entry begins a new line, and its hash covers that part,
 * too. Writers take turns by flock(2). FILE.head is written last, so it may be behind the file by
 * what was written since; the next writer takes that up.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log_parts.h"

#define LOCK_TRIES 5000 /* of 2 ms */
#define LOCK_WAIT_US 2000
#define BEHIND_MAX (1u << 20) /* bytes that FILE.head may be behind */

_Static_assert(FAY_LOG_HASH == crypto_hash_sha256_BYTES, "SHA-256");

/* ---- lines ---- */

void fay_log_chain(struct fay_log_state *state, const char *line, size_t size)
{
	crypto_hash_sha256_state sha;
	crypto_hash_sha256_init(&sha);
	crypto_hash_sha256_update(&sha, state->hash, sizeof(state->hash));
	crypto_hash_sha256_update(&sha, (const uint8_t *)line, size);
	crypto_hash_sha256_final(&sha, state->hash);
	state->size += size;
}

/* A decimal number as it is printed: no sign, no zeros before it. */
static bool read_number(const char *text, uint64_t *number)
{
	char again[24], *end;
	*number = strtoull(text, &end, 10);
	snprintf(again, sizeof(again), "%" PRIu64, *number);
	return !strcmp(again, text);
}

bool fay_log_parse(char *line, struct fay_log_line *entry)
{
	char *words[8], *rest = line;
	uint8_t digest[FAY_TRUST_DIGEST];
	uint64_t user;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		words[i] = rest;
		if (!(rest = strchr(rest, ' ')))
			return false;
		*rest++ = 0;
	}
	*entry = (struct fay_log_line){ .time = words[3],
					.user = words[4],
					.event = words[5],
					.image = words[6],
					.policy = words[7],
					.text = rest };
	return !strcmp(words[0], FAY_LOG_SCHEME) && read_number(words[1], &entry->number) &&
	       fay_trust_hex(words[2], strlen(words[2]), entry->previous, FAY_LOG_HASH) &&
	       read_number(words[4], &user) &&
	       fay_trust_hex(words[6], strlen(words[6]), digest, sizeof(digest)) &&
	       fay_trust_hex(words[7], strlen(words[7]), digest, sizeof(digest));
}

void fay_log_head_write(char text[FAY_LOG_HEAD_SIZE + 1], const struct fay_log_state *state)
{
	char hash[FAY_LOG_HASH_HEX + 1];
	sodium_bin2hex(hash, sizeof(hash), state->hash, sizeof(state->hash));
	snprintf(text, FAY_LOG_HEAD_SIZE + 1, "%020" PRIu64 " %020" PRIu64 " %s\n", state->number,
		 state->size, hash);
}

bool fay_log_head_read(const char *text, size_t size, struct fay_log_state *state)
{
	char again[FAY_LOG_HEAD_SIZE + 1];
	*state = (struct fay_log_state){ 0 };
	if (size != FAY_LOG_HEAD_SIZE || text[20] != ' ' || text[41] != ' ' ||
	    !fay_trust_hex(text + 42, FAY_LOG_HASH_HEX, state->hash, sizeof(state->hash)))
		return false;
	state->number = strtoull(text, NULL, 10);
	state->size = strtoull(text + 21, NULL, 10);
	fay_log_head_write(again, state);
	return !memcmp(again, text, size);
}

/* What an entry tells, as one word of a line or its rest: bytes that are not printable, and '\',
 * are \xNN. */
static size_t escape(char *to, size_t room, const char *text)
{
	size_t used = 0;
	for (; *text && used + 4 < room; text++) {
		if (*text >= ' ' && *text < 0x7f && *text != '\\')
			to[used++] = *text;
		else
			used += (size_t)snprintf(to + used, room - used, "\\x%02x",
						 (unsigned char)*text);
	}
	to[used] = 0;
	return used;
}

static size_t compose(char line[FAY_LOG_LINE_MAX], const struct fay_log_state *state,
		      const struct fay_log_entry *entry)
{
	static const uint8_t none[FAY_TRUST_DIGEST];
	char previous[FAY_LOG_HASH_HEX + 1], image[2 * FAY_TRUST_DIGEST + 1],
		policy[2 * FAY_TRUST_DIGEST + 1], date[32] = "-";
	time_t now = time(NULL);
	struct tm day;
	sodium_bin2hex(previous, sizeof(previous), state->hash, sizeof(state->hash));
	sodium_bin2hex(image, sizeof(image), entry->image ? entry->image : none, sizeof(none));
	sodium_bin2hex(policy, sizeof(policy), entry->policy ? entry->policy : none, sizeof(none));
	if (gmtime_r(&now, &day))
		strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &day);
	int used = snprintf(line, FAY_LOG_LINE_MAX, "%s %" PRIu64 " %s %s %u %s %s %s ",
			    FAY_LOG_SCHEME, state->number + 1, previous, date, (unsigned)getuid(),
			    entry->event, image, policy);
	size_t size = (size_t)used;
	size += escape(line + size, FAY_LOG_LINE_MAX - 1 - size, entry->text);
	line[size++] = '\n';
	return size;
}

/* ---- files ---- */

struct files {
	const char *name; /* in the directory */
	char head_name[256];
	int directory, log, head;
};

static int open_files(const char *path, struct files *files, struct fay_error *error)
{
	const char *slash = strrchr(path, '/');
	char *folder = strndup(path, (size_t)(slash - path) + 1);
	*files = (struct files){ .name = slash + 1, .directory = -1, .log = -1, .head = -1 };
	if (!folder || snprintf(files->head_name, sizeof(files->head_name), "%s.head",
				files->name) >= (int)sizeof(files->head_name)) {
		free(folder);
		return fay_error_set(error, FAY_E_REFUSED,
				     "out of memory, or the name is too long");
	}
	files->directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(folder);
	if (files->directory < 0)
		return fay_error_set(error, FAY_E_REFUSED, "its directory: %s", strerror(errno));
	if (!fay_trust_directory_is_guarded(files->directory))
		return fay_error_set(error, FAY_E_REFUSED,
				     "its directory is not believed: others than its owner can "
				     "write it or the one that it is in, or it is another user's");
	int result = fay_trust_file_open(files->directory, files->name, O_RDWR | O_APPEND,
					 &files->log, error);
	return result ? result
		      : fay_trust_file_open(files->directory, files->head_name, O_RDWR,
					    &files->head, error);
}

static void close_files(const struct files *files)
{
	if (files->head >= 0)
		close(files->head);
	if (files->log >= 0)
		close(files->log); /* whoever waits for the lock goes on */
	if (files->directory >= 0)
		close(files->directory);
}

/* Whoever else writes has it for some milliseconds. */
static int lock(const struct files *files, struct fay_error *error)
{
	struct stat own, named;
	for (int i = 0; flock(files->log, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return fay_error_set(error, FAY_E_REFUSED, "%s", strerror(errno));
		if (i == LOCK_TRIES)
			return fay_error_set(error, FAY_E_REFUSED,
					     "another process keeps it locked");
		usleep(LOCK_WAIT_US);
	}
	if (fstat(files->log, &own) || fstatat(files->directory, files->name, &named, 0) ||
	    own.st_ino != named.st_ino)
		return fay_error_set(error, FAY_E_REFUSED, "it was moved away meanwhile");
	return FAY_OK;
}

/* What is in the file behind what FILE.head has: entries whose writer died, or parts of one. */
static int take_up(const struct files *files, struct fay_log_state *state, uint64_t size,
		   bool *torn, struct fay_error *error)
{
	size_t behind = (size_t)(size - state->size);
	char *text = malloc(behind + 2), *line = text, *end;
	uint64_t at = state->size;
	if (!text || pread(files->log, text, behind, (off_t)at) != (ssize_t)behind) {
		free(text);
		return fay_error_set(error, FAY_E_REFUSED, "it cannot be read");
	}
	*torn = behind && text[behind - 1] != '\n';
	if (*torn)
		text[behind++] = '\n'; /* which the next entry begins with */
	for (; line < text + behind; line = end) {
		struct fay_log_line entry;
		uint8_t before[FAY_LOG_HASH];
		end = (char *)memchr(line, '\n', (size_t)(text + behind - line)) + 1;
		memcpy(before, state->hash, sizeof(before));
		fay_log_chain(state, line, (size_t)(end - line));
		end[-1] = 0;
		if (fay_log_parse(line, &entry) && entry.number == state->number + 1 &&
		    !memcmp(entry.previous, before, sizeof(before)))
			state->number++;
	}
	free(text);
	return FAY_OK;
}

static int write_head(const struct files *files, const struct fay_log_state *state,
		      struct fay_error *error)
{
	char head[FAY_LOG_HEAD_SIZE + 1];
	fay_log_head_write(head, state);
	if (pwrite(files->head, head, FAY_LOG_HEAD_SIZE, 0) == (ssize_t)FAY_LOG_HEAD_SIZE &&
	    !fdatasync(files->head))
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED, "'%s': %s", files->head_name, strerror(errno));
}

/* Where the log ends. *torn: within a line. */
static int find_end(const struct files *files, struct fay_log_state *state, bool *torn,
		    struct fay_error *error)
{
	char text[FAY_LOG_HEAD_SIZE + 1];
	struct stat stat;
	ssize_t got = pread(files->head, text, sizeof(text), 0);
	*state = (struct fay_log_state){ 0 };
	*torn = false;
	if (got < 0 || fstat(files->log, &stat))
		return fay_error_set(error, FAY_E_REFUSED, "%s", strerror(errno));
	if (!got && stat.st_size)
		return fay_error_set(error, FAY_E_REFUSED,
				     "there is a log, but nothing in '%s': move the log away to "
				     "begin another one",
				     files->head_name);
	if (!got) /* a new log; whatever becomes of its first entry, there is a head */
		return write_head(files, state, error);
	if (!fay_log_head_read(text, (size_t)got, state))
		return fay_error_set(error, FAY_E_REFUSED, "'%s' is damaged", files->head_name);
	if ((uint64_t)stat.st_size < state->size)
		return fay_error_set(error, FAY_E_REFUSED,
				     "it was cut: %lld bytes of %" PRIu64 " are there",
				     (long long)stat.st_size, state->size);
	if ((uint64_t)stat.st_size - state->size > BEHIND_MAX)
		return fay_error_set(error, FAY_E_REFUSED, "'%s' is too far behind",
				     files->head_name);
	return take_up(files, state, (uint64_t)stat.st_size, torn, error);
}

static int append(const struct files *files, const struct fay_log_entry *entry,
		  struct fay_error *error)
{
	char line[FAY_LOG_LINE_MAX + 1] = "\n";
	struct fay_log_state state;
	bool torn;
	if (find_end(files, &state, &torn, error))
		return error->code;
	bool first = !state.number;
	size_t begin = torn, size = compose(line + begin, &state, entry);
	ssize_t put = write(files->log, line, begin + size), all = (ssize_t)(begin + size);
	if (put >= 0 && put < all)
		errno = ENOSPC;
	if (put != all || fdatasync(files->log))
		return fay_error_set(error, FAY_E_REFUSED, "%s", strerror(errno));
	fay_log_chain(&state, line + begin, size);
	state.number++;
	if (write_head(files, &state, error))
		return error->code;
	if (first && fsync(files->directory))
		return fay_error_set(error, FAY_E_REFUSED, "its directory: %s", strerror(errno));
	return FAY_OK;
}

int fay_log_add(const char *path, const struct fay_log_entry *entry, struct fay_error *error)
{
	struct files files;
	struct fay_error why;
	int result = open_files(path, &files, &why);
	if (!result)
		result = lock(&files, &why);
	if (!result)
		result = append(&files, entry, &why);
	close_files(&files);
	return result ? fay_error_set(error, FAY_E_REFUSED,
				      "the log '%s', which the trust store asks for, cannot be "
				      "written: %s",
				      path, why.message)
		      : FAY_OK;
}
