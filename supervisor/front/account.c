#include "supervisor/front/handlers.h"

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"
#include "supervisor/store/usage.h"
#include "supervisor/front/oauth.h"
#include "supervisor/tools/view.h"

#define DAYS_OF_ALL_MAX 20000 /* in one answer */

/* ---- who */

void
account_on_whoami(struct request *r)
{
	const struct front *f = r->front;
	const struct principal *who = r->who;
	const struct token *k =
	    tenants_find_token(core_tenants(f->core), who->subject);
	int64_t until_ms = k == NULL ? 0 : k->row.expires_ms;
	const char *subject =
	    f->oauth == NULL ? NULL : oauth_subject(f->oauth, who, &until_ms);

	http_reply_json(r->x, 200,
	    json_pack("{s:s?, s:s, s:s?, s:s?, s:o, s:s?, s:s?}", "tenant",
		who->tenant_name[0] == '\0' ? NULL : who->tenant_name, "role",
		principal_role_word(who->role), "token_id",
		k == NULL ? NULL : k->row.id, "token_name",
		k == NULL ? NULL : k->row.name, "expires_at",
		k == NULL && subject == NULL ? json_null() :
					       view_time(until_ms),
		"subject", subject, "issuer",
		subject == NULL ? NULL : conf_str(f->conf, CONF_OAUTH_ISSUER)));
}

/* ---- what it has: a list of tenants, one database row after the other */

struct usage_call {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct tenant_id *of;
	size_t n;
	size_t at;
	uint32_t ndays; /* asked for */
	json_t *list;
	bool is_one;
};

static json_t *
view_day(const struct store_day *d)
{
	char text[CLOCK_TEXT_MAX];

	clock_format((int64_t)d->day * STORE_DAY_MS, text);
	text[strlen("2026-01-31")] = '\0';
	return json_pack("{s:s, s:I, s:f, s:I, s:I, s:I, s:I}", "day", text,
	    "runs", (json_int_t)d->runs, "run_seconds",
	    (double)d->run_ms / 1000, "output_bytes",
	    (json_int_t)d->output_bytes, "artifact_bytes",
	    (json_int_t)d->artifact_bytes, "sandboxes",
	    (json_int_t)d->sandboxes, "refusals", (json_int_t)d->refusals);
}

static json_t *
view_usage(const struct front *f, const struct tenant *n,
    const struct store_usage *files)
{
	const struct quota_use *u =
	    quota_use_of(core_quota_uses(f->core), tenant_id_of(n));

	uint64_t disk_bytes = u->sandboxes * 1048576 *
	    (uint64_t)conf_int(core_conf(f->core), CONF_SANDBOX_DISK_MB);

	return json_pack("{s:s, s:I, s:I, s:I, s:f, s:I, s:I, s:f, s:I, s:I, "
			 "s:I, s:I, s:I, s:I, s:I}",
	    "tenant", n->row.name, "sandboxes", (json_int_t)u->sandboxes,
	    "runs_running", (json_int_t)u->lane.nrunning, "runs_queued",
	    (json_int_t)u->lane.nwaiting, "cpu_cores",
	    (double)u->nano_cpus / 1e9, "memory_bytes",
	    (json_int_t)u->memory_bytes, "disk_bytes", (json_int_t)disk_bytes,
	    "run_seconds_today", (double)(u->day_ms + u->going_ms) / 1000,
	    "streams", (json_int_t)u->streams, "spool_bytes",
	    (json_int_t)files->log_bytes, "spool_files",
	    (json_int_t)files->log_files, "artifact_bytes",
	    (json_int_t)files->blob_bytes, "artifact_files",
	    (json_int_t)files->blob_files, "history_runs",
	    (json_int_t)files->runs, "history_bytes",
	    (json_int_t)files->row_bytes);
}

static void
usage_free(struct usage_call *c)
{
	json_decref(c->list);
	free(c->of);
	free(c);
}

static void
usage_end(struct usage_call *c)
{
	json_t *o = c->is_one && json_array_size(c->list) == 1 ?
	    json_incref(json_array_get(c->list, 0)) :
	    json_pack("{s:O}", "tenants", c->list);

	http_reply_json(c->x, 200, o);
	usage_free(c);
}

