/*
 * http_client.c - who asks, and what of a proxy's word about that is believed
 *
 * The lines of X-Forwarded-For are one list in the order in which they came
 * (RFC 9110, section 5.3), which forwarded.h reads from its end.  Of
 * X-Forwarded-Proto and X-Forwarded-Host the last element counts: the proxy
 * that is nearest wrote it.  From others all three are nothing.
 */
#include "supervisor/http/http_int.h"

#include <strings.h>

#include "common/xmalloc.h"

static void
take_host(struct http_exchange *x, const char *line)
{
	size_t n;
	const char *p = forwarded_last(line, &n);

	if (x->seen_host != NULL || p == NULL)
		return;
	x->seen_host = xcalloc(1, n + 1);
	memcpy(x->seen_host, p, n);
}

static bool
is_https(const char *line)
{
	size_t n;
	const char *p = forwarded_last(line, &n);

	return p != NULL && n == strlen("https") &&
	    strncasecmp(p, "https", n) == 0;
}

void
http_client_find(struct http_exchange *x)
{
	struct http_server *s = x->server;
	struct forwarded_walk walk = {
	    .proxies = &s->proxies, .client = &x->client};
	struct evkeyvalq *headers = evhttp_request_get_input_headers(x->req);
	const struct evkeyval *kv;
	bool has_proto = false;

	x->client = x->conn->peer;
	x->seen_https = x->conn->ssl != NULL;
	if (!forwarded_is_proxy(&s->proxies, &x->client))
		return;
	TAILQ_FOREACH_REVERSE (kv, headers, evkeyvalq, next) {
		if (strcasecmp(kv->key, "X-Forwarded-For") == 0) {
			forwarded_step(&walk, kv->value);
		} else if (strcasecmp(kv->key, "X-Forwarded-Host") == 0) {
			take_host(x, kv->value);
		} else if (!has_proto &&
		    strcasecmp(kv->key, "X-Forwarded-Proto") == 0) {
			has_proto = true;
			x->seen_https = is_https(kv->value);
		}
	}
}

const struct netaddr *
http_peer(const struct http_exchange *x)
{
	return x->conn != NULL ? &x->conn->peer : NULL;
}

const struct netaddr *
http_client(const struct http_exchange *x)
{
	return &x->client;
}

const char *
http_seen_scheme(const struct http_exchange *x)
{
	return x->seen_https ? "https" : "http";
}

uint32_t
http_admit(const struct http_exchange *x)
{
	return limiter_admit(x->server->limiter, &x->client);
}
