/* SPDX-License-Identifier: MIT */
/*
 * The trust store, a directory: `require` has the number of signatures that an image must have,
 * `signers` who may give them, `revoked` keys that no longer may, `log` the file that verdicts and
 * installs are written into. Lines are only ever added to `signers` and `revoked`. What others than
 * root and the caller could have written is not believed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "trust.h"

bool fay_trust_hex(const char *text, size_t length, uint8_t *bytes, size_t size)
{
	size_t got;
	return length == 2 * size && !sodium_hex2bin(bytes, size, text, length, NULL, &got, NULL) &&
	       got == size;
}

/* ---- files ---- */

static bool is_guarded(const struct stat *stat)
{
	return (stat->st_uid == 0 || stat->st_uid == geteuid()) && !(stat->st_mode & 022);
}

static int check_open(int file, const char *name, bool guarded, struct fay_error *error)
{
	struct stat stat;
	if (fstat(file, &stat) || !S_ISREG(stat.st_mode))
		return fay_error_set(error, FAY_E_REFUSED, "'%s' is not a regular file", name);
	if (guarded && !is_guarded(&stat))
		return fay_error_set(error, FAY_E_REFUSED,
				     "'%s' is not believed: others than its owner can write it, or "
				     "it is another user's",
				     name);
	return FAY_OK;
}

int fay_trust_file_open(int directory, const char *name, int flags, int *file,
			struct fay_error *error)
{
	*file = openat(directory, name, flags | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		       0600);
	if (*file < 0)
		return fay_error_set(error, FAY_E_REFUSED, "cannot open '%s': %s", name,
				     strerror(errno));
	return check_open(*file, name, true, error);
}

static int read_open(int file, const char *name, bool guarded, char **text, struct fay_error *error)
{
	if (check_open(file, name, guarded, error))
		return error->code;
	char *all = calloc(1, FAY_TRUST_FILE_MAX + 2);
	size_t size = 0;
	ssize_t got = all ? 1 : -1;
	while (got > 0 && size <= FAY_TRUST_FILE_MAX) {
		got = read(file, all + size, FAY_TRUST_FILE_MAX + 1 - size);
		size += got > 0 ? (size_t)got : 0;
	}
	const char *wrong = got < 0                         ? "cannot be read"
			    : size > FAY_TRUST_FILE_MAX     ? "is too large"
			    : memchr(all, 0, size)          ? "is not text"
			    : size && all[size - 1] != '\n' ? "ends within a line"
							    : NULL;
	if (wrong) {
		free(all);
		return fay_error_set(error, FAY_E_REFUSED, "'%s' %s", name, wrong);
	}
	*text = all;
	return FAY_OK;
}

int fay_trust_file_read(int directory, const char *name, bool guarded, char **text,
			struct fay_error *error)
{
	int file = openat(directory, name,
			  O_RDONLY | O_CLOEXEC | O_NONBLOCK | (guarded ? O_NOFOLLOW : 0));
	*text = NULL;
	if (file < 0)
		return errno == ENOENT ? FAY_OK
				       : fay_error_set(error, FAY_E_REFUSED, "cannot open '%s': %s",
						       name, strerror(errno));
	int result = read_open(file, name, guarded, text, error);
	close(file);
	return result;
}

/* ---- reading ---- */

static bool read_until(const char *text, char until[11])
{
	struct tm day = { 0 };
	char again[16];
	const char *end = strptime(text, "%Y-%m-%d", &day);
	if (!end || *end || strlen(text) != 10 ||
	    strftime(again, sizeof(again), "%Y-%m-%d", &day) != 10 || strcmp(again, text) != 0)
		return false;
	strcpy(until, text);
	return true;
}

