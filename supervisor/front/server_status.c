#include "supervisor/front/server_status.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/census.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/handlers.h"
#include "supervisor/store/history.h"
#include "supervisor/tools/view.h"

/* ---- the programs of the server */

struct seen_member {
	char name[MSG_CREW_MEMBER_NAME_MAX + 1];
	uint32_t pid;
	enum msg_member_state state;
	uint32_t restarts;
	int64_t started_ms;
};

struct crew_members {
	size_t n;
	struct seen_member at[CREW_MEMBERS_MAX];
};

static const char *const words[] = {[MSG_MEMBER_STATE_DOWN] = "down",
    [MSG_MEMBER_STATE_STARTING] = "starting",
    [MSG_MEMBER_STATE_READY] = "ready",
    [MSG_MEMBER_STATE_QUIET] = "quiet",
    [MSG_MEMBER_STATE_THROTTLED] = "throttled",
    [MSG_MEMBER_STATE_REFUSED] = "refused"};

struct crew_members *
crew_members_new(void)
{
	return xcalloc(1, sizeof(struct crew_members));
}

void
crew_members_free(struct crew_members *all)
{
	free(all);
}

static const struct seen_member *
find(const struct crew_members *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->at[i].name, name) == 0)
			return &all->at[i];
	return NULL;
}

void
crew_members_take(struct crew_members *all, const struct msg_crew_member *m)
{
	const struct seen_member *known = find(all, m->name);
	size_t i = known == NULL ? all->n : (size_t)(known - all->at);

	if (i == CREW_MEMBERS_MAX)
		return;
	if (known == NULL)
		all->n++;
	all->at[i] = (struct seen_member){.pid = m->pid,
	    .state = m->state,
	    .restarts = m->restarts,
	    .started_ms = m->started_ms};
	(void)snprintf(all->at[i].name, sizeof(all->at[i].name), "%s", m->name);
}

static json_t *
view_uptime(const struct seen_member *m, int64_t now_ms)
{
	if (m->started_ms == 0)
		return json_null();
	return json_integer(
	    now_ms > m->started_ms ? (now_ms - m->started_ms) / 1000 : 0);
}

static json_t *
view_members(const struct crew_members *all, int64_t now_ms)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		const struct seen_member *m = &all->at[i];

		json_array_append_new(list,
		    json_pack("{s:s, s:o, s:s, s:I, s:o, s:o}", "name", m->name,
			"pid",
			m->pid == 0 ? json_null() :
				      json_integer((json_int_t)m->pid),
			"state", words[m->state], "restarts",
			(json_int_t)m->restarts, "started_at",
			view_time(m->started_ms), "uptime_s",
			view_uptime(m, now_ms)));
	}
	return list;
}

/* ---- the rest */

/* null for "". */
static json_t *
view_words(const char *text)
{
	return text[0] == '\0' ? json_null() :
				 js_string_bytes(text, strlen(text), NULL);
}

static json_t *
view_engine(const struct front *f)
{
	static const struct fleet_engine unknown;
	uint64_t n = core_stats(f->core).workers_total;
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++) {
		struct fleet_look at = fleet_look_at(core_fleet(f->core), i);
		const struct fleet_engine *en =
		    at.engine != NULL ? at.engine : &unknown;

		json_array_append_new(list,
		    json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, "
			      "s:o, s:o, s:o}",
			"worker", (int)i, "engine", at.word, "since",
			view_time(at.since_ms), "name", view_words(en->name),
			"version", view_words(en->version), "api_version",
			view_words(en->api), "runtime", view_words(en->runtime),
			"carrier", view_words(at.carrier), "carrier_why",
			view_words(at.carrier_why), "detail",
			view_words(at.detail)));
	}
	return list;
}

static json_t *
view_room(const char *name, const char *dir, const struct room *r)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "name", name, "dir",
	    js_string_bytes(dir, strlen(dir), NULL), "free_bytes",
	    r->bytes > INT64_MAX ? json_null() :
				   json_integer((json_int_t)r->bytes),
	    "free_inodes",
	    r->inodes > INT64_MAX ? json_null() :
				    json_integer((json_int_t)r->inodes));
}

