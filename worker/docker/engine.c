/*
 * Which site the engine is at, and whether it is up.
 *
 *	tick -> _ping -> version -> info -> up
 *
 * While it is up, _ping is asked every 5 s, and what it is when it may have
 * been restarted (its events ended) and once a minute: it may be of another
 * version then, and another version of its API is spoken.  When a ping fails,
 * and every 2 s from then on, all sites that exist are tried in order, but only
 * until one has answered: what made the sandboxes is the engine for as long as
 * this process lives.  What is said (hooks) is said once per change.
 */
#include "worker/docker/docker_int.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/doctor/advisory.h"

#define UP_MS 5000
#define DOWN_MS 2000
#define DOUBT_MS 100 /* what ended may be coming up again */
#define VERSION_DEPTH 8
#define PINGS 12 /* from one question what it is to the next */
#define DAY_MS (INT64_C(24) * 60 * 60 * 1000)
#define WARN_DAYS 30

/* ---- which sites are tried */

/* The next one of this round; false when none is left.  One that answered once
 * is the engine that has the sandboxes: another is none of ours. */
static bool
choose_site(struct docker *d)
{
	struct engine *en = &d->engine;

	while (en->tried < en->sites.n) {
		size_t i = en->tried++;
		struct site *site = &en->sites.all[i];

		if (en->is_chosen && i != en->site)
			continue;
		if (en->sites.is_chosen_here && !en->is_chosen &&
		    !sites_is_there(site))
			continue;
		en->site = i;
		if (!en->sites.is_tcp)
			api_set_socket(d->api, site->where);
		return true;
	}
	return false;
}

static const char *
where_of(const struct engine *en)
{
	return en->sites.all[en->site].where;
}

/* ---- whether it answers */

/* What it is, and which sites were not taken. */
static void
say_up(const struct engine *en)
{
	char passed[SITES_MAX * SITE_WHY_MAX];

	log_info("engine at %s is up, %s", where_of(en), en->said_is);
	if (!en->sites.is_chosen_here)
		return;
	sites_say_passed(&en->sites, passed, sizeof(passed));
	log_info("DOCKER_HOST is not set: %s is the first that answers%s%s",
	    where_of(en), passed[0] != '\0' ? "; " : "", passed);
}

/* Its version, and that of the API, as they are said. */
static void
describe(const struct engine *en, char out[ENGINE_IS_MAX])
{
	(void)snprintf(out, ENGINE_IS_MAX, "%s %s, API %s", en->is.about.name,
	    en->is.about.version, en->is.speak);
}

static bool
is_another(const struct engine *en)
{
	char is[ENGINE_IS_MAX];

	describe(en, is);
	return strcmp(is, en->said_is) != 0;
}

