/*
 * issuer.c - one document after the other of the authorization server
 *
 * By libcurl, bounded in bytes and time; redirects are not followed, no proxy,
 * no cookie, no password; certificates are judged by the system's authorities
 * or by those of one file.  The loop goes on meanwhile.
 */
#include "supervisor/keys/issuer.h"

#include <curl/curl.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define DEPTH_MAX 16
#define FETCH_MAX 60000 /* bytes: what one message of ours holds */
#define TOTAL_MS 10000L
#define CONNECT_MS 5000L
#define LOOK_MS 10 /* one request in minutes: no need of its events */

struct issuer {
	char *url;
	char *jwks_url; /* "": the metadata says it */
	CURLM *multi;
	CURL *easy; /* NULL: nothing is under way */
	struct timer *look;
	struct buf body;
	char *asked;   /* URL of what is under way */
	char *ca_file; /* "": the system's authorities */
	char curl_why[CURL_ERROR_SIZE];
	struct timer *timer;
	const struct issuer_ops *ops;
	void *arg;
	enum {
		ISSUER_RESTS,
		ISSUER_METADATA,
		ISSUER_KEYS
	} state;
	unsigned int place; /* of the metadata */
	uint64_t asked_ms;
	uint32_t again_ms;
};

/* ---- asking */

static size_t
write_cb(const char *p, size_t size, size_t n, void *arg)
{
	struct issuer *i = arg;

	return buf_append(&i->body, p, size * n) == 0 ? size * n : 0;
}

static void
fetch(struct issuer *i, const char *url)
{
	CURL *c = curl_easy_init();

	if (c == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	i->easy = c;
	i->asked = xstrdup(url);
	i->curl_why[0] = '\0';
	(void)curl_easy_setopt(c, CURLOPT_URL, url);
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(c, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TOTAL_MS);
	/* Else the loop waits for a look-up that hangs, however long it does.
	 */
	(void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	(void)curl_easy_setopt(c, CURLOPT_MAXFILESIZE, (long)FETCH_MAX);
	(void)curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
	(void)curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "mcp-sandboxd");
	(void)curl_easy_setopt(
	    c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (i->ca_file[0] != '\0')
		(void)curl_easy_setopt(c, CURLOPT_CAINFO, i->ca_file);
	(void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, i->curl_why);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, write_cb);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, i);
	if (curl_multi_add_handle(i->multi, c) != CURLM_OK)
		fatal(EXIT_MEMORY, "out of memory");
	timer_set_ms(i->look, 0);
}

/* RFC 8414, section 3.1, and OpenID Connect Discovery, section 4; NULL: no
 * more. */
static char *
metadata_url(const struct issuer *i, unsigned int place)
{
	const char *host = strstr(i->url, "://") + 3;
	const char *path = host + strcspn(host, "/");
	int origin = (int)(path - i->url), n = (int)strlen(path);

	if (n > 0 && path[n - 1] == '/')
		n--;
	switch (place) {
	case 0:
		return xasprintf("%.*s/.well-known/oauth-authorization-server"
				 "%.*s",
		    origin, i->url, n, path);
	case 1:
		return xasprintf("%.*s%.*s/.well-known/openid-configuration",
		    origin, i->url, n, path);
	default:
		return NULL;
	}
}

static void
fail(struct issuer *i, const struct err *why)
{
	i->state = ISSUER_RESTS;
	timer_set_ms(i->timer, i->again_ms);
	i->again_ms *= 2;
	if (i->again_ms > ISSUER_REFRESH_MS)
		i->again_ms = ISSUER_REFRESH_MS;
	i->ops->on_failed(why, i->arg);
}

static void
ask_keys(struct issuer *i, const char *url)
{
	i->state = ISSUER_KEYS;
	fetch(i, url);
}

static void
ask_metadata(struct issuer *i)
{
	AUTO(auto_free) char *url = metadata_url(i, i->place);

	i->state = ISSUER_METADATA;
	fetch(i, url);
}

/* Without TLS only where the issuer itself is: another one's metadata leads to
 * nothing on this machine. */
static bool
may_have_keys_at(const struct issuer *i, const char *url)
{
	static const char tls[] = "https://";
	size_t n = strlen(tls);

	return conf_is_safe_url(url) &&
	    (strncmp(url, tls, n) == 0 || strncmp(i->url, tls, n) != 0);
}

/* The issuer is compared as it is: RFC 8414, section 3.3. */
static int
read_metadata(
    const struct issuer *i, const struct buf *body, char **url, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	const char *issuer, *keys;

	if (js_parse((const char *)buf_data(body), buf_len(body), FETCH_MAX,
		DEPTH_MAX, &o, e) != 0)
		return err_wrap(e, "the metadata of %.150s", i->url);
	issuer = js_text(o, "issuer");
	keys = js_text(o, "jwks_uri");
	if (strcmp(issuer, i->url) != 0)
		return err_set(e, ERR_INVAL,
		    "the metadata is of the issuer \"%.150s\", and "
		    "OAUTH_ISSUER is \"%.150s\": they must be the same",
		    issuer, i->url);
	if (!may_have_keys_at(i, keys))
		return err_set(e, ERR_INVAL,
		    "the metadata of %.150s names no https URL as jwks_uri: "
		    "set OAUTH_JWKS_URL",
		    i->url);
	*url = xstrdup(keys);
	return 0;
}

