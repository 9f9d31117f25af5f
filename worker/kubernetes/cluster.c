/*
 * A call's tries are calls of api.h, one after the other:
 *
 *	call_try	asks, with the token as it is now
 *	done_cb		an answer: the call is over, or tried again at once (a
 *			401, and there is another token) or after a while
 *(again) call_end	the asker is told; the call is gone before
 *
 * Token and authority stand in files that others renew: they are looked at
 * before each try, and read when they changed and at the latest each minute.
 */
#include "worker/kubernetes/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/http/server_address.h"
#include "worker/http/certs.h"
#include "worker/kubernetes/backoff.h"
#include "worker/kubernetes/kubeconfig.h"
#include "worker/kubernetes/cluster_refusal.h"
#include "worker/operation.h"

#define BODY_MAX 1048576
#define DEPTH_MAX 64 /* of JSON */
#define RENEW_MS 60000
#define FILES_MAX 2
#define OWN_HEADERS 3
#define TOO_MANY_REQUESTS 429

/* A file that somebody renews. */
struct renewed {
	const char *path; /* NULL: none */
	struct timespec changed;
	ino_t inode; /* which a new file in its place has another of */
	uint64_t read_ms;
};

struct cluster {
	struct event_base *base;
	struct api *api;
	struct kubeconfig config;
	struct server_address at;
	struct certs_look certs;
	struct renewed token, ca;
	unsigned int ntokens; /* different ones so far */
	char *directories[FILES_MAX];
	const char *files[FILES_MAX + 1];
	bool freeing;
	TAILQ_HEAD(, cluster_call) calls;
};

struct cluster_call {
	struct cluster *k;
	struct cluster_ask ask;      /* its texts are not looked at again */
	char *path, *body, *upgrade; /* they are these */
	char **headers;              /* then NULL */
	struct api_call *call;       /* NULL: it waits */
	struct timer *again;
	uint64_t started_ms;
	unsigned int waits;
	unsigned int token; /* ntokens of the try */
	bool is_renewed;    /* it was refused once for its token */
	TAILQ_ENTRY(cluster_call) link;
};

/* ---- requests that fail */

static const struct operation_shape shapes[] = {
    {"GET", "/version", "", NULL, OPERATION_INFO},
    {"GET", "/readyz", "", NULL, OPERATION_INFO},
    {"POST", "/apis/authorization.k8s.io/", "", NULL, OPERATION_INFO},
    {"GET", "/api/v1/namespaces/", "/pods", "watch=", OPERATION_EVENTS},
    {"GET", "/api/v1/namespaces/", "/pods", NULL, OPERATION_LIST},
    {"GET", "/api/v1/namespaces/", "/exec", NULL, OPERATION_EXEC},
    {"GET", "/api/v1/namespaces/", "", NULL, OPERATION_INSPECT},
    {"POST", "/api/v1/namespaces/", "/pods", NULL, OPERATION_CREATE},
    {"PATCH", "/api/v1/namespaces/", "/resize", NULL, OPERATION_UPDATE},
    {"DELETE", "/api/v1/namespaces/", "", NULL, OPERATION_REMOVE},
};

static void
on_ended(const char *method, const char *path, long status, uint64_t us)
{
	operation_count(
	    operation_of(shapes, ARRAY_LEN(shapes), method, path), status, us);
}

/* What a person can do about it, behind "the API server at WHERE". */
static const char *const tls_advice[] = {
    [API_TLS_UNTRUSTED] = "shows a certificate that certificate-authority does "
			  "not vouch for: take the one of this cluster",
    [API_TLS_EXPIRED] = "shows a certificate that is too old or not valid yet: "
			"renew it, or set the clock",
    [API_TLS_MISNAMED] = "shows a certificate for another name: name it in "
			 "server as the certificate does, or by "
			 "tls-server-name",
    [API_TLS_NONE] = "does not speak TLS there",
    [API_TLS_REFUSED] = "does not take our client certificate",
    [API_TLS_FILE] = "cannot be asked, a certificate or key of ours is not "
		     "good"};

