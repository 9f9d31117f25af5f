/*
 * webhook_route.c - REST of webhooks
 *
 * What a person sets is shown, with a tag, as one webhook; how its deliveries
 * go is in the list beside it, so that who changes one on condition does not
 * lose against each delivery.  A new one, and one that is enabled again, begins
 * behind the newest event, whose number is looked up first.
 */
#include "supervisor/front/handlers.h"

#include "common/conf.h"
#include "common/js.h"
#include "common/weburl.h"
#include "common/xmalloc.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/webhooks.h"
#include "supervisor/front/change.h"
#include "supervisor/front/deliveries.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"
#include "supervisor/store/event_log.h"
#include "supervisor/tools/view.h"

#define BODY_MAX 16384
#define DEPTH_MAX 4
#define KINDS_MAX 64

/* ---- what is shown */

static json_t *
view_kinds(const char *words)
{
	AUTO(auto_free) char *copy = xstrdup(words);
	json_t *list = json_array();
	char *rest = copy, *word;

	while ((word = strsep(&rest, ",")) != NULL)
		json_array_append_new(list, json_string(word));
	return list;
}

static const char *
null_if_empty(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

static json_t *
view_webhook(const struct webhook *w)
{
	const struct store_webhook *r = &w->row;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&r->uuid, id);
	return json_pack("{s:s, s:s, s:o, s:b, s:s?, s:o, s:o}", "id", id,
	    "url", r->url, "events", view_kinds(r->kinds), "enabled",
	    r->enabled, "disabled_because", null_if_empty(r->disabled_why),
	    "created_at", view_time(r->created_ms), "changed_at",
	    view_time(r->changed_ms));
}

static json_t *
view_webhook_of_list(const struct webhook *w)
{
	const struct store_webhook *r = &w->row;
	json_t *o = view_webhook(w);

	json_object_set_new(o, "deliveries",
	    json_pack("{s:I, s:I, s:I, s:o, s:o, s:i, s:o, s:s?}", "taken",
		(json_int_t)r->delivered, "lost", (json_int_t)r->lost,
		"done_to_event", (json_int_t)r->seq, "last_success_at",
		view_time(r->success_ms), "failing_since",
		view_time(r->failing_ms), "attempts", (int)r->attempts,
		"next_attempt_at", view_time(r->next_ms), "last_error",
		null_if_empty(r->why)));
	return o;
}

/* ---- what is asked for */

struct webhook_ask {
	const struct front *f;
	struct http_exchange *x; /* outlives its client */
	struct tenant_id tenant;
	struct uuid uuid; /* zero: a new one */
	json_t *body;
	char *kinds; /* NULL: not said */
	bool enabled;
	struct webhook_wish wish;
};

static void
ask_free(struct webhook_ask *a)
{
	json_decref(a->body);
	free(a->kinds);
	free(a);
}

static int
take_url(struct webhook_ask *a, const json_t *value, struct err *e)
{
	struct weburl url;

	if (!json_is_string(value) ||
	    strlen(json_string_value(value)) != json_string_length(value))
		return err_set(e, ERR_INVAL, "url: want a text");
	if (weburl_parse(json_string_value(value), &url, e) != 0)
		return e->code;
	if (!url.is_https && !conf_bool(a->f->conf, CONF_WEBHOOK_ALLOW_HTTP))
		return err_set(e, ERR_INVAL,
		    "url: want https: this server sends nothing in the clear "
		    "(WEBHOOK_ALLOW_HTTP)");
	a->wish.url = json_string_value(value);
	return 0;
}

static int
take_kinds(struct webhook_ask *a, const json_t *value, struct err *e)
{
	struct buf text;
	const json_t *word;
	uint64_t kinds;
	size_t i;
	int rc = 0;

	if (!json_is_array(value) || json_array_size(value) == 0 ||
	    json_array_size(value) > KINDS_MAX)
		return err_set(e, ERR_INVAL,
		    "events: want a list of kinds, such as [\"run.ended\"]");
	buf_init(&text, BODY_MAX + KINDS_MAX);
	json_array_foreach ((json_t *)(uintptr_t)value, i, word)
		if (!json_is_string(word) ||
		    buf_printf(&text, "%s%s", i == 0 ? "" : ",",
			json_string_value(word)) != 0)
			rc = err_set(
			    e, ERR_INVAL, "events: want a list of texts");
	if (rc == 0) {
		free(a->kinds);
		a->kinds =
		    xstrndup((const char *)buf_data(&text), buf_len(&text));
		a->wish.kinds = a->kinds;
		rc = webhook_parse_kinds(a->kinds, &kinds, e);
	}
	buf_clear(&text);
	return rc;
}

static int
take_bool(const json_t *value, const char *key, bool *out, struct err *e)
{
	if (!json_is_boolean(value))
		return err_set(e, ERR_INVAL, "%s: want true or false", key);
	*out = json_is_true(value);
	return 0;
}

