#include "worker/docker/docker_int.h"

#include <stdio.h>
#include <sys/stat.h>

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
#define UNIX_PREFIX "unix://"

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

static void
take_info(const json_t *info, int64_t now_ms, struct backend_facts *out)
{
	int64_t theirs = answer_time_ms(
	    json_string_value(json_object_get(info, "SystemTime")));

	out->ahead_ms = theirs == INT64_MIN ? INT64_MIN : theirs - now_ms;
	take(out->cgroup, sizeof(out->cgroup), info, "CgroupVersion");
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
	char *body; /* NULL: it failed */
};

static void
done_cb(const struct api_answer *a, void *arg)
{
	struct facts_call *c = arg;

	if (a->rc == 0 && a->status == 200)
		c->body = xstrndup(a->body, a->len);
	(void)event_base_loopbreak(c->base);
}

/* The caller frees; NULL when there is no good answer. */
static char *
get(struct event_base *base, struct api *api, const char *path)
{
	struct facts_call c = {.base = base};
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

static bool
ask_one(struct event_base *base, const char *socket, struct backend_facts *out)
{
	AUTO(auto_free) char *version = NULL;
	AUTO(auto_free) char *info = NULL;
	struct api *api = api_new(base, &docker_server);

	api_set_socket(api, socket);
	version = get(base, api, "/version");
	info = version == NULL ? NULL : get(base, api, "/info");
	api_free(api);
	if (version == NULL || info == NULL)
		return false;
	docker_read_facts(version, info, clock_wall_ms(), out);
	return true;
}

int
docker_ask_facts(
    const struct conf *conf, struct backend_facts *out, struct err *e)
{
	const char *host = conf_str(conf, CONF_DOCKER_HOST);
	struct event_base *base = event_base_new();
	char *usual[DOCKER_SOCKETS_MAX];
	bool found = false;
	struct stat st;
	size_t n;

	if (base == NULL)
		return err_set(e, ERR_SYS, "no event base");
	n = docker_usual_sockets(usual);
	if (strncmp(host, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		found = ask_one(base, host + strlen(UNIX_PREFIX), out);
	for (size_t i = 0; i < n; i++) {
		if (host[0] == '\0' && !found && stat(usual[i], &st) == 0)
			found = ask_one(base, usual[i], out);
		free(usual[i]);
	}
	event_base_free(base);
	if (!found)
		return err_set(e, ERR_BACKEND, "no engine answers at %s",
		    host[0] != '\0' ? host : "the usual sockets");
	return 0;
}
