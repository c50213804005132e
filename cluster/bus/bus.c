/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "cluster/wire/wire.h"

#include "bus_private.h"

#define SERVERS_MAX 16
#define RECONNECT_MS 250
#define PING_MS 2000
#define RECONNECT_BUFFER (64 << 10)
#define PENDING_MESSAGES 65536
#define PENDING_BYTES (256 << 20)

struct fay_subscription {
	natsSubscription *subscription;
};

/* --- what a URL promises --- */

static bool is_loopback(const char *host, size_t size)
{
	return (size == 9 && !strncmp(host, "localhost", 9)) ||
	       (size > 4 && !strncmp(host, "127.", 4) && strspn(host, "0123456789.") >= size) ||
	       (size == 5 && !strncmp(host, "[::1]", 5));
}

struct promise {
	bool loopback, tls, user;
};

static struct promise look_at(const char *url, size_t size)
{
	struct promise promise = { 0 };
	const char *end = url + size, *at = memmem(url, size, "://", 3);
	promise.tls = at && at - url == 3 && !strncmp(url, "tls", 3);
	at = at ? at + 3 : url;
	const char *user = memrchr(at, '@', (size_t)(end - at));
	promise.user = user != NULL;
	at = user ? user + 1 : at;
	const char *host_end = *at == '[' ? memchr(at, ']', (size_t)(end - at))
					  : memchr(at, ':', (size_t)(end - at));
	if (host_end && *at == '[')
		host_end++;
	promise.loopback = is_loopback(at, (size_t)((host_end ? host_end : end) - at));
	return promise;
}

/* FAY_E_REFUSED: a plain connection, or one without credentials, to other than loopback. */
static int check(const struct fay_bus_options *options, struct fay_error *error)
{
	const char *url = options->url;
	if (!url || !*url)
		return fay_error_set(error, FAY_E_USAGE,
				     "no NATS URL; give one such as nats://127.0.0.1:4222");
	while (*url) {
		size_t size = strcspn(url, ",");
		struct promise promise = look_at(url, size);
		if (!promise.loopback && !options->insecure && !promise.tls && !options->ca)
			return fay_error_set(error, FAY_E_REFUSED,
					     "'%.*s' is not on this machine and has no TLS: use "
					     "tls://, or --insecure",
					     (int)size, url);
		if (!promise.loopback && !options->insecure && !promise.user &&
		    !options->credentials && !options->certificate)
			return fay_error_set(
				error, FAY_E_REFUSED,
				"'%.*s' is not on this machine and there are no credentials: "
				"tls://USER:PASSWORD@..., --creds or --cert, or --insecure",
				(int)size, url);
		url += size + (url[size] == ',');
	}
	return FAY_OK;
}

/* --- connecting --- */

/* libnats prints what goes wrong by itself unless somebody listens; lost messages are sent again
 * anyway. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
		     void *context)
{
}

static natsStatus set_servers(struct fay_bus *bus, const char *urls)
{
	const char *servers[SERVERS_MAX];
	int count = 0;
	char *rest;
	if (strlen(urls) >= sizeof(bus->urls))
		return NATS_INVALID_ARG;
	strcpy(bus->urls, urls);
	for (char *url = strtok_r(bus->urls, ",", &rest); url && count < SERVERS_MAX;
	     url = strtok_r(NULL, ",", &rest))
		servers[count++] = url;
	return natsOptions_SetServers(bus->options, servers, count);
}

static natsStatus set_security(natsOptions *to, const struct fay_bus_options *options)
{
	natsStatus status = NATS_OK;
	if (options->ca || options->certificate)
		status = natsOptions_SetSecure(to, true);
	if (status == NATS_OK && options->ca)
		status = natsOptions_LoadCATrustedCertificates(to, options->ca);
	if (status == NATS_OK && options->certificate)
		status = natsOptions_LoadCertificatesChain(to, options->certificate,
							   options->certificate_key);
	if (status == NATS_OK && options->credentials)
		status = natsOptions_SetUserCredentialsFromFiles(to, options->credentials, NULL);
	return status;
}

static natsStatus set_options(struct fay_bus *bus, const struct fay_bus_options *options)
{
	natsStatus status = natsOptions_Create(&bus->options);
	if (status == NATS_OK)
		status = set_servers(bus, options->url);
	if (status == NATS_OK)
		status = set_security(bus->options, options);
	if (status == NATS_OK && options->name)
		status = natsOptions_SetName(bus->options, options->name);
	if (status == NATS_OK)
		status = natsOptions_SetMaxReconnect(bus->options, -1);
	if (status == NATS_OK)
		status = natsOptions_SetReconnectWait(bus->options, RECONNECT_MS);
	if (status == NATS_OK)
		status = natsOptions_SetReconnectBufSize(bus->options, RECONNECT_BUFFER);
	if (status == NATS_OK)
		status = natsOptions_SetPingInterval(bus->options, PING_MS);
	if (status == NATS_OK)
		status = natsOptions_SetWriteDeadline(bus->options, PING_MS);
	return status == NATS_OK ? natsOptions_SetErrorHandler(bus->options, on_error, NULL)
				 : status;
}

int fay_bus_open(const struct fay_bus_options *options, struct fay_bus **result,
		 struct fay_error *error)
{
	if (check(options, error))
		return error->code;
	struct fay_bus *bus = calloc(1, sizeof(*bus));
	if (!bus)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	natsStatus status = set_options(bus, options);
	if (status == NATS_OK)
		status = natsConnection_Connect(&bus->connection, bus->options);
	if (status != NATS_OK) {
		const char *host = strrchr(options->url, '@'); /* no password in a message */
		fay_error_set(error, FAY_E_REFUSED, "cannot connect to NATS at %s: %s",
			      host ? host + 1 : options->url, natsStatus_GetText(status));
		fay_bus_close(bus);
		return error->code;
	}
	*result = bus;
	return FAY_OK;
}

