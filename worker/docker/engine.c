/*
 * Where the engine is, and whether.
 *
 *	tick -> _ping -> version -> info -> up
 *
 * While it is up, _ping alone is asked every 5 s.  When that fails, and every
 * 2 s from then on, all sockets that exist are tried in order; only when none
 * of them answered it is said to be down.  What is said (hooks) is said once
 * per change.
 */
#include "worker/docker/docker_int.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/doctor/advisory.h"

#define UNIX_PREFIX "unix://"
#define SOCKET_PATH_MAX 107 /* of sockaddr_un */
#define UP_MS 5000
#define DOWN_MS 2000
#define VERSION_DEPTH 8

/* ---- which sockets are tried */

static int
take_host(struct docker *d, const char *host, struct err *e)
{
	const char *path = host + strlen(UNIX_PREFIX);

	if (strncmp(host, UNIX_PREFIX, strlen(UNIX_PREFIX)) != 0)
		return err_set(e, ERR_INVAL,
		    "DOCKER_HOST is \"%.100s\": only unix:///path is "
		    "supported",
		    host);
	if (path[0] != '/' || strlen(path) > SOCKET_PATH_MAX)
		return err_set(e, ERR_INVAL,
		    "DOCKER_HOST: \"%.120s\" is no absolute path of at most "
		    "%d bytes",
		    path, SOCKET_PATH_MAX);
	d->engine.sockets[d->engine.nsockets++] = xstrdup(path);
	return 0;
}

size_t
docker_usual_sockets(char *out[DOCKER_SOCKETS_MAX])
{
	unsigned long uid = (unsigned long)geteuid();

	out[0] = xasprintf("/run/user/%lu/podman/podman.sock", uid);
	out[1] = xasprintf("/run/user/%lu/docker.sock", uid);
	out[2] = xstrdup("/run/podman/podman.sock");
	out[3] = xstrdup("/var/run/docker.sock");
	return DOCKER_SOCKETS_MAX;
}

static bool
is_there(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* The next socket of this round that exists; false when none is left. */
static bool
choose_socket(struct docker *d)
{
	struct engine *en = &d->engine;

	while (en->tried < en->nsockets) {
		size_t i = en->tried++;

		if (en->nsockets > 1 && !is_there(en->sockets[i]))
			continue;
		en->socket = i;
		api_set_socket(d->api, en->sockets[i]);
		return true;
	}
	return false;
}

/* ---- whether it answers */

static void
say(struct docker *d)
{
	struct engine *en = &d->engine;

	if (en->known && en->up == en->said_up &&
	    strcmp(en->said, en->detail) == 0)
		return;
	en->known = true;
	en->said_up = en->up;
	memcpy(en->said, en->detail, sizeof(en->said));
	if (en->up && en->detail[0] == '\0')
		log_info("engine at %s is up, %s %s, API %s",
		    en->sockets[en->socket], en->is.about.name,
		    en->is.about.version, en->is.speak);
	else
		log_warn("engine: %s", en->detail);
	en->hooks->on_news(d);
}

static void
again_in(struct docker *d, uint64_t ms)
{
	if (!d->freeing)
		timer_set_ms(d->engine.tick, ms);
}

static void probe(struct docker *d);

static void
is_down(struct docker *d, const char *why)
{
	struct engine *en = &d->engine;
	bool was_up = en->up;

	if (d->freeing)
		return;
	en->up = false;
	(void)snprintf(en->detail, sizeof(en->detail), "%s", why);
	if (was_up)
		en->hooks->on_gone(d);
	else if (choose_socket(d)) { /* perhaps another one answers */
		probe(d);
		return;
	}
	say(d);
	again_in(d, DOWN_MS);
}

static void
no_socket(struct docker *d)
{
	struct engine *en = &d->engine;
	char text[ERR_TEXT_MAX];
	size_t n = 0;

	n = (size_t)snprintf(text, sizeof(text), "no Docker engine: none of");
	for (size_t i = 0; i < en->nsockets && n < sizeof(text); i++)
		n += (size_t)snprintf(
		    text + n, sizeof(text) - n, " %s", en->sockets[i]);
	if (n < sizeof(text))
		(void)snprintf(text + n, sizeof(text) - n,
		    " exists; start one or set DOCKER_HOST");
	is_down(d, text);
}

/* ---- asking it: _ping, and when it is new also version and info */

static void
add_text(char *to, size_t size, const char *text)
{
	size_t n = strlen(to);

	(void)snprintf(to + n, size - n, "%s%s", n > 0 ? ", " : "", text);
}

/* Who limits a sandbox's file system. */
static void
say_disk(const struct docker *d, const struct answer_info *info)
{
	const struct policy *p = d->policy;
	bool by_engine =
	    info->quota != ANSWER_QUOTA_NONE && !d->creates.no_quota;

	if (p->disk_bytes == 0 && p->disk_inodes == 0)
		log_warn("sandboxes may fill the engine's disk: "
			 "SANDBOX_DISK_MB and SANDBOX_DISK_INODES are 0");
	else
		log_info("a sandbox may add %llu MiB and %llu files to its "
			 "image (0: any): MiB by %s (%s), files by its agent",
		    (unsigned long long)(p->disk_bytes >> 20),
		    (unsigned long long)p->disk_inodes,
		    by_engine ? "the engine" : "its agent", info->storage);
}

static void
say_users(const struct docker *d, const struct answer_info *info)
{
	if (answer_remaps(info))
		log_info("root of a sandbox is another user of this host");
	else if (d->policy->as_root == POLICY_ROOT_ALLOW)
		log_warn("root of a sandbox is this host's root, and its user "
			 "the host's uid 1000: start the engine with "
			 "--userns-remap=default, or set SANDBOX_AS_ROOT");
	else
		log_info("no command runs as root: the engine remaps no users "
			 "(SANDBOX_AS_ROOT)");
}

static void
is_up(struct docker *d, const struct answer_info *info)
{
	struct engine *en = &d->engine;
	char missing[128] = "";

	if (!info->memory_limit)
		add_text(missing, sizeof(missing), "memory");
	if (!info->pids_limit)
		add_text(missing, sizeof(missing), "processes");
	if (!info->cpu_quota)
		add_text(missing, sizeof(missing), "CPU");
	/* At the start it is a wrong setting; later, the engine's change. */
	if (!info->has_runtime && !en->known)
		fatal(EXIT_CONFIG,
		    "SANDBOX_RUNTIME: the engine at %s has no runtime %s",
		    en->sockets[en->socket], d->policy->runtime);
	en->detail[0] = '\0';
	if (missing[0] != '\0')
		(void)snprintf(en->detail, sizeof(en->detail),
		    "the engine at %s does not enforce limits of %s: enable "
		    "these cgroup controllers",
		    en->sockets[en->socket], missing);
	if (!info->has_runtime)
		(void)snprintf(en->detail, sizeof(en->detail),
		    "the engine at %s has no runtime %s (SANDBOX_RUNTIME)",
		    en->sockets[en->socket], d->policy->runtime);
	en->up = true;
	en->quota = info->quota;
	en->cpus = info->cpus;
	en->has_seccomp = info->seccomp;
	/* What makes a container for which nobody asks for another. */
	(void)snprintf(en->is.about.runtime, sizeof(en->is.about.runtime), "%s",
	    d->policy->runtime[0] != '\0' ? d->policy->runtime :
					    info->default_runtime);
	en->users =
	    answer_remaps(info) ? BACKEND_USERS_MAPPED : BACKEND_USERS_SAME;
	en->hooks->on_alive(d);
	say_disk(d, info);
	say_users(d, info);
	say(d);
	again_in(d, UP_MS);
}

static void
info_done_cb(const struct api_answer *a, void *arg)
{
	struct answer_info info = {0};
	struct docker *d = arg;
	struct err e;
	int rc = docker_check(a, "info", &e);

	if (rc == 0)
		rc =
		    answer_info(a->body, a->len, d->policy->runtime, &info, &e);
	if (rc != 0)
		is_down(d, e.msg);
	else
		is_up(d, &info);
}

static void
take_advisories(struct docker *d, const struct api_answer *a)
{
	json_t *version = NULL;

	if (js_parse(a->body, a->len, ANSWER_SMALL_MAX, VERSION_DEPTH, &version,
		NULL) != 0)
		return;
	json_decref(d->engine.advisories);
	d->engine.advisories = advisory_list_open(
	    version, strcmp(d->policy->seccomp, "unconfined") != 0);
	json_decref(version);
}

static void
version_done_cb(const struct api_answer *a, void *arg)
{
	struct docker *d = arg;
	struct err e;
	int rc = docker_check(a, "version", &e);

	if (rc == 0)
		rc = answer_version(a->body, a->len, &d->engine.is, &e);
	if (rc != 0) {
		is_down(d, e.msg);
		return;
	}
	take_advisories(d, a);
	(void)docker_ask(d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_PING_MS,
		.on_done = info_done_cb,
		.arg = d},
	    "/info");
}