static bool read_tracepoints(char *text, struct fay_policy *scope)
{
	char *rest = NULL;
	for (char *one = strtok_r(text, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
		if (scope->pattern_count == 32 || strlen(one) >= sizeof(scope->patterns[0]))
			return false;
		strcpy(scope->patterns[scope->pattern_count++], one);
	}
	return scope->pattern_count > 0;
}

/* "NAME KEY [until=DAY] [tracepoints=GLOB,...]" */
static bool read_signer(char *line, struct fay_trust_signer *signer)
{
	char *rest = NULL, *name = strtok_r(line, " ", &rest), *key = strtok_r(NULL, " ", &rest);
	*signer = (struct fay_trust_signer){ 0 };
	if (!name || !key || strlen(name) >= sizeof(signer->name) ||
	    !fay_trust_hex(key, strlen(key), signer->key, sizeof(signer->key)))
		return false;
	strcpy(signer->name, name);
	for (char *word = strtok_r(NULL, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		bool until = !strncmp(word, "until=", 6) && !*signer->until,
		     scope = !strncmp(word, "tracepoints=", 12) && !signer->scope.pattern_count;
		if (!(until && read_until(word + 6, signer->until)) &&
		    !(scope && read_tracepoints(word + 12, &signer->scope)))
			return false;
	}
	return true;
}

static bool is_new(const struct fay_trust_store *store, const struct fay_trust_signer *signer)
{
	for (size_t i = 0; i < store->count; i++)
		if (!strcmp(store->signers[i].name, signer->name) ||
		    !memcmp(store->signers[i].key, signer->key, FAY_KEY_BYTES))
			return false;
	return true;
}

static bool add_signer(struct fay_trust_store *store, char *line)
{
	return store->count < FAY_TRUST_SIGNERS_MAX &&
	       read_signer(line, &store->signers[store->count]) &&
	       is_new(store, &store->signers[store->count]) && ++store->count;
}

static bool add_revoked(struct fay_trust_store *store, char *line)
{
	return store->revoked_count < FAY_TRUST_REVOKED_MAX &&
	       fay_trust_hex(line, strlen(line), store->revoked[store->revoked_count],
			     FAY_KEY_BYTES) &&
	       ++store->revoked_count;
}

static bool set_required(struct fay_trust_store *store, char *line)
{
	char *end;
	unsigned long count = strtoul(line, &end, 10);
	if (store->asked || *line < '0' || *line > '9' || *end || count > FAY_TRUST_SIGNATURES_MAX)
		return false;
	store->asked = true;
	store->required = (unsigned)count;
	return true;
}

static bool set_log(struct fay_trust_store *store, char *line)
{
	const char *name = strrchr(line, '/');
	if (*store->log || *line != '/' || !name[1] || strlen(line) >= sizeof(store->log))
		return false;
	strcpy(store->log, line);
	return true;
}

/* Each line of a file of the store. */
static int read_lines(int directory, const char *name, struct fay_trust_store *store,
		      bool (*take)(struct fay_trust_store *, char *), struct fay_error *error)
{
	char *text;
	int result = fay_trust_file_read(directory, name, true, &text, error);
	size_t number = 1;
	for (char *line = text, *end; !result && line && *line; line = end + 1, number++) {
		end = strchr(line, '\n'); /* the file has whole lines */
		*end = 0;
		if (!take(store, line))
			result = fay_error_set(error, FAY_E_REFUSED,
					       "%s:%zu: not understood, or there twice", name,
					       number);
	}
	if (!result && text && !*text && (take == set_required || take == set_log))
		result = fay_error_set(error, FAY_E_REFUSED, "'%s' is empty", name);
	free(text);
	return result;
}

bool fay_trust_directory_is_guarded(int directory)
{
	struct stat own, around;
	if (fstat(directory, &own) || fstatat(directory, "..", &around, 0))
		return false;
	if (around.st_mode & S_ISVTX)
		around.st_mode &= ~(mode_t)022;
	return is_guarded(&own) && is_guarded(&around);
}

static int read_all(int directory, struct fay_trust_store *store, struct fay_error *error)
{
	if (!fay_trust_directory_is_guarded(directory))
		return fay_error_set(error, FAY_E_REFUSED,
				     "the directory is not believed: others than its owner can "
				     "write it or the one that it is in, or it is another user's");
	store->signers = calloc(FAY_TRUST_SIGNERS_MAX, sizeof(*store->signers));
	store->revoked = calloc(FAY_TRUST_REVOKED_MAX, sizeof(*store->revoked));
	if (!store->signers || !store->revoked)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (read_lines(directory, "require", store, set_required, error) ||
	    read_lines(directory, "signers", store, add_signer, error) ||
	    read_lines(directory, "revoked", store, add_revoked, error) ||
	    read_lines(directory, "log", store, set_log, error))
		return error->code;
	for (size_t i = 0; i < store->count; i++)
		for (size_t k = 0; k < store->revoked_count; k++)
			store->signers[i].revoked |=
				!memcmp(store->signers[i].key, store->revoked[k], FAY_KEY_BYTES);
	return FAY_OK;
}

int fay_trust_store_read(const char *path, struct fay_trust_store *store, struct fay_error *error)
{
	struct fay_error why;
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*store = (struct fay_trust_store){ 0 };
	if (directory < 0 && errno == ENOENT)
		return FAY_OK;
	if (directory < 0)
		return fay_error_set(error, FAY_E_REFUSED, "the trust store '%s': %s", path,
				     strerror(errno));
	int result = read_all(directory, store, &why);
	close(directory);
	return result ? fay_error_set(error, (enum fay_error_code)result,
				      "the trust store '%s': %s", path, why.message)
		      : FAY_OK;
}

void fay_trust_store_deinit(struct fay_trust_store *store)
{
	free(store->signers);
	free(store->revoked);
	*store = (struct fay_trust_store){ 0 };
}

/* ---- changing ---- */

/* A line at the end of a file, or instead of what it has. */
static int put_line(const char *path, const char *name, const char *line, bool instead,
		    struct fay_error *error)
{
	char file_name[4096];
	if ((mkdir(path, 0755) && errno != EEXIST) ||
	    snprintf(file_name, sizeof(file_name), "%s/%s", path, name) >= (int)sizeof(file_name))
		return fay_error_set(error, FAY_E_USAGE, "cannot make '%s': %s", path,
				     strerror(errno));
	int file = open(
		file_name,
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (instead ? O_TRUNC : O_APPEND), 0644);
	size_t length = strlen(line);
	bool ok = file >= 0 && write(file, line, length) == (ssize_t)length && !fsync(file);
	int code = errno;
	if (file >= 0)
		close(file);
	return ok ? FAY_OK
		  : fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s': %s", file_name,
				  strerror(code));
}

int fay_trust_add(const char *path, const char *name, const char *key, const char *until,
		  const char *tracepoints, struct fay_error *error)
{
	struct fay_trust_store store;
	char *line = NULL, *read = NULL;
	int result = fay_trust_store_read(path, &store, error);
	if (!result && asprintf(&line, "%s %s%s%s%s%s\n", name, key, until ? " until=" : "",
				until ? until : "", tracepoints ? " tracepoints=" : "",
				tracepoints ? tracepoints : "") < 0)
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!result && !store.signers)
		store.signers = calloc(FAY_TRUST_SIGNERS_MAX, sizeof(*store.signers));
	read = !result ? strndup(line, strcspn(line, "\n")) : NULL;
	if (!result && (!read || !store.signers))
		result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	else if (!result && (strpbrk(name, " \n") || strchr(line, '\n') != strrchr(line, '\n') ||
			     !add_signer(&store, read)))
		result = fay_error_set(error, FAY_E_USAGE,
				       "not added: the name or the key is there already, or the "
				       "key, the day (2027-12-31) or the patterns are wrong");
	if (!result)
		result = put_line(path, "signers", line, false, error);
	free(line);
	free(read);
	fay_trust_store_deinit(&store);
	return result;
}

