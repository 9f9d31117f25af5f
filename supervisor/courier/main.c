/*
 * mcp-sandboxd-courier - sends webhooks and spans to other servers
 *
 * Started by mcp-sandboxd where WEBHOOKS or OTLP_ENDPOINT is set; an envoy
 * (common/envoy.h).  The front says what is sent and what of it is sent again;
 * whereto it may go is said by the settings, which come from the supervisor,
 * and what webhooks are signed with is never here.
 *
 * Webhooks and the collector have a postman each: a connection that is kept is
 * used again without being judged, and the collector may be where no webhook
 * may go.
 */
#include <stdio.h>

#include "common/envoy.h"
#include "common/msg/chan.h"
#include "common/outside.h"
#include "common/weburl.h"
#include "common/xmalloc.h"
#include "supervisor/courier/headers.h"
#include "supervisor/courier/post.h"
#include "supervisor/courier/resolver.h"

#define SPANS_PATH "/v1/traces"
#define HEADER_MAX 128
#define OWNER_SPANS UINT64_MAX /* no tenant has it */

struct courier {
	struct conf *conf;
	struct ipc_chan *front;
	struct resolver *names;
	struct postman *hooks;
	struct postman *spans;
	struct outside_allow allow;
	struct headers headers;
	char *collector; /* URL; "": none */
	struct weburl collector_url;
};

static struct courier courier;

/* ---- what came of it */

static void
on_done(const struct post_answer *a, void *arg)
{
	struct courier *c = arg;

	envoy_worked();
	msg_send_posted(c->front,
	    &(struct msg_posted){.id = a->id,
		.status = a->status,
		.retry_after_s = a->retry_after_s,
		.why = a->why});
}

static void
refuse(struct courier *c, uint64_t id, const struct err *why)
{
	char text[POST_WHY_MAX + 1];

	(void)snprintf(text, sizeof(text), "%.*s", POST_WHY_MAX, why->msg);
	msg_send_posted(c->front, &(struct msg_posted){.id = id, .why = text});
}

/* ---- what the front wants */

/* As it was judged when it was set, by settings that may have changed since. */
static int
check_url(const struct courier *c, const char *text, struct weburl *out,
    struct err *e)
{
	if (weburl_parse(text, out, e) != 0)
		return e->code;
	if (!out->is_https && !conf_bool(c->conf, CONF_WEBHOOK_ALLOW_HTTP))
		return err_set(e, ERR_POLICY,
		    "its URL is not https, and WEBHOOK_ALLOW_HTTP is false");
	return 0;
}

static int
on_post_hook(void *arg, const struct msg_post_hook *m, struct err *e)
{
	char id[HEADER_MAX], when[HEADER_MAX], signature[HEADER_MAX];
	const char *const headers[] = {id, when, signature, NULL};
	struct courier *c = arg;
	struct weburl url;
	struct err why;

	if (check_url(c, m->url, &url, &why) != 0) {
		refuse(c, m->id, &why);
		return 0;
	}
	(void)snprintf(id, sizeof(id), "webhook-id: %s", m->hook_id);
	(void)snprintf(when, sizeof(when), "webhook-timestamp: %lld",
	    (long long)m->timestamp_s);
	(void)snprintf(signature, sizeof(signature), "webhook-signature: %s",
	    m->signature);
	return postman_send(c->hooks,
	    &(struct post_ask){.id = m->id,
		.owner = m->tenant,
		.url = m->url,
		.to = &url,
		.headers = headers,
		.body = m->body,
		.allow = &c->allow},
	    e);
}

static int
on_post_spans(void *arg, const struct msg_post_spans *m, struct err *e)
{
	struct courier *c = arg;

	if (c->collector[0] == '\0')
		return err_set(
		    e, ERR_PROTO, "spans, and there is no collector");
	return postman_send(c->spans,
	    &(struct post_ask){.id = m->id,
		.owner = OWNER_SPANS,
		.url = c->collector,
		.to = &c->collector_url,
		.headers = (const char *const *)c->headers.lines,
		.body = m->body},
	    e);
}

static const struct msg_front_to_courier handlers = {
    .on_post_hook = on_post_hook, .on_post_spans = on_post_spans};

static int
on_message(struct ipc_msg *m, void *arg, struct err *e)
{
	return msg_dispatch_front_to_courier(&handlers, m, arg, e);
}

static void
on_front(struct ipc_chan *front, void *arg)
{
	struct courier *c = arg;

	c->front = front;
}

/* ---- life */

static char *
make_collector(const char *endpoint)
{
	size_t n = strlen(endpoint);

	if (n == 0)
		return xstrdup("");
	while (n > 0 && endpoint[n - 1] == '/')
		n--;
	return xasprintf("%.*s" SPANS_PATH, (int)n, endpoint);
}

static int
on_open(
    struct event_base *base, const struct conf *conf, void *arg, struct err *e)
{
	struct courier *c = arg;
	const char *authorities;

	c->conf = conf_copy(conf);
	authorities = conf_str(c->conf, CONF_COURIER_CA_FILE);
	if (outside_parse(
		conf_list(c->conf, CONF_WEBHOOK_ALLOW), &c->allow, e) != 0)
		return err_wrap(e, "WEBHOOK_ALLOW");
	if (headers_read(
		conf_str(c->conf, CONF_OTLP_HEADERS_FILE), &c->headers, e) != 0)
		return e->code;
	c->collector = make_collector(conf_str(c->conf, CONF_OTLP_ENDPOINT));
	if (c->collector[0] != '\0' &&
	    weburl_parse(conf_str(c->conf, CONF_OTLP_ENDPOINT),
		&c->collector_url, e) != 0)
		return err_wrap(e, "OTLP_ENDPOINT");
	c->names = resolver_new(base);
	c->hooks = postman_new(base, c->names, authorities, on_done, c);
	c->spans = postman_new(base, c->names, authorities, on_done, c);
	return 0;
}

static bool
is_busy(void *arg)
{
	const struct courier *c = arg;

	return postman_count(c->hooks) + postman_count(c->spans) > 0;
}

static int
on_check(struct event_base *base, const struct conf *conf, struct err *e)
{
	struct headers headers;
	int rc =
	    headers_read(conf_str(conf, CONF_OTLP_HEADERS_FILE), &headers, e);

	(void)base;
	headers_clear(&headers);
	return rc;
}

static const struct envoy_file files[] = {
    {"COURIER_CA_FILE", CONF_COURIER_CA_FILE},
    {"OTLP_HEADERS_FILE", CONF_OTLP_HEADERS_FILE}, {NULL, CONF_KEY_COUNT}};
static const struct envoy_ops ops = {.files = files,
    .run_as = "RUN_AS_COURIER",
    .on_open = on_open,
    .on_check = on_check,
    .on_front = on_front,
    .is_busy = is_busy,
    .on_message = on_message};

int
main(int argc, char **argv)
{
	return envoy_main(
	    argc, argv, MSG_ROLE_COURIER, CHILD_COURIER_INDEX, &ops, &courier);
}