static json_t *
view_disks(const struct front *f)
{
	const char *data = conf_str(f->conf, CONF_DATA_DIR);
	const char *set = conf_str(f->conf, CONF_ARTIFACTS_DIR);
	AUTO(auto_free)
	char *artifacts = set[0] != '\0' ?
	    xstrdup(set) :
	    xasprintf("%s/" LAYOUT_FRONT "/artifacts", data);
	struct store_room room;

	store_room(core_store(f->core), &room);
	return json_pack("[o, o]", view_room("data", data, &room.data),
	    view_room("artifacts", artifacts, &room.artifacts));
}

/* Administrators may read the names of files in why. */
static json_t *
view_index(const struct front *f)
{
	struct history_state st;

	history_state(core_store(f->core), &st);
	return json_pack("{s:b, s:I, s:I, s:I, s:o}", "available",
	    st.is_available, "lag_rows", (json_int_t)st.lag_rows, "lag_s",
	    (json_int_t)(st.lag_ms / 1000), "made_anew",
	    (json_int_t)st.made_anew, "why", view_words(st.why));
}

static json_t *
view_history(const struct front *f)
{
	const struct store_usage u = core_stats(f->core).usage;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "log_bytes",
	    (json_int_t)u.log_bytes, "log_files", (json_int_t)u.log_files,
	    "artifact_bytes", (json_int_t)u.blob_bytes, "artifact_files",
	    (json_int_t)u.blob_files, "evicted_runs", (json_int_t)u.evicted,
	    "index", view_index(f));
}

static json_t *
view_store(const struct front *f)
{
	struct store_stats st;

	store_stats(core_store(f->core), &st);
	return json_pack("{s:I, s:I, s:I, s:o}", "queue", (json_int_t)st.queue,
	    "commits", (json_int_t)st.commits, "failures",
	    (json_int_t)st.failures, "last_error_at",
	    view_time((int64_t)st.last_error_ms));
}

/* Of all tenants together. */
static json_t *
view_load(const struct front *f)
{
	const struct tenants *t = core_tenants(f->core);
	const struct core_stats st = core_stats(f->core);
	json_int_t count = 0, running = 0, waiting = 0;

	for (const struct tenant *n = tenants_next(t, NULL); n != NULL;
	     n = tenants_next(t, n)) {
		const struct quota_use *u =
		    quota_use_of(core_quota_uses(f->core), tenant_id_of(n));

		count++;
		running += u->lane.nrunning;
		waiting += u->lane.nwaiting;
	}
	return json_pack("{s:I, s:I, s:o, s:I, s:I}", "tenants", count,
	    "sandboxes", (json_int_t)st.active_sandboxes, "containers",
	    st.containers == CENSUS_UNKNOWN ?
		json_null() :
		json_integer((json_int_t)st.containers),
	    "runs_running", running, "runs_queued", waiting);
}

static json_t *
view_http(const struct front *f)
{
	struct http_stats st;

	http_server_stats(f->http, &st);
	return json_pack("{s:I, s:I, s:I}", "connections",
	    (json_int_t)st.connections, "streams", (json_int_t)st.streams,
	    "requests", (json_int_t)st.requests);
}

/* In a word, and what is missing. */
static void
add_health(const struct front *f, json_t *o)
{
	struct err e;

	if (core_check(f->core, &e) != 0)
		json_object_update_new(o,
		    json_pack("{s:s, s:o}", "health", "not ready", "why",
			js_string_bytes(e.msg, strlen(e.msg), NULL)));
	else
		json_object_update_new(o,
		    json_pack("{s:s, s:n}", "health",
			f->draining ? "stopping" : "ready", "why"));
}

void
front_on_status(struct request *r)
{
	const struct front *f = r->front;
	const struct seen_member *master = find(f->crew_members, "supervisor");
	int64_t now_ms = clock_wall_ms();
	json_t *o = json_pack("{s:s}", "version", PACKAGE_VERSION);

	add_health(f, o);
	json_object_update_new(o,
	    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"started_at",
		view_time(master == NULL ? 0 : master->started_ms), "uptime_s",
		master == NULL ? json_null() : view_uptime(master, now_ms),
		"programs", view_members(f->crew_members, now_ms), "engine",
		view_engine(f), "disks", view_disks(f), "load", view_load(f),
		"history", view_history(f), "store", view_store(f), "http",
		view_http(f)));
	http_reply_json(r->x, 200, o);
}