/* ERR_LOST: of one that reads it is ERR_BACKEND. */
static int
explain(const struct api_failure *f, struct err *e)
{
	int n = (int)strcspn(f->path, "?");

	switch (f->kind) {
	case API_NOBODY:
		return err_set(e, ERR_BACKEND,
		    "no API server at %.100s: %.160s; see whether the cluster "
		    "runs and KUBECONFIG is of it",
		    f->where,
		    f->number != 0        ? strerror(f->number) :
			f->why[0] != '\0' ? f->why :
					    "no answer");
	case API_LATE:
		return err_set(e, ERR_LOST,
		    "the API server at %.100s did not answer %s %.*s within "
		    "%u ms",
		    f->where, f->method, n, f->path, f->timeout_ms);
	case API_TOO_LARGE:
		return err_set(e, ERR_LOST,
		    "the API server's answer to %s %.*s is larger than %zu "
		    "bytes",
		    f->method, n, f->path, f->limit);
	case API_UNSENDABLE:
		return err_set(e, ERR_BACKEND,
		    "a path or header for the API server has a blank or a "
		    "control character");
	case API_ENDING:
		return err_set(e, ERR_WRONG_STATE, "the worker is ending");
	case API_TLS_UNTRUSTED:
	case API_TLS_EXPIRED:
	case API_TLS_MISNAMED:
	case API_TLS_NONE:
	case API_TLS_REFUSED:
	case API_TLS_FILE:
		return err_set(e, ERR_BACKEND,
		    "the API server at %.100s %s (%.120s)", f->where,
		    tls_advice[f->kind], f->why);
	case API_BROKEN:
	default:
		return err_set(e, ERR_LOST,
		    "the API server at %.100s broke off its answer to %s %.*s: "
		    "%.120s",
		    f->where, f->method, n, f->path, f->why);
	}
}

static const struct api_server cluster_server = {explain, on_ended};

/* ---- credentials */

static struct api_tls
tls_of(const struct kubeconfig *c)
{
	return (struct api_tls){.ca = c->ca,
	    .cert = c->cert,
	    .key = c->key,
	    .is_pem = true,
	    .name = c->tls_server_name};
}

/* Whether it is to be read, now or in vain. */
static bool
is_due(struct renewed *r)
{
	uint64_t now = clock_mono_ms();
	struct stat st;

	if (r->path == NULL || stat(r->path, &st) == -1)
		return false;
	if (r->inode == st.st_ino && now - r->read_ms < RENEW_MS &&
	    memcmp(&r->changed, &st.st_mtim, sizeof(st.st_mtim)) == 0)
		return false;
	r->inode = st.st_ino;
	r->changed = st.st_mtim;
	r->read_ms = now;
	return true;
}

static void
renew_token(struct cluster *k)
{
	static struct log_limit limit;
	char *token;
	struct err e;

	if (!is_due(&k->token))
		return;
	if (kubeconfig_read_token(k->token.path, &token, &e) != 0) {
		log_warn_limited(&limit, "the cluster's token: %s", e.msg);
		return;
	}
	if (strcmp(token, k->config.token) != 0)
		k->ntokens++;
	kubeconfig_set_token(&k->config, token);
}

static void
renew_ca(struct cluster *k)
{
	static struct log_limit limit;
	struct api_tls tls = tls_of(&k->config);
	char *ca = NULL;
	struct err e;
	size_t n;

	if (!is_due(&k->ca))
		return;
	if (fd_read_file(k->ca.path, KUBECONFIG_BYTES_MAX, &ca, &n, &e) != 0) {
		log_warn_limited(&limit, "the cluster's authority: %s", e.msg);
		return;
	}
	if (strcmp(ca, k->config.ca) == 0) {
		free(ca);
		return;
	}
	free(k->config.ca);
	k->config.ca = ca;
	tls.ca = ca;
	api_renew_tls(k->api, &tls);
}

