#include "supervisor/front/server_status.h"

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/sweeper.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/crew_members.h"
#include "supervisor/store/history.h"
#include "supervisor/tools/view.h"

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
		    json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
			"worker", (int)i, "engine", at.word, "since",
			view_time(at.since_ms), "name", view_words(en->name),
			"version", view_words(en->version), "api_version",
			view_words(en->api), "runtime", view_words(en->runtime),
			"detail", view_words(at.detail)));
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

	store_room(f->store, &room);
	return json_pack("[o, o]", view_room("data", data, &room.data),
	    view_room("artifacts", artifacts, &room.artifacts));
}

/* Administrators may read the names of files in why. */
static json_t *
view_index(const struct front *f)
{
	struct history_state st;

	history_state(f->store, &st);
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

	store_stats(f->store, &st);
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
	    st.containers == SWEEPER_UNKNOWN ?
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
server_status_on_request(struct front *f, struct http_exchange *x)
{
	int64_t now_ms = clock_wall_ms();
	int64_t since_ms =
	    crew_members_started_ms(f->crew_members, "supervisor");
	json_t *o = json_pack("{s:s}", "version", PACKAGE_VERSION);

	add_health(f, o);
	json_object_update_new(o,
	    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"started_at", view_time(since_ms), "uptime_s",
		since_ms == 0 ?
		    json_null() :
		    json_integer(
			now_ms < since_ms ? 0 : (now_ms - since_ms) / 1000),
		"programs", crew_members_view(f->crew_members, now_ms),
		"engine", view_engine(f), "disks", view_disks(f), "load",
		view_load(f), "history", view_history(f), "store",
		view_store(f), "http", view_http(f)));
	http_reply_json(x, 200, o);
}
