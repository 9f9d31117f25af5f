/*
 * resources.c - runs, what they printed, and files that they left, as
 * resources of MCP
 *
 * Each request is a struct resource_reading: the run is looked up, then what
 * its address names is made, a file's bytes on a thread.  What this principal's
 * tenant has not is answered as what never was.
 */
#include "supervisor/tools/offers.h"

#include <stdio.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/js.h"
#include "common/percent.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/download.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/core/threads.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/store/history.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/server_url.h"
#include "supervisor/tools/tool.h"
#include "supervisor/tools/view.h"

#define ROOT "sandbox://runs/"
#define OUTPUT "/output"
#define ARTIFACTS "/artifacts/"

enum resource_kind {
	RESOURCE_RUN,
	RESOURCE_OUTPUT,
	RESOURCE_ARTIFACT
};

struct resources {
	struct core *core;
	struct mcp *mcp;
	struct bus_member member; /* of the core's bus */
	LIST_HEAD(, resource_reading) readings;
};

struct resource_reading {
	struct resources *all;
	LIST_ENTRY(resource_reading) link;
	struct mcp_call *call; /* NULL: the server has ended meanwhile */
	char *uri;
	enum resource_kind kind;
	char *path; /* RESOURCE_ARTIFACT */
	bool is_watch;
	struct history_asking *asking; /* of the list */
	struct lookup *lookup;
	struct lookup_found found;
	struct log_request *request;
	/* A download or a thread has it: neither can be given up. */
	bool is_away;
	struct thread_job job;
	int fd; /* the file, on the thread; -1 */
	size_t size;
	char *data; /* NULL: it could not be read */
};

/* ---- life of a reading */

static struct resource_reading *
reading_new(struct resources *all, struct mcp_call *call)
{
	struct resource_reading *r = xcalloc(1, sizeof(*r));

	r->all = all;
	r->call = call;
	r->fd = -1;
	LIST_INSERT_HEAD(&all->readings, r, link);
	return r;
}

/* The call is the caller's to end afterwards. */
static struct mcp_call *
reading_free(struct resource_reading *r)
{
	struct mcp_call *call = r->call;

	if (r->call != NULL)
		LIST_REMOVE(r, link);
	if (r->asking != NULL)
		history_cancel(r->asking);
	log_request_cancel(r->request);
	lookup_close(r->lookup);
	if (r->fd >= 0)
		(void)close(r->fd);
	free(r->data);
	free(r->path);
	free(r->uri);
	free(r);
	return call;
}

static void
reading_fail(struct resource_reading *r, int rc, const struct err *why)
{
	AUTO(auto_free) char *uri = xstrdup(r->uri != NULL ? r->uri : "");
	AUTO(auto_free) char *text = xstrdup(why->msg);
	struct mcp_call *call = reading_free(r);

	if (rc == ERR_NOTFOUND)
		mcp_call_no_resource(call, uri);
	else
		mcp_call_error(call,
		    rc == ERR_INVAL ? MCP_INVALID_PARAMS : MCP_INTERNAL_ERROR,
		    text, NULL);
}

/* text or blob is taken over */
static void
reading_done(struct resource_reading *r, const char *type, const char *member,
    json_t *value)
{
	json_t *contents = json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri",
	    r->uri, "mimeType", type, member, value);

	mcp_call_answer(reading_free(r), contents);
}

/* ---- a file */