/* ---- a call's end */

static bool
call_reads(const struct cluster_call *c)
{
	return c->upgrade == NULL && strcmp(c->ask.method, "GET") == 0;
}

static void
call_free(struct cluster_call *c)
{
	TAILQ_REMOVE(&c->k->calls, c, link);
	timer_free(c->again);
	free(c->path);
	free(c->body);
	free(c->upgrade);
	for (size_t i = 0; c->headers[i] != NULL; i++)
		free(c->headers[i]);
	free(c->headers);
	free(c);
}

static bool
is_good(const struct api_answer *a)
{
	return a->rc == 0 &&
	    (a->stream != NULL || (a->status >= 200 && a->status < 300));
}

/* e, of an answer that is not good. */
static int
call_judge(const struct cluster_call *c, const struct api_answer *a,
    const struct cluster_refusal_said *said, struct err *e)
{
	const struct cluster_refusal_asked asked = {.method = c->ask.method,
	    .path = c->path,
	    .where = c->k->config.url,
	    .status = a->status,
	    .upgrades = c->upgrade != NULL};

	if (a->rc == 0)
		return cluster_refusal_judge(said, &asked, e);
	*e = *a->why;
	if (a->rc == ERR_LOST && call_reads(c))
		e->code = ERR_BACKEND;
	return e->code;
}

static void
call_end(struct cluster_call *c, const struct api_answer *a, json_t *body,
    const struct cluster_refusal_said *said)
{
	void (*on_done)(const struct cluster_answer *, void *) = c->ask.on_done;
	struct cluster_answer out = {.status = a->rc == 0 ? a->status : 0,
	    .body = body,
	    .stream = a->stream,
	    .raw = a};
	void *arg = c->ask.arg;
	struct err e = {.code = 0};

	if (!is_good(a)) {
		out.rc = call_judge(c, a, said, &e);
		(void)strcpy(out.reason, said->reason);
	}
	out.why = &e;
	call_free(c);
	on_done(&out, arg);
}

/* Of one that is not asked now. */
static void
call_end_early(struct cluster_call *c)
{
	const struct api_failure f = {.kind = API_ENDING, .path = ""};
	const struct cluster_refusal_said said = {.is_status = false};
	struct api_answer a = {.head = ""};
	struct err e;

	a.rc = explain(&f, &e);
	a.why = &e;
	call_end(c, &a, NULL, &said);
}

/* ---- whether it is tried again */

static void call_try(struct cluster_call *c);

/* By whichever of both places the server says it in; 0: not said. */
static uint64_t
said_wait_ms(
    const struct api_answer *a, const struct cluster_refusal_said *said)
{
	const char *header = api_header(a, "Retry-After");
	size_t digits = header != NULL ? strspn(header, "0123456789") : 0;

	if (digits > 0 && digits < 6)
		return strtoul(header, NULL, 10) * 1000;
	return (uint64_t)said->retry_s * 1000;
}

/* Nothing was done, or reading it twice is the same. */
static bool
is_worth_waiting(const struct cluster_call *c, long status)
{
	return status == TOO_MANY_REQUESTS ||
	    ((status == 503 || status == 504) && call_reads(c));
}

/* 0: as long as it likes. */
static uint64_t
call_left_ms(const struct cluster_call *c)
{
	uint64_t age = clock_mono_ms() - c->started_ms;

	if (c->ask.timeout_ms == 0)
		return 0;
	return age < c->ask.timeout_ms ? c->ask.timeout_ms - age : 1;
}

static bool
call_waits(struct cluster_call *c, const struct api_answer *a,
    const struct cluster_refusal_said *said)
{
	uint64_t ms;

	if (c->k->freeing || a->rc != 0 || !is_worth_waiting(c, a->status))
		return false;
	ms = said_wait_ms(a, said);
	if (ms == 0)
		ms = backoff_ms(c->waits);
	if (ms >= call_left_ms(c))
		return false;
	c->waits++;
	timer_set_ms(c->again, ms);
	return true;
}