int fay_trust_revoke(const char *path, const char *name, struct fay_error *error)
{
	struct fay_trust_store store;
	uint8_t key[FAY_KEY_BYTES];
	char line[FAY_KEY_HEX + 2];
	int result = fay_trust_store_read(path, &store, error);
	bool found = fay_trust_hex(name, strlen(name), key, sizeof(key));
	for (size_t i = 0; !result && !found && i < store.count; i++)
		if ((found = !strcmp(store.signers[i].name, name)))
			memcpy(key, store.signers[i].key, sizeof(key));
	if (!result && !found)
		result = fay_error_set(error, FAY_E_USAGE, "'%s' is no signer and no key", name);
	if (!result) {
		fay_keys_hex(line, key);
		strcat(line, "\n");
		result = put_line(path, "revoked", line, false, error);
	}
	fay_trust_store_deinit(&store);
	return result;
}

int fay_trust_require(const char *path, const char *count, struct fay_error *error)
{
	struct fay_trust_store store = { 0 };
	char line[16];
	if (strlen(count) > 2 || !set_required(&store, strcpy(line, count)))
		return fay_error_set(error, FAY_E_USAGE, "a number of signatures, at most %u",
				     FAY_TRUST_SIGNATURES_MAX);
	strcat(line, "\n");
	return put_line(path, "require", line, true, error);
}

int fay_trust_set_log(const char *path, const char *log, struct fay_error *error)
{
	struct fay_trust_store store = { 0 };
	char line[FAY_LOG_PATH_MAX + 1], file_name[4096];
	if (!strcmp(log, "none")) {
		bool named = snprintf(file_name, sizeof(file_name), "%s/log", path) <
			     (int)sizeof(file_name);
		return named && (!unlink(file_name) || errno == ENOENT)
			       ? FAY_OK
			       : fay_error_set(error, FAY_E_INTERNAL, "cannot remove '%s': %s",
					       file_name, strerror(errno));
	}
	if (strlen(log) >= FAY_LOG_PATH_MAX || strchr(log, '\n') ||
	    !set_log(&store, strcpy(line, log)))
		return fay_error_set(error, FAY_E_USAGE,
				     "a file by its path from the root, such as /var/log/fay.log, "
				     "or `none`");
	strcat(line, "\n");
	return put_line(path, "log", line, true, error);
}