static enum thread_verdict
file_work(struct thread_job *job, void *room)
{
	struct resource_reading *r =
	    CONTAINER_OF(job, struct resource_reading, job);
	char *data = xmalloc(r->size + 1);
	size_t at = 0;

	(void)room;
	while (at < r->size) {
		ssize_t n = pread(r->fd, data + at, r->size - at, (off_t)at);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	if (at == r->size)
		r->data = data;
	else
		free(data);
	return THREAD_DONE;
}

static void
file_done(struct thread_job *job)
{
	struct resource_reading *r =
	    CONTAINER_OF(job, struct resource_reading, job);
	struct err e;

	r->is_away = false;
	if (r->call == NULL) {
		(void)reading_free(r);
	} else if (r->data == NULL) {
		(void)err_set(&e, ERR_SYS, "this artifact cannot be read");
		reading_fail(r, ERR_SYS, &e);
	} else if (utf8_is_valid(r->data, r->size) &&
	    memchr(r->data, '\0', r->size) == NULL) {
		reading_done(
		    r, "text/plain", "text", json_stringn(r->data, r->size));
	} else {
		reading_done(r, "application/octet-stream", "blob",
		    view_base64(r->data, r->size));
	}
}

/* The core goes, so the resources have gone before. */
static void
file_drop(struct thread_job *job)
{
	(void)reading_free(CONTAINER_OF(job, struct resource_reading, job));
}

static void
too_large(struct resource_reading *r, uint64_t size)
{
	const struct store_run *row = r->found.row;
	char id[UUID_TEXT_LEN + 1];
	struct err e;
	struct buf b;

	uuid_format(&row->uuid, id);
	buf_init(&b, ERR_TEXT_MAX / 2);
	percent_add_path(&b, r->path);
	(void)err_set(&e, ERR_INVAL,
	    "this artifact has %llu bytes, and at most %u are read as a "
	    "resource: download it from /artifacts/%s/%s/%.*s",
	    (unsigned long long)size, RESOURCE_BYTES_MAX, row->identifier, id,
	    (int)buf_len(&b), (const char *)buf_data(&b));
	buf_clear(&b);
	reading_fail(r, ERR_INVAL, &e);
}

static void
file_cb(int rc, struct download *d, const struct err *why, void *arg)
{
	struct resource_reading *r = arg;

	r->is_away = false;
	if (r->call == NULL) {
		(void)reading_free(r);
	} else if (rc != 0) {
		reading_fail(r, rc, why);
	} else if (d->size > RESOURCE_BYTES_MAX) {
		too_large(r, d->size);
	} else {
		r->fd = d->fd;
		d->fd = -1;
		r->size = (size_t)d->size;
		r->job.work = file_work;
		r->job.done = file_done;
		r->job.drop = file_drop;
		r->is_away = true;
		threads_add(logs_threads(core_logs(r->all->core)),
		    THREAD_LINE_REQUESTS, &r->job);
	}
}

/* ---- a run and its output */

static void
show_run(struct resource_reading *r)
{
	AUTO(auto_json)
	json_t *o = record_for_model(r->found.row, run_waits_for(r->found.run));
	AUTO(auto_free) char *text = js_dump(o);

	reading_done(r, "application/json", "text", json_string(text));
}

/* As get_run shows it. */
static void
show_output(struct resource_reading *r, const struct log_digest *d)
{
	AUTO(auto_json)
	json_t *o = view_run(r->found.row, d,
	    &(struct view_wish){.size = VIEW_FOR_TOOL,
		.waits = run_waits_for(r->found.run),
		.stream_max = (size_t)conf_int(
		    core_conf(r->all->core), CONF_RESULT_OUTPUT_MAX_BYTES)});
	AUTO(auto_free)
	char *url =
	    server_url_of(core_conf(r->all->core), mcp_call_base(r->call));
	AUTO(auto_free)
	char *text = tool_text(&tool_get_run, o,
	    &(struct tool_text_wish){
		.form = TOOL_TEXT_TRANSCRIPT, .server_url = url});

	reading_done(r, "text/plain", "text", json_string(text));
}

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct resource_reading *r = arg;

	r->request = NULL;
	if (rc != 0)
		reading_fail(r, rc, why);
	else
		show_output(r, d);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct resource_reading *r = arg;
	char id[UUID_TEXT_LEN + 1];

	if (rc != 0) {
		reading_fail(r, rc, why);
		return;
	}
	r->found = *found;
	if (r->is_watch) {
		mcp_call_answer(reading_free(r), json_object());
	} else if (r->kind == RESOURCE_RUN) {
		show_run(r);
	} else if (r->kind == RESOURCE_OUTPUT) {
		log_view_digest(found->view,
		    found->run != NULL ? found->run->length : UINT64_MAX,
		    digest_cb, r, &r->request);
	} else {
		uuid_format(&found->row->uuid, id);
		r->is_away = true;
		download_open(r->all->core, mcp_call_base(r->call)->who,
		    found->row->identifier, id, r->path, file_cb, r);
	}
}

/* ---- addresses */

/* false: it names nothing of ours */
static bool
parse_uri(struct resource_reading *r, struct uuid *run)
{
	AUTO(auto_free) char *id = NULL;
	const char *rest;

	if (strncmp(r->uri, ROOT, strlen(ROOT)) != 0)
		return false;
	rest = r->uri + strlen(ROOT);
	id = xstrndup(rest, strnlen(rest, UUID_TEXT_LEN));
	if (uuid_parse(id, run) != 0)
		return false;
	rest += UUID_TEXT_LEN;
	if (*rest == '\0') {
		r->kind = RESOURCE_RUN;
	} else if (strcmp(rest, OUTPUT) == 0) {
		r->kind = RESOURCE_OUTPUT;
	} else if (strncmp(rest, ARTIFACTS, strlen(ARTIFACTS)) == 0) {
		r->kind = RESOURCE_ARTIFACT;
		r->path = xstrdup(rest + strlen(ARTIFACTS));
		return percent_decode(r->path, PERCENT_PLUS_IS_PLUS) == 0;
	} else {
		return false;
	}
	return true;
}

/* The path of an artifact is looked up in the database: it leads nowhere. */
static void
reading_start(struct resource_reading *r, const char *uri)
{
	struct uuid run;
	struct err e;

	r->uri = xstrdup(uri);
	if (parse_uri(r, &run)) {
		r->lookup = lookup_open(r->all->core,
		    mcp_call_base(r->call)->who, &run, 0, found_cb, r);
		return;
	}
	(void)err_set(&e, ERR_NOTFOUND, "no such resource");
	reading_fail(r, ERR_NOTFOUND, &e);
}