/* The token was renewed since, or is now. */
static bool
call_has_new_token(struct cluster_call *c, const struct api_answer *a)
{
	struct cluster *k = c->k;

	if (k->freeing || a->rc != 0 || a->status != 401 || c->is_renewed ||
	    k->token.path == NULL)
		return false;
	k->token.read_ms = 0;
	k->token.inode = 0;
	renew_token(k);
	c->is_renewed = true;
	return c->token != k->ntokens;
}

static json_t *
parse_body(const struct cluster_call *c, const struct api_answer *a)
{
	size_t max = c->ask.max_body;
	json_t *body = NULL;

	if (a->rc != 0 || a->stream != NULL || a->len == 0 ||
	    a->body[0] != '{' ||
	    js_parse(a->body, a->len, max, DEPTH_MAX, &body, NULL) != 0)
		return NULL;
	return body;
}

static void
done_cb(const struct api_answer *a, void *arg)
{
	struct cluster_call *c = arg;
	AUTO(auto_json) json_t *body = parse_body(c, a);
	struct cluster_refusal_said said = {.is_status = false};

	c->call = NULL;
	if (a->rc == 0 && !is_good(a))
		cluster_refusal_read(body, a->body, a->len, &said);
	if (call_has_new_token(c, a))
		call_try(c);
	else if (!call_waits(c, a, &said))
		call_end(c, a, body, &said);
}

static void
line_cb(const char *line, size_t n, void *arg)
{
	const struct cluster_call *c = arg;

	c->ask.on_line(line, n, c->ask.arg);
}

/* ---- a call */

/* As api_start takes them; authorization NULL: there is no token. */
static const char **
headers_with_token(const struct cluster_call *c, const char *authorization)
{
	size_t n = 0;
	const char **all;

	while (c->headers[n] != NULL)
		n++;
	all = xcalloc(n + OWN_HEADERS + 1, sizeof(*all));
	for (size_t i = 0; i < n; i++)
		all[i] = c->headers[i];
	all[n++] = "Accept: application/json";
	all[n++] = "User-Agent: mcp-sandboxd";
	all[n] = authorization;
	return all;
}

static void
call_try(struct cluster_call *c)
{
	struct cluster *k = c->k;
	AUTO(auto_free) const char **headers = NULL;
	char *authorization = NULL;

	renew_token(k);
	renew_ca(k);
	if (k->config.token != NULL)
		authorization =
		    xasprintf("Authorization: Bearer %s", k->config.token);
	c->token = k->ntokens;
	headers = headers_with_token(c, authorization);
	c->call = api_start(k->api,
	    &(struct api_ask){.method = c->ask.method,
		.path = c->path,
		.body = c->body,
		.body_len = c->body != NULL ? strlen(c->body) : 0,
		.content_type = c->ask.content_type,
		.headers = headers,
		.upgrade = c->upgrade,
		.timeout_ms = (uint32_t)call_left_ms(c),
		.max_body = c->ask.max_body,
		.max_line = c->ask.max_line,
		.on_line = c->ask.on_line != NULL ? line_cb : NULL,
		.on_done = done_cb,
		.arg = c});
	if (authorization != NULL)
		explicit_bzero(authorization, strlen(authorization));
	free(authorization);
}

static void
again_cb(void *arg)
{
	call_try(arg);
}

static char **
copy_headers(const char *const *from)
{
	size_t n = 0;
	char **all;

	while (from != NULL && from[n] != NULL)
		n++;
	all = xcalloc(n + 1, sizeof(*all));
	for (size_t i = 0; i < n; i++)
		all[i] = xstrdup(from[i]);
	return all;
}

