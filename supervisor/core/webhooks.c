/*
 * webhooks.c - all webhooks, in order of their making
 *
 * A row is written when a person changes it and when an event is done with, or
 * failed: a line for each delivery, in the group commits of whatever else is
 * written then.
 */
#include "supervisor/core/webhooks.h"

#include <stdio.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/seal.h"
#include "supervisor/store/event_log.h"

#define DIGEST_BYTES 32
#define DOUBLINGS_MAX 12 /* beyond it is WEBHOOK_MAX_MS */

TAILQ_HEAD(webhook_list, webhook);

struct webhooks {
	struct store *store;
	struct seal_keys *keys; /* NULL: none */
	struct webhook_list list;
	const struct webhooks_ops *ops;
	void *arg;
};

/* ---- finding */

struct webhook *
webhooks_next(
    const struct webhooks *all, struct tenant_id tenant, struct webhook *w)
{
	w = w == NULL ? TAILQ_FIRST(&all->list) : TAILQ_NEXT(w, link);
	while (w != NULL && w->row.tenant != tenant.n)
		w = TAILQ_NEXT(w, link);
	return w;
}

struct webhook *
webhooks_find(const struct webhooks *all, struct tenant_id tenant,
    const struct uuid *uuid)
{
	struct webhook *w = NULL;

	while ((w = webhooks_next(all, tenant, w)) != NULL)
		if (uuid_is_equal(&w->row.uuid, uuid))
			return w;
	return NULL;
}

size_t
webhooks_count(const struct webhooks *all, struct tenant_id tenant)
{
	struct webhook *w = NULL;
	size_t n = 0;

	while ((w = webhooks_next(all, tenant, w)) != NULL)
		n++;
	return n;
}

/* ---- telling */

static void
tell_changed(struct webhook *w)
{
	if (w->all->ops != NULL)
		w->all->ops->on_changed(w, w->all->arg);
}

static void
leave(struct webhook *w)
{
	TAILQ_REMOVE(&w->all->list, w, link);
	if (w->all->ops != NULL)
		w->all->ops->on_gone(w, w->all->arg);
	store_webhook_clear(&w->row);
	free(w);
}

void
webhooks_on_change(
    struct webhooks *all, const struct webhooks_ops *ops, void *arg)
{
	struct webhook *w;

	all->ops = ops;
	all->arg = arg;
	TAILQ_FOREACH (w, &all->list, link)
		tell_changed(w);
}

/* ---- secrets */

static struct seal_for
sealed_for(const struct webhook *w, char text[UUID_TEXT_LEN + 1])
{
	uuid_format(&w->row.uuid, text);
	return (struct seal_for){w->row.tenant, text};
}

static void
seal_secret(struct webhook *w, const uint8_t *secret)
{
	char text[UUID_TEXT_LEN + 1];
	const struct seal_for what = sealed_for(w, text);

	free(w->row.sealed);
	w->row.sealed_len = WEBHOOK_SECRET_BYTES + SEAL_EXTRA_BYTES;
	w->row.sealed = xmalloc(w->row.sealed_len);
	seal_close(
	    w->all->keys, &what, secret, WEBHOOK_SECRET_BYTES, w->row.sealed);
}

static int
open_secret(
    const struct webhook *w, uint8_t out[WEBHOOK_SECRET_BYTES], struct err *e)
{
	char text[UUID_TEXT_LEN + 1];
	const struct seal_for what = sealed_for(w, text);

	if (w->row.sealed_len != WEBHOOK_SECRET_BYTES + SEAL_EXTRA_BYTES)
		return err_set(e, ERR_NO_SECRET_KEY,
		    "its secret is damaged: make another");
	return seal_open(
	    w->all->keys, &what, w->row.sealed, w->row.sealed_len, out, e);
}

