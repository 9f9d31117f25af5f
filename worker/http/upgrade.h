/*
 * upgrade.h - a request that asks the server to switch the connection to
 * another protocol
 *
 * curl has connected (CURLOPT_CONNECT_ONLY), with TLS or without; request and
 * answer go by curl_easy_send and curl_easy_recv.  When the server switches
 * (status 101) the connection is a raw stream.  Any other answer is read whole.
 */
#ifndef WORKER_HTTP_UPGRADE_H
#define WORKER_HTTP_UPGRADE_H

#include <sys/types.h>

#include <curl/curl.h>

#include "common/base.h"

#define UPGRADE_SWITCHED 101

struct event_base;
struct upgrade;

struct upgrade_ask {
	const char *method, *path, *protocol;
	const struct curl_slist *headers; /* those with a value are sent */
	const void *body;
	size_t body_len;
	size_t max_headers; /* bytes of the answer's heads */
	size_t max_body;    /* of an answer that does not switch */
};

struct upgrade_end {
	CURLcode code;
	long status;      /* of the final head; 0: it has not come whole */
	const char *head; /* the final one, as it came */
	size_t head_len;
	size_t over_limit; /* the answer has more bytes than this; 0: not so */
	const void *body;  /* of an answer that does not switch */
	size_t len;
};

/* upgrade_new - on_end comes once, never inside this call, and may free it */
struct upgrade *upgrade_new(struct event_base *base, CURL *curl,
    const struct upgrade_ask *ask,
    void (*on_end)(const struct upgrade_end *end, void *arg), void *arg);
/* upgrade_free - the connection stays curl's; NULL is fine */
void upgrade_free(struct upgrade *u);

/* Of the stream: as api_fd, api_recv and api_send (api.h). */
int upgrade_fd(const struct upgrade *u);
ssize_t upgrade_recv(struct upgrade *u, void *p, size_t n);
ssize_t upgrade_send(struct upgrade *u, const void *p, size_t n);

#endif