void fay_bus_close(struct fay_bus *bus)
{
	if (!bus)
		return;
	natsConnection_Destroy(bus->connection);
	natsOptions_Destroy(bus->options);
	free(bus);
}

bool fay_bus_connected(const struct fay_bus *bus)
{
	return natsConnection_Status(bus->connection) == NATS_CONN_STATUS_CONNECTED;
}

int fay_bus_check_open(const struct fay_bus *bus, struct fay_error *error)
{
	const char *why = NULL;
	if (!natsConnection_IsClosed(bus->connection))
		return FAY_OK;
	natsConnection_GetLastError(bus->connection, &why);
	return fay_error_set(error, FAY_E_REFUSED, "NATS has ended the connection: %s",
			     why && *why ? why : "no reason given");
}

uint64_t fay_bus_connections(const struct fay_bus *bus)
{
	natsStatistics *statistics = NULL;
	uint64_t again = 0;
	if (natsStatistics_Create(&statistics) == NATS_OK &&
	    natsConnection_GetStats(bus->connection, statistics) == NATS_OK)
		natsStatistics_GetCounts(statistics, NULL, NULL, NULL, NULL, &again);
	natsStatistics_Destroy(statistics);
	return again + 1;
}

bool fay_bus_send(struct fay_bus *bus, const char *subject, const void *bytes, size_t size)
{
	return fay_bus_connected(bus) &&
	       natsConnection_Publish(bus->connection, subject, bytes, (int)size) == NATS_OK;
}

bool fay_bus_send_for_reply(struct fay_bus *bus, const char *subject, const char *reply,
			    const void *bytes, size_t size)
{
	return fay_bus_connected(bus) &&
	       natsConnection_PublishRequest(bus->connection, subject, reply, bytes, (int)size) ==
		       NATS_OK;
}

void fay_bus_flush(struct fay_bus *bus, int timeout_ms)
{
	natsConnection_FlushTimeout(bus->connection, timeout_ms);
}

int fay_bus_subscribe(struct fay_bus *bus, const char *subject, struct fay_subscription **result,
		      struct fay_error *error)
{
	struct fay_subscription *subscription = calloc(1, sizeof(*subscription));
	if (!subscription)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	natsStatus status =
		natsConnection_SubscribeSync(&subscription->subscription, bus->connection, subject);
	if (status == NATS_OK)
		status = natsSubscription_SetPendingLimits(subscription->subscription,
							   PENDING_MESSAGES, PENDING_BYTES);
	if (status != NATS_OK) {
		fay_bus_unsubscribe(subscription);
		return fay_error_set(error, FAY_E_REFUSED, "cannot subscribe to %s: %s", subject,
				     natsStatus_GetText(status));
	}
	*result = subscription;
	return FAY_OK;
}

void fay_bus_unsubscribe(struct fay_subscription *subscription)
{
	if (!subscription)
		return;
	natsSubscription_Unsubscribe(subscription->subscription);
	natsSubscription_Destroy(subscription->subscription);
	free(subscription);
}

bool fay_bus_next(struct fay_subscription *subscription, int timeout_ms,
		  struct fay_message *message)
{
	natsMsg *got = NULL;
	if (natsSubscription_NextMsg(&got, subscription->subscription, timeout_ms) != NATS_OK)
		return false;
	message->bytes = natsMsg_GetData(got);
	message->size = (size_t)natsMsg_GetDataLength(got);
	message->subject = natsMsg_GetSubject(got);
	message->handle = got;
	return true;
}

void fay_message_done(struct fay_message *message)
{
	natsMsg_Destroy(message->handle);
	message->handle = NULL;
}