static int
make_secret(struct webhook *w, char out[WEBHOOK_SECRET_TEXT_MAX], struct err *e)
{
	uint8_t secret[WEBHOOK_SECRET_BYTES];
	int n;

	if (w->all->keys == NULL)
		return err_set(e, ERR_NO_SECRET_KEY,
		    "the server has no key to seal the webhook's secret with: "
		    "its log says what is wrong with SECRETS_KEY_FILE");
	if (RAND_bytes(secret, sizeof(secret)) != 1)
		fatal(EXIT_BUG, "no random bytes");
	n = snprintf(out, WEBHOOK_SECRET_TEXT_MAX, WEBHOOK_SECRET_PREFIX);
	(void)EVP_EncodeBlock(
	    (unsigned char *)out + n, secret, WEBHOOK_SECRET_BYTES);
	seal_secret(w, secret);
	explicit_bzero(secret, sizeof(secret));
	return 0;
}

static void
reseal(struct webhook *w, struct rekeying *k)
{
	uint8_t secret[WEBHOOK_SECRET_BYTES];
	char uuid[UUID_TEXT_LEN + 1];
	struct err e;

	if (open_secret(w, secret, &e) != 0) {
		uuid_format(&w->row.uuid, uuid);
		log_warn("webhook %s: %s", uuid, e.msg);
		rekeying_leave(k);
		return;
	}
	seal_secret(w, secret);
	explicit_bzero(secret, sizeof(secret));
	rekeying_begin(k);
	webhook_save(w, seal_stored_cb, k);
}

int
webhooks_unlock(struct webhooks *all, const char *text, size_t n,
    struct rekeying *k, struct err *e)
{
	size_t unknown = 0;
	struct webhook *w;

	if (seal_keys_parse(text, n, &all->keys, e) != 0)
		return e->code;
	TAILQ_FOREACH (w, &all->list, link) {
		enum seal_state state =
		    seal_state_of(all->keys, w->row.sealed, w->row.sealed_len);

		if (state == SEAL_UNKNOWN) {
			unknown++;
			rekeying_leave(k);
		}
		if (state == SEAL_OLD)
			reseal(w, k);
	}
	if (unknown > 0)
		log_warn("%zu webhooks' secrets are sealed with a key that "
			 "SECRETS_KEY_FILE does not have: put it back as a "
			 "further line, or make new ones",
		    unknown);
	return 0;
}

int
webhook_sign(const struct webhook *w, const char *id, int64_t timestamp_s,
    const struct span *body, char out[WEBHOOK_SIGNATURE_MAX], struct err *e)
{
	uint8_t secret[WEBHOOK_SECRET_BYTES], digest[DIGEST_BYTES];
	AUTO(auto_free) char *head = NULL;
	struct buf text;
	int n, rc = open_secret(w, secret, e);

	if (rc != 0)
		return rc;
	head = xasprintf("%s.%lld.", id, (long long)timestamp_s);
	buf_init(&text, 0);
	(void)!buf_append(&text, head, strlen(head));
	(void)!buf_append(&text, body->p, body->n);
	if (HMAC(EVP_sha256(), secret, WEBHOOK_SECRET_BYTES, buf_data(&text),
		buf_len(&text), digest, NULL) == NULL)
		fatal(EXIT_BUG, "no HMAC");
	explicit_bzero(secret, sizeof(secret));
	buf_clear(&text);
	n = snprintf(out, WEBHOOK_SIGNATURE_MAX, "v1,");
	(void)EVP_EncodeBlock((unsigned char *)out + n, digest, DIGEST_BYTES);
	return 0;
}

/* ---- what it is told of */

