#include "supervisor/keys/issuer.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/keys/fetch.h"

#define DEPTH_MAX 16

struct issuer {
	char *url;
	char *jwks_url; /* "": the metadata says it */
	struct fetch *fetch;
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
	fetch_start(i->fetch, url);
}

static void
ask_metadata(struct issuer *i)
{
	AUTO(auto_free) char *url = metadata_url(i, i->place);

	i->state = ISSUER_METADATA;
	fetch_start(i->fetch, url);
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

static void
fetched_cb(int rc, const struct buf *body, const struct err *why, void *arg)
{
	struct issuer *i = arg;

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
	i->fetch =
	    fetch_new(base, conf_str(conf, CONF_OAUTH_CA_FILE), fetched_cb, i);
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
	fetch_free(i->fetch);
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