static int
take_member(
    struct webhook_ask *a, const char *key, const json_t *value, struct err *e)
{
	if (strcmp(key, "url") == 0)
		return take_url(a, value, e);
	if (strcmp(key, "events") == 0)
		return take_kinds(a, value, e);
	if (strcmp(key, "new_secret") == 0)
		return take_bool(value, key, &a->wish.wants_secret, e);
	if (strcmp(key, "enabled") == 0) {
		a->wish.enabled = &a->enabled;
		return take_bool(value, key, &a->enabled, e);
	}
	return err_set(e, ERR_INVAL, "there is no member %.60s", key);
}

/* false: x was answered. */
static bool
read_ask(struct webhook_ask *a)
{
	const char *key;
	json_t *value;
	struct err e;
	size_t n;
	const void *p = http_body(a->x, &n);
	int rc = js_parse(p, n, BODY_MAX, DEPTH_MAX, &a->body, &e);

	if (rc == 0 && !json_is_object(a->body))
		rc = err_set(&e, ERR_INVAL, "want a JSON object");
	if (rc == 0)
		json_object_foreach (a->body, key, value) {
			rc = take_member(a, key, value, &e);
			if (rc != 0)
				break;
		}
	if (rc == 0)
		return true;
	http_error(a->x, 400, "bad_request", "the body: %s", e.msg);
	return false;
}

/* w NULL: a new one.  NULL: x was answered. */
static struct webhook_ask *
ask_new(const struct front *f, struct http_exchange *x, const struct tenant *n,
    const struct webhook *w)
{
	struct webhook_ask *a = xcalloc(1, sizeof(*a));

	a->f = f;
	a->x = x;
	a->tenant = tenant_id_of(n);
	if (w != NULL)
		a->uuid = w->row.uuid;
	if (read_ask(a))
		return a;
	ask_free(a);
	return NULL;
}

/* ---- a change */

/* The audit has where it leads, and nothing of its secret. */
static struct change *
begin_change(const struct front *f, struct http_exchange *x, const char *what,
    const struct webhook *w)
{
	const struct tenant *n = tenants_find(
	    core_tenants(f->core), (struct tenant_id){w->row.tenant});
	struct change *c = change_new(f, x);
	char id[UUID_TEXT_LEN + 1];

	c->is_repeatable = true;
	uuid_format(&w->row.uuid, id);
	change_tell(c, what, n == NULL ? "" : n->row.name, id, w->row.url);
	return c;
}

static int
check_room(const struct webhook_ask *a, struct err *e)
{
	int64_t most =
	    tenants_quota(core_tenants(a->f->core), a->tenant, QUOTA_WEBHOOKS);
	size_t n = webhooks_count(a->f->webhooks, a->tenant);

	if (n < (uint64_t)most)
		return 0;
	(void)err_set(e, ERR_QUOTA,
	    "this tenant has %zu webhooks, which is all that its quota "
	    "\"webhooks\" permits: delete one, or ask for more",
	    n);
	e->refusal = (struct err_refusal){
	    .quota = "webhooks", .limit = most, .used = (int64_t)n};
	return ERR_QUOTA;
}

/* The place is known: it is made or changed.  What was checked when the request
 * came is checked again: others were served while the place was looked up, and
 * from here on nobody is. */
static int
make_webhook(struct webhook_ask *a, char secret[WEBHOOK_SECRET_TEXT_MAX],
    struct webhook **out, struct err *e)
{
	const struct tenant *n =
	    tenants_find(core_tenants(a->f->core), a->tenant);
	int rc = check_room(a, e);

	if (n == NULL || n->row.deleted_ms != 0)
		return err_set(e, ERR_NOTFOUND, "no such tenant");
	if (rc != 0)
		return rc;
	return webhook_make(
	    a->f->webhooks, a->tenant, &a->wish, secret, out, e);
}

static int
change_webhook(struct webhook_ask *a, struct webhook *w,
    char secret[WEBHOOK_SECRET_TEXT_MAX], struct err *e)
{
	return w == NULL ? err_set(e, ERR_NOTFOUND, "no such webhook") :
			   webhook_change(w, &a->wish, secret, e);
}

static void
apply(struct webhook_ask *a)
{
	bool is_new = uuid_is_zero(&a->uuid);
	char secret[WEBHOOK_SECRET_TEXT_MAX] = "";
	struct webhook *w =
	    is_new ? NULL : webhooks_find(a->f->webhooks, a->tenant, &a->uuid);
	struct change *c;
	json_t *answer;
	struct err e;

	if (w != NULL && !etag_may_change(a->x, view_webhook(w)))
		return;
	if ((is_new ? make_webhook(a, secret, &w, &e) :
		      change_webhook(a, w, secret, &e)) != 0) {
		http_error_from(a->x, e.code, &e);
		return;
	}
	answer = view_webhook(w);
	if (secret[0] != '\0')
		json_object_set_new(answer, "secret", json_string(secret));
	c = begin_change(a->f, a->x, is_new ? "webhook.add" : "webhook.set", w);
	webhook_save(w, change_on_disk, change_part(c));
	change_answer(c, is_new ? 201 : 200, answer,
	    secret[0] == '\0' ? CHANGE_SHOWS_IT : CHANGE_SHOWS_ELSE);
	explicit_bzero(secret, sizeof(secret));
}