static void
on_read(struct mcp_call *call, const char *uri, void *arg)
{
	reading_start(reading_new(arg, call), uri);
}

static void
on_watch(struct mcp_call *call, const char *uri, void *arg)
{
	struct resource_reading *r = reading_new(arg, call);

	r->is_watch = true;
	reading_start(r, uri);
}

/* ---- the list: newest runs first */

static json_t *
line_of(const struct history_line *l)
{
	AUTO(auto_free)
	char *says = xasprintf("%s in %s: %s", run_state_word(l->state),
	    l->identifier, l->command);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&l->uuid, id);
	return json_pack("{s:o, s:o, s:o, s:s}", "uri",
	    json_sprintf(ROOT "%s", id), "name", json_sprintf("run %s", id),
	    "description", js_string_bytes(says, strlen(says), NULL),
	    "mimeType", "application/json");
}

static void
listed_cb(
    int rc, const struct history_page *page, const struct err *why, void *arg)
{
	struct resource_reading *r = arg;
	json_t *runs, *o;

	r->asking = NULL;
	if (rc != 0) {
		reading_fail(r, rc, why);
		return;
	}
	runs = json_array();
	for (size_t i = 0; i < page->n; i++)
		json_array_append_new(runs, line_of(&page->lines[i]));
	o = json_pack("{s:o}", "resources", runs);
	if (page->next[0] != '\0')
		json_object_set_new(o, "nextCursor", json_string(page->next));
	mcp_call_answer(reading_free(r), o);
}

static void
on_list(struct mcp_call *call, const char *cursor, void *arg)
{
	struct resources *all = arg;
	struct resource_reading *r = reading_new(all, call);
	const struct history_query q = {.limit = RESOURCE_PAGE,
	    .cursor = cursor != NULL && cursor[0] != '\0' ? cursor : NULL};

	r->asking = history_list(core_store(all->core),
	    mcp_call_base(call)->who->tenant, &q, listed_cb, r);
}

/* ---- what changes */

static void
on_bus(const struct bus_event *ev, void *arg)
{
	const struct resources *all = arg;
	const struct store_run *row;
	char id[UUID_TEXT_LEN + 1], uri[sizeof(ROOT) + sizeof(id) + 16];

	if ((ev->kind != BUS_RUN_GREW && ev->kind != BUS_RUN_ENDED) ||
	    !mcp_is_watched(all->mcp))
		return;
	row = &ev->run->row;
	uuid_format(&row->uuid, id);
	(void)snprintf(uri, sizeof(uri), ROOT "%s" OUTPUT, id);
	mcp_resource_changed(all->mcp, (struct tenant_id){row->tenant}, uri);
	uri[strlen(uri) - strlen(OUTPUT)] = '\0';
	if (ev->kind == BUS_RUN_ENDED)
		mcp_resource_changed(
		    all->mcp, (struct tenant_id){row->tenant}, uri);
}

/* ---- life of all */

static json_t *
templates(void)
{
	return json_pack("[{s:s,s:s,s:s,s:s},{s:s,s:s,s:s,s:s},{s:s,s:s,s:s}]",
	    "uriTemplate", ROOT "{run_id}", "name", "run", "description",
	    "What is recorded of a run: commands, times, how it ended",
	    "mimeType", "application/json", "uriTemplate",
	    ROOT "{run_id}" OUTPUT, "name", "run output", "description",
	    "What a run printed: beginning and end", "mimeType", "text/plain",
	    "uriTemplate", ROOT "{run_id}" ARTIFACTS "{+path}", "name",
	    "artifact", "description",
	    "A file that a run left in /artifacts, up to 1 MiB");
}

struct resources *
resources_new(struct core *core, struct mcp *m)
{
	static const struct mcp_resource_ops ops = {
	    .list = on_list, .read = on_read, .watch = on_watch};
	struct resources *all = xcalloc(1, sizeof(*all));
	AUTO(auto_json) json_t *list = templates();

	all->core = core;
	all->mcp = m;
	LIST_INIT(&all->readings);
	mcp_set_resources(m, list, &ops, all);
	bus_join(core_bus(core), &all->member, on_bus, all);
	return all;
}

void
resources_free(struct resources *all)
{
	struct resource_reading *r;

	if (all == NULL)
		return;
	bus_leave(core_bus(all->core), &all->member);
	while ((r = LIST_FIRST(&all->readings)) != NULL) {
		struct mcp_call *call = r->call;

		LIST_REMOVE(r, link);
		r->call = NULL;
		/* Its run goes before the threads do. */
		lookup_close(r->lookup);
		r->lookup = NULL;
		if (!r->is_away)
			(void)reading_free(r);
		mcp_call_error(call, MCP_INTERNAL_ERROR,
		    "the server is shutting down", NULL);
	}
	free(all);
}