struct cluster_call *
cluster_start(struct cluster *k, const struct cluster_ask *ask)
{
	struct cluster_call *c = xcalloc(1, sizeof(*c));

	c->k = k;
	c->ask = *ask;
	c->path = xstrdup(ask->path);
	c->body = ask->body != NULL ? xstrdup(ask->body) : NULL;
	c->upgrade = ask->upgrade != NULL ? xstrdup(ask->upgrade) : NULL;
	if (c->ask.max_body == 0)
		c->ask.max_body = BODY_MAX;
	c->headers = copy_headers(ask->headers);
	c->again = timer_new(k->base, again_cb, c);
	c->started_ms = clock_mono_ms();
	TAILQ_INSERT_TAIL(&k->calls, c, link);
	if (!k->freeing)
		call_try(c);
	return c;
}

void
cluster_cancel(struct cluster_call *c)
{
	if (c->call != NULL)
		api_cancel(c->call);
	call_free(c);
}

/* ---- the cluster */

static char *
directory_of(const char *path)
{
	return xstrndup(path, (size_t)(strrchr(path, '/') - path));
}

static void
list_files(struct cluster *k)
{
	const char *const paths[FILES_MAX] = {k->token.path, k->ca.path};
	size_t n = 0;

	for (size_t i = 0; i < FILES_MAX; i++)
		if (paths[i] != NULL)
			k->directories[n++] = directory_of(paths[i]);
	k->files[0] = k->directories[0];
	if (n == 2 && strcmp(k->directories[0], k->directories[1]) != 0)
		k->files[1] = k->directories[1];
}

static int
read_setup(struct cluster *k, const struct cluster_setup *setup, struct err *e)
{
	struct api_tls tls;
	int rc = setup->kubeconfig != NULL && setup->kubeconfig[0] != '\0' ?
	    kubeconfig_read(setup->kubeconfig, setup->context, &k->config, e) :
	    kubeconfig_in_cluster(setup->account_directory, &k->config, e);

	if (rc != 0)
		return rc;
	tls = tls_of(&k->config);
	if (certs_look_at(&tls, &k->certs, e) != 0) {
		(void)err_wrap(e, "the cluster at %.100s", k->config.url);
		return ERR_INVAL;
	}
	k->token.path = k->config.token_file;
	k->ca.path = k->config.ca_file;
	list_files(k);
	if (server_address_parse(k->config.url, &k->at, e) != 0)
		return ERR_INVAL;
	return api_set_address(k->api, k->config.url, &tls, e);
}

int
cluster_open(struct event_base *base, const struct cluster_setup *setup,
    struct cluster **out, struct err *e)
{
	struct cluster *k = xcalloc(1, sizeof(*k));

	k->base = base;
	k->api = api_new(base, &cluster_server);
	TAILQ_INIT(&k->calls);
	if (read_setup(k, setup, e) != 0) {
		cluster_free(k);
		return ERR_INVAL;
	}
	*out = k;
	return 0;
}

/* A callback may start another call, and cancel any. */
void
cluster_free(struct cluster *k)
{
	struct cluster_call *c;

	if (k == NULL)
		return;
	k->freeing = true;
	api_free(k->api);
	while ((c = TAILQ_FIRST(&k->calls)) != NULL)
		call_end_early(c);
	kubeconfig_clear(&k->config);
	for (size_t i = 0; i < FILES_MAX; i++)
		free(k->directories[i]);
	free(k);
}

const char *
cluster_namespace(const struct cluster *k)
{
	return k->config.ns;
}

const char *const *
cluster_files(const struct cluster *k)
{
	return k->files;
}

uint16_t
cluster_port(const struct cluster *k)
{
	return k->at.port;
}

void
cluster_look(const struct cluster *k, struct cluster_facts *out)
{
	*out = (struct cluster_facts){.url = k->config.url,
	    .is_loopback = k->at.is_loopback,
	    .peer_ends_ms = api_peer_expires_ms(k->api),
	    .ca_ends_ms = k->certs.ca_expires_ms,
	    .own_ends_ms = k->certs.own_expires_ms};
}