/* What is of a tenant: the others are the server's own. */
static bool
is_of_tenants(const char *kind)
{
	static const char *const families[] = {
	    "run.", "sandbox.", "quota.", "webhook."};

	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		if (strncmp(kind, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

int
webhook_parse_kinds(const char *words, uint64_t *kinds, struct err *e)
{
	AUTO(auto_free) char *copy = xstrdup(words);
	char *rest = copy, *word;
	enum event_kind kind;

	*kinds = 0;
	while ((word = strsep(&rest, ",")) != NULL) {
		if (event_kind_parse(word, &kind) != 0 || !is_of_tenants(word))
			return err_set(e, ERR_INVAL,
			    "events: \"%.60s\" is none of a tenant's "
			    "(schema/events.txt)",
			    word);
		*kinds |= UINT64_C(1) << kind;
	}
	return 0;
}

/* ---- life */

int
webhooks_open(struct store *s, struct webhooks **out, struct err *e)
{
	struct store_webhooks rows;
	struct webhooks *all;
	int rc = store_webhooks_read(s, &rows, e);

	if (rc != 0)
		return rc;
	all = xcalloc(1, sizeof(*all));
	all->store = s;
	TAILQ_INIT(&all->list);
	for (size_t i = 0; i < rows.n; i++) {
		struct webhook *w = xcalloc(1, sizeof(*w));

		w->all = all;
		store_webhook_copy(&w->row, &rows.rows[i]);
		TAILQ_INSERT_TAIL(&all->list, w, link);
	}
	store_webhooks_clear(&rows);
	*out = all;
	return 0;
}

void
webhooks_forget(struct webhooks *all, struct tenant_id tenant)
{
	struct webhook *w;

	while ((w = webhooks_next(all, tenant, NULL)) != NULL)
		leave(w);
}

/* ---- changing */

void
webhook_save(struct webhook *w, store_done_cb done, void *arg)
{
	store_webhook_put(w->all->store, &w->row, done, arg);
}

void
webhook_drop(struct webhook *w, store_done_cb done, void *arg)
{
	store_webhook_drop(w->all->store, &w->row, done, arg);
	leave(w);
}

static void
is_well(struct store_webhook *r)
{
	r->failing_ms = r->next_ms = 0;
	r->attempts = 0;
	r->waited_ms = 0;
	xset_text(&r->why, "");
}

static void
apply(struct webhook *w, const struct webhook_wish *wish)
{
	struct store_webhook *r = &w->row;
	bool was_enabled = r->enabled;

	if (wish->url != NULL)
		xset_text(&r->url, wish->url);
	if (wish->kinds != NULL)
		xset_text(&r->kinds, wish->kinds);
	if (wish->enabled != NULL)
		r->enabled = *wish->enabled;
	r->changed_ms = clock_wall_ms();
	xset_text(&r->disabled_why, "");
	is_well(r); /* it is tried at once */
	if (r->enabled && !was_enabled) {
		r->seq = wish->seq;
		r->seq_ms = wish->seq_ms;
	}
}

int
webhook_make(struct webhooks *all, struct tenant_id tenant,
    const struct webhook_wish *wish, char secret[WEBHOOK_SECRET_TEXT_MAX],
    struct webhook **out, struct err *e)
{
	struct webhook *w = xcalloc(1, sizeof(*w));
	int rc;

	w->all = all;
	w->row.tenant = tenant.n;
	w->row.created_ms = clock_wall_ms();
	uuid_timed(&w->row.uuid);
	rc = make_secret(w, secret, e);
	if (rc != 0) {
		free(w);
		return rc;
	}
	apply(w, wish);
	/* Also of one that is not enabled yet. */
	w->row.seq = wish->seq;
	w->row.seq_ms = wish->seq_ms;
	TAILQ_INSERT_TAIL(&all->list, w, link);
	*out = w;
	tell_changed(w);
	return 0;
}

int
webhook_change(struct webhook *w, const struct webhook_wish *wish,
    char secret[WEBHOOK_SECRET_TEXT_MAX], struct err *e)
{
	if (wish->wants_secret && make_secret(w, secret, e) != 0)
		return e->code;
	apply(w, wish);
	tell_changed(w);
	return 0;
}

static void
tell_event(const struct webhook *w, enum event_kind kind, const char *why,
    uint64_t lost)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&w->row.uuid, id);
	store_event_tell(w->all->store,
	    &(struct store_news){.tenant = w->row.tenant,
		.kind = kind,
		.error = why[0] == '\0' ? NULL : why,
		.webhook = id,
		.lost = lost});
}

void
webhook_tell_lost(struct webhook *w)
{
	uint64_t now = clock_mono_ms();

	if (w->told_ms != 0 && now - w->told_ms < WEBHOOK_TELL_MS)
		return;
	w->told_ms = now;
	tell_event(w, EVENT_WEBHOOK_LOST, w->row.why, w->row.lost);
}

void
webhook_disable(struct webhook *w, const char *why)
{
	w->row.enabled = false;
	w->row.changed_ms = clock_wall_ms();
	xset_text(&w->row.disabled_why, why);
	webhook_save(w, NULL, NULL);
	tell_event(w, EVENT_WEBHOOK_DISABLED, why, 0);
	tell_changed(w);
}

/* ---- how it goes */

uint64_t
webhook_delay_ms(uint32_t attempts, uint32_t dice)
{
	uint64_t ms = attempts > DOUBLINGS_MAX ?
	    WEBHOOK_MAX_MS :
	    (uint64_t)WEBHOOK_FIRST_MS << (attempts == 0 ? 0 : attempts - 1);

	if (ms > WEBHOOK_MAX_MS)
		ms = WEBHOOK_MAX_MS;
	return ms / 2 + ms / 2 * dice / UINT32_MAX;
}

uint64_t
webhook_rest_ms(const struct store_webhook *row, int64_t now_ms)
{
	uint64_t most = webhook_delay_ms(row->attempts, UINT32_MAX);
	int64_t rest = row->next_ms - now_ms;

	if (row->attempts == 0 || rest <= 0)
		return 0;
	return (uint64_t)rest > most ? most : (uint64_t)rest;
}

void
webhook_taken(struct webhook *w, uint64_t seq, int64_t at_ms)
{
	struct store_webhook *r = &w->row;

	r->seq = seq;
	r->seq_ms = at_ms;
	r->delivered++;
	r->success_ms = clock_wall_ms();
	is_well(r);
	webhook_save(w, NULL, NULL);
}

void
webhook_skip(struct webhook *w, uint64_t seq, uint64_t count)
{
	w->row.lost += count;
	if (seq > w->row.seq)
		w->row.seq = seq;
	webhook_save(w, NULL, NULL);
}

bool
webhook_is_past(
    const struct webhook *w, int64_t at_ms, uint64_t keep_ms, int64_t now_ms)
{
	return w->row.waited_ms >= keep_ms && now_ms > at_ms &&
	    (uint64_t)(now_ms - at_ms) >= keep_ms;
}

enum webhook_verdict
webhook_failed(struct webhook *w, const struct webhook_failure *f,
    uint64_t keep_ms, uint64_t *delay_ms)
{
	enum webhook_verdict verdict = WEBHOOK_AGAIN;
	struct store_webhook *r = &w->row;
	int64_t now_ms = clock_wall_ms();
	uint32_t dice;

	if (RAND_bytes((unsigned char *)&dice, sizeof(dice)) != 1)
		fatal(EXIT_BUG, "no random bytes");
	if (r->failing_ms == 0)
		r->failing_ms = now_ms;
	xset_text(&r->why, f->why);
	if (r->attempts < UINT32_MAX)
		r->attempts++;
	*delay_ms = webhook_delay_ms(r->attempts, dice);
	if (*delay_ms < f->after_s * UINT64_C(1000))
		*delay_ms = f->after_s * UINT64_C(1000);
	if (*delay_ms > keep_ms) /* one more try before it is lost */
		*delay_ms = keep_ms;
	if (webhook_is_past(w, f->at_ms, keep_ms, now_ms)) {
		r->seq = f->seq;
		r->seq_ms = f->at_ms;
		r->lost++;
		verdict = WEBHOOK_LOST;
	}
	r->waited_ms += *delay_ms;
	r->next_ms = now_ms + (int64_t)*delay_ms;
	webhook_save(w, NULL, NULL);
	return verdict;
}