static void
newest_cb(int rc, const struct store_events_page *page, const struct err *why,
    void *arg)
{
	struct webhook_ask *a = arg;

	if (rc != 0) {
		http_error_from(a->x, rc, why);
	} else {
		a->wish.seq = page->newest;
		apply(a);
	}
	ask_free(a);
}

static void
look_newest(struct webhook_ask *a)
{
	http_hold(a->x, NULL, NULL);
	(void)store_events_read(core_store(a->f->core), a->tenant.n, UINT32_MAX,
	    NULL, 1, newest_cb, a);
}

static void
add_webhook(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	static const bool yes = true;
	struct webhook_ask *a = ask_new(f, x, n, NULL);
	struct err e;

	if (a == NULL)
		return;
	if (a->wish.url == NULL)
		(void)err_set(&e, ERR_INVAL,
		    "the body: url is missing: where is it to go?");
	if (a->wish.url == NULL || check_room(a, &e) != 0) {
		http_error_from(x, e.code, &e);
		ask_free(a);
		return;
	}
	if (a->wish.kinds == NULL)
		a->wish.kinds = WEBHOOK_KINDS_DEFAULT;
	if (a->wish.enabled == NULL)
		a->wish.enabled = &yes;
	look_newest(a);
}

static void
set_webhook(const struct front *f, struct http_exchange *x,
    const struct tenant *n, const struct webhook *w)
{
	struct webhook_ask *a = ask_new(f, x, n, w);

	if (a != NULL)
		look_newest(a);
}

static void
delete_webhook(
    const struct front *f, struct http_exchange *x, struct webhook *w)
{
	struct change *c = begin_change(f, x, "webhook.delete", w);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&w->row.uuid, id);
	webhook_drop(w, change_on_disk, change_part(c));
	change_answer(c, 200, json_pack("{s:s, s:b}", "id", id, "deleted", 1),
	    CHANGE_SHOWS_ELSE);
}

/* ---- a test */

static void
tested_cb(const struct postbox_answer *a, void *arg)
{
	bool is_taken = a->status >= 200 && a->status < 300;

	http_reply_json(arg, 200,
	    json_pack("{s:b, s:o, s:s?}", "taken", is_taken, "status",
		a->status == 0 ? json_null() : json_integer(a->status), "error",
		a->status == 0 ? a->why : NULL));
}

static void
test_webhook(
    const struct front *f, struct http_exchange *x, const struct webhook *w)
{
	struct err e;

	http_hold(x, NULL, NULL);
	if (deliveries_test(f->deliveries, w, tested_cb, x, &e) == 0)
		return;
	if (e.code == ERR_LIMIT)
		http_error(x, 503, "busy", "%s", e.msg);
	else
		http_error_from(x, e.code, &e);
}

/* ---- whose */

static bool
is_on(const struct front *f, struct http_exchange *x)
{
	if (f->deliveries != NULL)
		return true;
	http_error(x, 404, "webhooks_off",
	    "this server has no webhooks: set WEBHOOKS=true and start it "
	    "again");
	return false;
}

static const struct tenant *
tenant_of(const struct front *f, struct http_exchange *x)
{
	return is_on(f, x) ? scope_live_tenant(f, x) : NULL;
}

static struct webhook *
find_webhook(
    const struct front *f, struct http_exchange *x, const struct tenant *n)
{
	struct webhook *w = NULL;
	struct uuid uuid;

	if (n == NULL)
		return NULL;
	if (uuid_parse(http_param(x, "webhook"), &uuid) == 0)
		w = webhooks_find(f->webhooks, tenant_id_of(n), &uuid);
	if (w == NULL)
		http_error(x, 404, "not_found", "no such webhook");
	return w;
}

void
webhook_on_list(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	const struct tenant *n = tenant_of(f, x);
	struct webhook *w = NULL;
	json_t *list;

	if (n == NULL)
		return;
	if (http_method(x) == HTTP_METHOD_POST) {
		add_webhook(f, x, n);
		return;
	}
	list = json_array();
	while ((w = webhooks_next(f->webhooks, tenant_id_of(n), w)) != NULL)
		json_array_append_new(list, view_webhook_of_list(w));
	etag_reply_json(x, json_pack("{s:o}", "webhooks", list));
}

void
webhook_on_one(struct request *r)
{
	const struct front *f = r->front;
	struct http_exchange *x = r->x;
	const struct tenant *n = tenant_of(f, x);
	struct webhook *w = find_webhook(f, x, n);

	if (w == NULL)
		return;
	if (request_reads(x))
		etag_reply_json(x, view_webhook(w));
	else if (!etag_may_change(x, view_webhook(w)))
		return;
	else if (http_method(x) == HTTP_METHOD_DELETE)
		delete_webhook(f, x, w);
	else
		set_webhook(f, x, n, w);
}

void
webhook_on_test(struct request *r)
{
	const struct webhook *w =
	    find_webhook(r->front, r->x, tenant_of(r->front, r->x));

	if (w != NULL)
		test_webhook(r->front, r->x, w);
}
