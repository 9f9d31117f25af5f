#include "worker/docker/docker_int.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/js.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/doctor/advisory.h"

#define ANSWER_MAX (1u << 20)
#define DEPTH_MAX 32
#define ASK_MS 10000

/* ---- reading */

static void
take(char *out, size_t size, const json_t *o, const char *key)
{
	const char *s = js_text(o, key);

	text_clean(out, size, s, strlen(s));
}

/* Debian's engine gives packages' versions as commits; others give hashes
 * there, and the version in the list of components. */
static void
take_part(char *out, size_t size, const json_t *version, const char *name,
    const json_t *info, const char *commit)
{
	char id[BACKEND_WORD_MAX];

	take(out, size, advisory_part(version, name), "Version");
	take(id, sizeof(id), json_object_get(info, commit), "ID");
	if (strchr(id, '.') != NULL)
		(void)snprintf(out, size, "%s", id);
}

/* Of --platform=WORD, or with one dash, in a runtime's arguments. */
static void
take_platform(const json_t *arguments, char *out, size_t size)
{
	static const char flag[] = "platform=";
	const json_t *item;
	size_t i;

	json_array_foreach (arguments, i, item) {
		const char *s = json_string_value(item);

		if (s == NULL)
			continue;
		s += strspn(s, "-");
		if (strncmp(s, flag, strlen(flag)) == 0)
			text_clean(out, size, s + strlen(flag),
			    strlen(s + strlen(flag)));
	}
}

static void
take_runtimes(const json_t *runtimes, struct backend_facts *out)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)runtimes, name, value) {
		struct backend_runtime *r = &out->runtime[out->nruntimes];

		if (out->nruntimes == BACKEND_RUNTIMES_SAID)
			return;
		text_clean(r->name, sizeof(r->name), name, strlen(name));
		r->kind = runtimes_kind(name, js_text(value, "path"));
		take_platform(json_object_get(value, "runtimeArgs"),
		    r->platform, sizeof(r->platform));
		out->nruntimes++;
	}
}

static void
take_info(const json_t *info, int64_t now_ms, struct backend_facts *out)
{
	int64_t theirs = answer_time_ms(
	    json_string_value(json_object_get(info, "SystemTime")));

	out->ahead_ms = theirs == INT64_MIN ? INT64_MIN : theirs - now_ms;
	take_runtimes(json_object_get(info, "Runtimes"), out);
	take(out->cgroup, sizeof(out->cgroup), info, "CgroupVersion");
	take(out->kernel, sizeof(out->kernel), info, "KernelVersion");
	take(out->root, sizeof(out->root), info, "DockerRootDir");
}

/* What a worker goes by is read by a worker's own code. */
static void
take_limits(const char *text, struct backend_facts *out)
{
	struct answer_info info;
	struct err e;

	if (answer_info(text, strlen(text), "", &info, &e) != 0)
		return;
	memcpy(out->storage, info.storage, sizeof(out->storage));
	memcpy(out->runtimes, info.runtimes, sizeof(out->runtimes));
	out->limits_memory = info.memory_limit;
	out->limits_pids = info.pids_limit;
	out->limits_cpu = info.cpu_quota;
	out->limits_disk = info.quota != ANSWER_QUOTA_NONE;
	out->rootless = info.rootless;
	out->maps_users = answer_remaps(&info);
	out->seccomp = info.seccomp;
	out->apparmor = info.apparmor;
	out->selinux = info.selinux;
}

void
docker_read_facts(const char *version, const char *info, int64_t now_ms,
    struct backend_facts *out)
{
	AUTO(auto_json) json_t *v = NULL;
	AUTO(auto_json) json_t *i = NULL;
	struct err e;

	memset(out, 0, sizeof(*out));
	if (js_parse(version, strlen(version), ANSWER_MAX, DEPTH_MAX, &v, &e) !=
	    0)
		v = NULL;
	if (js_parse(info, strlen(info), ANSWER_MAX, DEPTH_MAX, &i, &e) != 0)
		i = NULL;
	take(out->engine, sizeof(out->engine), v, "Version");
	take_part(out->containerd, sizeof(out->containerd), v, "containerd", i,
	    "ContainerdCommit");
	take_part(out->runc, sizeof(out->runc), v, "runc", i, "RuncCommit");
	take_info(i, now_ms, out);
	take_limits(info, out);
}

/* ---- asking */

struct facts_call {
	struct event_base *base;
	char *body; /* NULL: it failed, and e says why */
	const char *path;
	struct err *e;
};

static void
done_cb(const struct api_answer *a, void *arg)
{
	struct facts_call *c = arg;

	if (docker_check(a, c->path, c->e) == 0)
		c->body = xstrndup(a->body, a->len);
	(void)event_base_loopbreak(c->base);
}

/* The caller frees; NULL when there is no good answer. */
static char *
get(struct event_base *base, struct api *api, const char *path, struct err *e)
{
	struct facts_call c = {.base = base, .path = path, .e = e};
	struct api_ask ask = {.method = "GET",
	    .path = path,
	    .timeout_ms = ASK_MS,
	    .max_body = ANSWER_MAX,
	    .on_done = done_cb,
	    .arg = &c};

	(void)api_start(api, &ask);
	(void)event_base_dispatch(base);
	return c.body;
}

/* What holds of the way to it. */
static void
take_wire(
    const struct sites *s, const struct api *api, struct backend_facts *out)
{
	struct certs_look look;
	struct err e;

	out->is_remote = s->is_tcp && !s->is_loopback;
	out->has_tls = s->ca != NULL;
	if (out->has_tls && sites_check_files(s, &look, &e) == 0) {
		out->ca_ends_ms = look.ca_expires_ms;
		out->own_ends_ms = look.own_expires_ms;
		out->peer_ends_ms = api_peer_expires_ms(api);
	}
}

static bool
ask_one(struct event_base *base, struct sites *s, struct site *site,
    struct backend_facts *out, struct err *e)
{
	AUTO(auto_free) char *version = NULL;
	AUTO(auto_free) char *info = NULL;
	struct api *api = api_new(base, &docker_server);
	bool is_good = !s->is_tcp || sites_use_tcp(s, api, e) == 0;

	if (!s->is_tcp)
		api_set_socket(api, site->where);
	if (is_good)
		version = get(base, api, "/version", e);
	info = version == NULL ? NULL : get(base, api, "/info", e);
	is_good = version != NULL && info != NULL;
	if (is_good) {
		docker_read_facts(version, info, clock_wall_ms(), out);
		(void)snprintf(
		    out->where, sizeof(out->where), "%s", site->where);
		take_wire(s, api, out);
	}
	api_free(api);
	return is_good;
}

int
docker_ask_facts(
    const struct conf *conf, struct backend_facts *out, struct err *e)
{
	struct event_base *base = event_base_new();
	struct certs_look look;
	struct sites sites;
	bool found = false;
	int rc;

	if (base == NULL)
		return err_set(e, ERR_SYS, "no event base");
	rc = sites_init(&sites, conf, e);
	if (rc == 0)
		rc = sites_check_files(&sites, &look, e);
	for (size_t i = 0; i < sites.n && rc == 0 && !found; i++)
		if (!sites.is_chosen_here || sites_is_there(&sites.all[i]))
			found = ask_one(base, &sites, &sites.all[i], out, e);
	if (rc == 0 && !found && sites.is_chosen_here)
		rc = err_set(
		    e, ERR_BACKEND, "no engine answers at the usual sockets");
	sites_clear(&sites);
	event_base_free(base);
	return found ? 0 : rc != 0 ? rc : ERR_BACKEND;
}