static void usage_next(struct usage_call *c);

static void
days_cb(int rc, const struct store_days *days, const struct err *why, void *arg)
{
	struct usage_call *c = arg;
	json_t *list = json_array();

	(void)why;
	for (size_t i = 0; rc == 0 && i < days->n; i++)
		json_array_append_new(list, view_day(&days->rows[i]));
	json_object_set_new(
	    json_array_get(c->list, json_array_size(c->list) - 1), "days",
	    list);
	c->at++;
	usage_next(c);
}

static void
read_days(struct usage_call *c)
{
	uint32_t today = store_day_of(clock_wall_ms());

	store_usage_read(core_store(c->front->core), c->of[c->at],
	    today + 1 - c->ndays, days_cb, c);
}

static void
usage_cb(
    int rc, const struct store_usage *usage, const struct err *why, void *arg)
{
	struct usage_call *c = arg;
	const struct tenant *n =
	    tenants_find(core_tenants(c->front->core), c->of[c->at]);

	(void)why;
	if (rc == 0 && n != NULL)
		json_array_append_new(c->list, view_usage(c->front, n, usage));
	if (rc == 0 && n != NULL && c->ndays > 0) {
		read_days(c);
		return;
	}
	c->at++;
	usage_next(c);
}

static void
usage_next(struct usage_call *c)
{
	if (c->at == c->n || http_is_gone(c->x))
		usage_end(c);
	else
		store_tenant_usage(
		    core_store(c->front->core), c->of[c->at], usage_cb, c);
}

enum {
	USAGE_TENANT,
	USAGE_DAYS
};
static const struct query_param usage_params[] = {
    [USAGE_TENANT] = {"tenant", QUERY_TEXT, .max = PRINCIPAL_TENANT_MAX},
    [USAGE_DAYS] = {"days", QUERY_NUMBER, .max = STORE_DAYS_MAX},
};
const struct query_table account_usage_query = {
    usage_params, ARRAY_LEN(usage_params)};

/* Whose: one, or all (*one is NULL); false: x was answered. */
static bool
find_whose(const struct request *r, const struct tenant **one)
{
	const struct tenants *t = core_tenants(r->front->core);
	const char *name = r->query.values[USAGE_TENANT].text;

	*one = NULL;
	if (r->who->role != PRINCIPAL_ADMIN)
		*one = tenants_find(t, r->who->tenant);
	else if (name != NULL)
		*one = tenants_find_name(t, name);
	else
		return true;
	/* A user who names another tenant hears of its own. */
	if (*one == NULL)
		http_error(r->x, 404, "not_found", "no such tenant");
	return *one != NULL;
}

/* one NULL: of all tenants. */
static struct usage_call *
usage_new(const struct request *r, const struct tenant *one)
{
	const struct tenants *t = core_tenants(r->front->core);
	struct usage_call *c = xcalloc(1, sizeof(*c));
	const struct tenant *n;
	size_t room = 1;

	c->x = r->x;
	c->front = r->front;
	c->is_one = one != NULL;
	c->ndays = (uint32_t)r->query.values[USAGE_DAYS].number;
	c->list = json_array();
	for (n = NULL; (n = tenants_next(t, n)) != NULL;)
		room++;
	c->of = xcalloc(room, sizeof(*c->of));
	for (n = NULL; (n = tenants_next(t, n)) != NULL;)
		if (one == NULL || n == one)
			c->of[c->n++] = tenant_id_of(n);
	return c;
}

void
account_on_usage(struct request *r)
{
	const struct tenant *n;
	struct usage_call *c;
	uint32_t max;

	if (!find_whose(r, &n))
		return;
	c = usage_new(r, n);
	/* So that an answer about all tenants has a bound. */
	max = c->n * STORE_DAYS_MAX <= DAYS_OF_ALL_MAX ?
	    STORE_DAYS_MAX :
	    DAYS_OF_ALL_MAX / (uint32_t)c->n;
	if (c->ndays > max) {
		http_error(c->x, 400, "bad_request",
		    "days: want a number up to %u", max);
		usage_free(c);
		return;
	}
	http_hold(c->x, NULL, NULL);
	usage_next(c);
}