static void
take_metadata(
    struct issuer *i, int rc, const struct buf *body, const struct err *why)
{
	AUTO(auto_free) char *next = metadata_url(i, i->place + 1);
	AUTO(auto_free) char *keys = NULL;
	struct err e;

	if (rc == 0 && read_metadata(i, body, &keys, &e) == 0) {
		ask_keys(i, keys);
	} else if (rc == 0) {
		fail(i, &e);
	} else if (rc == ERR_NOTFOUND && next != NULL) {
		i->place++;
		ask_metadata(i);
	} else {
		fail(i, why);
	}
}

/* rc 0: body is the document.  ERR_NOTFOUND: the server has no such document
 * (any status 4xx: many say 400 or 403). */
static void
take(struct issuer *i, int rc, const struct buf *body, const struct err *why)
{
	if (i->state == ISSUER_METADATA) {
		take_metadata(i, rc, body, why);
		return;
	}
	if (rc != 0) {
		fail(i, why);
		return;
	}
	i->state = ISSUER_RESTS;
	i->again_ms = ISSUER_AGAIN_MS;
	timer_set_ms(i->timer, ISSUER_REFRESH_MS);
	i->ops->on_keys(body, i->arg);
}

/* ---- what comes */

static int
judge(const struct issuer *i, CURLcode code, struct err *e)
{
	long status = 0;

	(void)curl_easy_getinfo(i->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_WRITE_ERROR || code == CURLE_FILESIZE_EXCEEDED)
		return err_set(e, ERR_BACKEND, "%.200s has more than %d bytes",
		    i->asked, FETCH_MAX);
	if (code != CURLE_OK)
		return err_set(e, ERR_BACKEND, "%.200s: %.200s", i->asked,
		    i->curl_why[0] != '\0' ? i->curl_why :
					     curl_easy_strerror(code));
	if (status != 200)
		return err_set(e,
		    status / 100 == 4 ? ERR_NOTFOUND : ERR_BACKEND,
		    "%.200s answers with status %ld", i->asked, status);
	return 0;
}

static void
finish(struct issuer *i, CURLcode code)
{
	struct buf body = i->body;
	struct err e = {0};
	int rc = judge(i, code, &e);

	(void)curl_multi_remove_handle(i->multi, i->easy);
	curl_easy_cleanup(i->easy);
	i->easy = NULL;
	free(i->asked);
	i->asked = NULL;
	buf_init(&i->body, FETCH_MAX);
	take(i, rc, &body, &e); /* may start the next */
	buf_clear(&body);
}

static void
look_cb(void *arg)
{
	struct issuer *i = arg;
	const CURLMsg *m;
	int running, left;

	(void)curl_multi_perform(i->multi, &running);
	m = curl_multi_info_read(i->multi, &left);
	if (m != NULL && m->msg == CURLMSG_DONE)
		finish(i, m->data.result);
	else
		timer_set_ms(i->look, LOOK_MS);
}

/* ---- when */

static void
ask_cb(void *arg)
{
	struct issuer *i = arg;

	i->asked_ms = clock_mono_ms();
	i->place = 0;
	if (i->jwks_url[0] != '\0')
		ask_keys(i, i->jwks_url);
	else
		ask_metadata(i);
}

struct issuer *
issuer_new(struct event_base *base, const struct conf *conf,
    const struct issuer_ops *ops, void *arg)
{
	struct issuer *i = xcalloc(1, sizeof(*i));

	i->url = xstrdup(conf_str(conf, CONF_OAUTH_ISSUER));
	i->jwks_url = xstrdup(conf_str(conf, CONF_OAUTH_JWKS_URL));
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	i->multi = curl_multi_init();
	if (i->multi == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	i->look = timer_new(base, look_cb, i);
	i->ca_file = xstrdup(conf_str(conf, CONF_OAUTH_CA_FILE));
	buf_init(&i->body, FETCH_MAX);
	i->timer = timer_new(base, ask_cb, i);
	i->ops = ops;
	i->arg = arg;
	i->again_ms = ISSUER_AGAIN_MS;
	timer_set_ms(i->timer, 0);
	return i;
}

void
issuer_free(struct issuer *i)
{
	if (i == NULL)
		return;
	timer_free(i->timer);
	timer_free(i->look);
	if (i->easy != NULL) {
		(void)curl_multi_remove_handle(i->multi, i->easy);
		curl_easy_cleanup(i->easy);
	}
	(void)curl_multi_cleanup(i->multi);
	curl_global_cleanup();
	buf_clear(&i->body);
	free(i->asked);
	free(i->ca_file);
	free(i->url);
	free(i->jwks_url);
	free(i);
}

void
issuer_want(struct issuer *i)
{
	uint64_t since_ms = clock_mono_ms() - i->asked_ms;

	if (i->state == ISSUER_RESTS)
		timer_set_ms(i->timer,
		    since_ms >= ISSUER_WANTED_MS ? 0 :
						   ISSUER_WANTED_MS - since_ms);
}