/* Before its version is known. */
static void
ask_plainly(struct docker *d, const char *path,
    void (*on_done)(const struct api_answer *, void *))
{
	(void)api_start(d->api,
	    &(struct api_ask){.method = "GET",
		.path = path,
		.timeout_ms = DOCKER_PING_MS,
		.max_body = ANSWER_SMALL_MAX,
		.on_done = on_done,
		.arg = d});
}

static void
ping_done_cb(const struct api_answer *a, void *arg)
{
	struct docker *d = arg;
	struct err e;

	if (a->rc != 0) {
		is_down(d, a->why->msg);
	} else if (docker_check(a, "ping", &e) != 0) {
		is_down(d, e.msg);
	} else if (d->engine.up) {
		d->engine.hooks->on_alive(d);
		again_in(d, UP_MS);
	} else {
		ask_plainly(d, "/version", version_done_cb);
	}
}

static void
probe(struct docker *d)
{
	ask_plainly(d, "/_ping", ping_done_cb);
}

static void
tick_cb(void *arg)
{
	struct docker *d = arg;

	d->engine.tried = 0;
	if (d->engine.up || choose_socket(d))
		probe(d);
	else
		no_socket(d);
}

/* ---- life */

int
engine_init(struct docker *d, const char *host,
    const struct engine_hooks *hooks, struct err *e)
{
	struct engine *en = &d->engine;

	en->hooks = hooks;
	if (host[0] == '\0')
		en->nsockets = docker_usual_sockets(en->sockets);
	else if (take_host(d, host, e) != 0)
		return ERR_INVAL;
	en->tick = timer_new(d->base, tick_cb, d);
	(void)snprintf(
	    en->detail, sizeof(en->detail), "the engine was not asked yet");
	again_in(d, 0);
	return 0;
}

void
engine_clear(struct docker *d)
{
	struct engine *en = &d->engine;

	timer_free(en->tick);
	json_decref(en->advisories);
	en->advisories = NULL;
	for (size_t i = 0; i < en->nsockets; i++)
		free(en->sockets[i]);
	en->nsockets = 0;
}