static void
say(struct docker *d)
{
	struct engine *en = &d->engine;

	if (en->known && en->up == en->said_up &&
	    strcmp(en->said, en->detail) == 0 && (!en->up || !is_another(en)))
		return;
	en->known = true;
	en->said_up = en->up;
	memcpy(en->said, en->detail, sizeof(en->said));
	if (en->up) {
		describe(en, en->said_is);
		say_up(en);
	}
	if (en->detail[0] != '\0')
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

/* Why none of several was taken is said together. */
static void
take_failure(struct engine *en, const char *why)
{
	char passed[ERR_TEXT_MAX - 100];

	if (en->is_chosen || !en->sites.is_chosen_here) {
		(void)snprintf(en->detail, sizeof(en->detail), "%s", why);
		return;
	}
	sites_say_passed(&en->sites, passed, sizeof(passed));
	(void)snprintf(en->detail, sizeof(en->detail),
	    "no Docker engine: start one or set DOCKER_HOST (%s)", passed);
}

static void
is_down(struct docker *d, const char *why)
{
	struct engine *en = &d->engine;
	bool was_up = en->up;

	if (d->freeing)
		return;
	en->up = false;
	(void)snprintf(en->sites.all[en->site].why, SITE_WHY_MAX, "%s", why);
	if (was_up)
		en->hooks->on_gone(d);
	else if (choose_site(d)) { /* perhaps another one answers */
		probe(d);
		return;
	}
	take_failure(en, why);
	say(d);
	again_in(d, DOWN_MS);
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

static bool
has_no_own_users(const struct docker *d)
{
	return d->policy->own_users && !d->engine.is.is_podman;
}

static void
say_users(const struct docker *d, const struct answer_info *info)
{
	if (d->policy->own_users)
		log_info("each sandbox has users of its own "
			 "(SANDBOX_USERNS=auto): its root is another user of "
			 "this host");
	else if (answer_remaps(info))
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
warn_of_end(const char *what, int64_t ms, int64_t now)
{
	time_t t = (time_t)(ms / 1000);
	char day[16] = "";
	struct tm tm;

	if (ms == 0 || ms - now > WARN_DAYS * DAY_MS)
		return;
	if (gmtime_r(&t, &tm) != NULL)
		(void)strftime(day, sizeof(day), "%Y-%m-%d", &tm);
	log_warn("%s ends on %s: renew it; what is put in its place is taken "
		 "without a restart",
	    what, day);
}

/* Once a day. */
static void
warn_of_ends(struct docker *d)
{
	struct engine *en = &d->engine;
	int64_t now = clock_wall_ms();
	struct certs_look look;
	struct err e;

	if (en->sites.ca == NULL || now - en->warned_ms < DAY_MS ||
	    sites_check_files(&en->sites, &look, &e) != 0)
		return;
	en->warned_ms = now;
	warn_of_end("ca.pem of DOCKER_CERT_PATH", look.ca_expires_ms, now);
	warn_of_end("cert.pem of DOCKER_CERT_PATH", look.own_expires_ms, now);
	warn_of_end(
	    "the engine's certificate", api_peer_expires_ms(d->api), now);
}

/* Cgroup v1 gives nothing to a user; v2 what was delegated. */
static void
take_limits(struct engine *en, const struct answer_info *info)
{
	char missing[128] = "";

	if (!info->memory_limit)
		add_text(missing, sizeof(missing), "memory");
	if (!info->pids_limit)
		add_text(missing, sizeof(missing), "processes");
	if (!info->cpu_quota)
		add_text(missing, sizeof(missing), "CPU");
	en->detail[0] = '\0';
	if (missing[0] == '\0')
		return;
	(void)snprintf(en->detail, sizeof(en->detail),
	    "the engine at %s does not enforce limits of %s: %s", where_of(en),
	    missing,
	    info->rootless ?
		"it runs without root, and has what cgroup v2 delegates to its "
		"user; of v1 that is nothing (docs/engines.md)" :
		"enable these cgroup controllers");
}

static void
is_up(struct docker *d, const struct answer_info *info)
{
	struct engine *en = &d->engine;
	bool was_up = en->up && !is_another(en);

	/* At the start it is a wrong setting; later, the engine's change. */
	if (!info->has_runtime && !en->known)
		fatal(EXIT_CONFIG,
		    "SANDBOX_RUNTIME: the engine at %s has no runtime %s",
		    where_of(en), d->policy->runtime);
	if (has_no_own_users(d) && !en->known)
		fatal(EXIT_CONFIG, "%s", ENGINE_HAS_NO_OWN_USERS);
	take_limits(en, info);
	if (!info->has_runtime)
		(void)snprintf(en->detail, sizeof(en->detail),
		    "the engine at %s has no runtime %s (SANDBOX_RUNTIME)",
		    where_of(en), d->policy->runtime);
	if (has_no_own_users(d))
		(void)snprintf(en->detail, sizeof(en->detail), "%s",
		    ENGINE_HAS_NO_OWN_USERS);
	en->up = en->is_chosen = true;
	en->is_stale = false;
	en->pings = 0;
	en->sites.all[en->site].why[0] = '\0';
	en->quota = info->quota;
	en->cpus = info->cpus;
	en->has_seccomp = info->seccomp;
	/* What makes a container for which nobody asks for another. */
	(void)snprintf(en->is.about.runtime, sizeof(en->is.about.runtime), "%s",
	    d->policy->runtime[0] != '\0' ? d->policy->runtime :
					    info->default_runtime);
	memcpy(en->is.about.runtimes, info->runtimes,
	    sizeof(en->is.about.runtimes));
	en->users = answer_remaps(info) || d->policy->own_users ?
	    BACKEND_USERS_MAPPED :
	    BACKEND_USERS_SAME;
	en->hooks->on_alive(d);
	if (!was_up) {
		say_disk(d, info);
		say_users(d, info);
	}
	say(d);
	warn_of_ends(d);
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

static bool
is_as_before(const struct engine *en, const struct answer_version *is)
{
	return en->up && !en->is_stale &&
	    strcmp(en->is.speak, is->speak) == 0 &&
	    strcmp(en->is.about.name, is->about.name) == 0 &&
	    strcmp(en->is.about.version, is->about.version) == 0;
}

static void
version_done_cb(const struct api_answer *a, void *arg)
{
	struct answer_version is;
	struct docker *d = arg;
	struct err e;
	int rc = docker_check(a, "version", &e);

	if (rc == 0)
		rc = answer_version(a->body, a->len, &is, &e);
	if (rc != 0) {
		is_down(d, e.msg);
		return;
	}
	if (is_as_before(&d->engine, &is)) {
		warn_of_ends(d);
		again_in(d, UP_MS);
		return;
	}
	d->engine.is = is;
	take_advisories(d, a);
	(void)docker_ask(d,
	    &(struct api_ask){.method = "GET",
		.timeout_ms = DOCKER_INFO_MS,
		.on_done = info_done_cb,
		.arg = d},
	    "/info");
}

/* Before its version is known. */
static void
ask_plainly(struct docker *d, const char *path, uint32_t timeout_ms,
    void (*on_done)(const struct api_answer *, void *))
{
	(void)api_start(d->api,
	    &(struct api_ask){.method = "GET",
		.path = path,
		.timeout_ms = timeout_ms,
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
	} else if (d->engine.up && !d->engine.is_stale &&
	    ++d->engine.pings < PINGS) {
		d->engine.hooks->on_alive(d);
		again_in(d, UP_MS);
	} else {
		d->engine.pings = 0;
		ask_plainly(d, "/version", DOCKER_INFO_MS, version_done_cb);
	}
}

static void
probe(struct docker *d)
{
	const struct sites *s = &d->engine.sites;
	struct certs_look look;
	struct err e;

	/* No engine was reached so far, so nothing is lost. */
	if (sites_came_late(s))
		fatal(EXIT_ANEW,
		    "DOCKER_CERT_PATH: %s is there now; this worker, which is "
		    "older, may not read in it: it ends, and the next one may",
		    s->directory);
	if (sites_check_files(s, &look, &e) != 0)
		is_down(d, e.msg);
	else
		ask_plainly(d, "/_ping", DOCKER_PING_MS, ping_done_cb);
}

static void
tick_cb(void *arg)
{
	struct docker *d = arg;

	d->engine.tried = 0;
	if (d->engine.up || choose_site(d))
		probe(d);
	else
		is_down(d, "");
}

/* ---- life */

/* What listens there is root of its machine for whoever connects. */
static void
warn_of_plain(const struct sites *s)
{
	if (s->is_tcp && s->ca == NULL && !s->is_loopback)
		log_warn("DOCKER_HOST is %s, without TLS: whoever reaches that "
			 "port, or the wire to it, has root on the engine's "
			 "machine: set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH",
		    s->all[0].where);
}

int
engine_init(struct docker *d, const struct conf *conf,
    const struct engine_hooks *hooks, struct err *e)
{
	struct engine *en = &d->engine;

	en->hooks = hooks;
	if (sites_init(&en->sites, conf, e) != 0 ||
	    (en->sites.is_tcp && sites_use_tcp(&en->sites, d->api, e) != 0))
		return ERR_INVAL;
	warn_of_plain(&en->sites);
	en->tick = timer_new(d->base, tick_cb, d);
	(void)snprintf(
	    en->detail, sizeof(en->detail), "the engine was not asked yet");
	again_in(d, 0);
	return 0;
}

void
engine_doubt(struct docker *d)
{
	uint64_t now = clock_mono_ms();

	if (!d->engine.up)
		return;
	d->engine.is_stale = true;
	/* Events that never go on are no reason to ask all the time. */
	if (now - d->engine.doubted_ms >= UP_MS)
		again_in(d, DOUBT_MS);
	d->engine.doubted_ms = now;
}

void
engine_clear(struct docker *d)
{
	struct engine *en = &d->engine;

	timer_free(en->tick);
	json_decref(en->advisories);
	en->advisories = NULL;
	sites_clear(&en->sites);
}
