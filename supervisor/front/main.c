/*
 * main.c - mcp-sandboxd-front: everything a client can reach
 *
 * Started by the supervisor, which sends configuration, listening sockets and
 * the workers' channels (common/child.h).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/child.h"
#include "common/clock.h"
#include "common/confine.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/fence.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/tenant_lines.h"
#include "common/turns.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/event_news.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/webhooks.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/tenants_file.h"
#include "supervisor/front/check_data.h"
#include "supervisor/front/front.h"
#include "supervisor/front/key.h"
#include "supervisor/front/oauth.h"
#include "supervisor/front/postbox.h"
#include "supervisor/front/server_status.h"
#include "supervisor/http/tls.h"

#define DRAIN_POLL_MS 20
#define SERVE_POLL_MS 5
#define SERVE_PATIENCE_MS 15000
/* Descriptors beside those of connections: database, spools of runs. */
#define DESCRIPTORS_OWN 4096
#define LISTENERS_MAX 4
#define SECRETS_KEY_FILE_MAX 4096

struct program {
	struct event_base *base;
	struct child *child;
	struct conf *conf;
	char *dir;     /* in DATA_DIR, ours alone */
	char *tenants; /* text of TENANTS_FILE, or NULL */
	struct store *store;
	struct core *core;
	struct webhooks *webhooks;
	struct rekeying rekeying;
	struct front *front;
	struct waiting_listener {
		int fd;
		char *address;
	} listeners[LISTENERS_MAX];
	size_t nlisteners;
	int tls_files[MSG_TLS_PART_CLIENT_CA + 1]; /* -1: none */
	int secrets_key;                           /* likewise */
	struct timer *serve;
	uint64_t serve_at_ms; /* at the latest */
	struct event *drain;
	uint64_t drain_until_ms;
	bool is_idle; /* no call is open */
};

/* Static, so that leak checkers see what lives as long as the program. */
static struct program program = {.tls_files = {-1, -1, -1}, .secrets_key = -1};

/* ---- opening */

static void
raise_descriptor_limit(const struct conf *conf)
{
	rlim_t want =
	    (rlim_t)conf_int(conf, CONF_MAX_CONNECTIONS) * 2 + DESCRIPTORS_OWN;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur >= want)
		return;
	rl.rlim_cur = want < rl.rlim_max ? want : rl.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &rl);
	if (rl.rlim_cur < want)
		log_warn("only %llu descriptors are allowed, %llu are wanted "
			 "for MAX_CONNECTIONS: raise the limit (ulimit -n)",
		    (unsigned long long)rl.rlim_cur, (unsigned long long)want);
}

/* Before the store starts its threads. */
static int
raise_fence(const char *dir, const char *artifacts, struct err *e)
{
	const struct fence_gate gates[] = {
	    {dir, FENCE_OWN}, {artifacts, FENCE_OWN}};

	return fence_raise(gates, artifacts[0] != '\0' ? 2 : 1, e);
}

static void
on_migrating(void *arg)
{
	child_still_starting(arg);
}

static int
open_data(struct program *p, uint8_t key[KEY_BYTES], struct err *e)
{
	const struct store_progress progress = {on_migrating, p->child};
	const char *artifacts = conf_str(p->conf, CONF_ARTIFACTS_DIR);
	const char *tenants = conf_str(p->conf, CONF_TENANTS_FILE);

	p->dir =
	    xasprintf("%s/" LAYOUT_FRONT, conf_str(p->conf, CONF_DATA_DIR));
	if (check_data_places(p->conf, e) != 0 ||
	    fd_mkdir_all(p->dir, 0700, e) != 0 ||
	    (artifacts[0] != '\0' && fd_mkdir_all(artifacts, 0700, e) != 0) ||
	    /* While files beside our own can be reached. */
	    (tenants[0] != '\0' &&
		tenant_lines_read(tenants, NULL, &p->tenants, e) != 0) ||
	    raise_fence(p->dir, artifacts, e) != 0 ||
	    key_load(p->dir, key, e) != 0 ||
	    store_open_slow(
		p->base, p->dir, artifacts, &progress, &p->store, e) != 0)
		return e->code;
	return 0;
}

static void
on_refuse(const char *why, void *arg)
{
	struct program *p = arg;

	store_close(p->store);
	child_die(p->child, EXIT_CONFIG, "%s", why);
}

static void
log_who_may_call(const struct tenants *t, const struct conf *conf)
{
	bool is_asked = conf_str(conf, CONF_OAUTH_ISSUER)[0] != '\0';
	bool is_required = conf_bool(conf, CONF_REQUIRE_TOKEN);
	size_t ntenants, ntokens;

	tenants_count(t, &ntenants, &ntokens);
	if (!is_asked && !is_required && tenants_is_open(t))
		log_info("no tenant and no token yet: whoever reaches this "
			 "server on loopback may use it");
	else if (!is_asked && ntokens == 0)
		log_warn("every request wants a token, and none is good yet: "
			 "make one by sandboxctl token add %s",
		    TENANT_DEFAULT_NAME);
	else
		log_info("every request wants a token: %zu tenants, %zu "
			 "tokens that are good",
		    ntenants, ntokens);
}

static int
open_core(struct program *p, struct err *e)
{
	struct core_parts parts = {
	    .base = p->base,
	    .conf = p->conf,
	    .store = p->store,
	    .instance = child_instance(p->child),
	    .refuse = on_refuse,
	    .refuse_arg = p,
	};

	if (webhooks_open(p->store, &p->webhooks, e) != 0)
		return e->code;
	parts.webhooks = p->webhooks;
	if (core_new(&parts, &p->core, e) != 0)
		return e->code;
	if (p->tenants != NULL &&
	    tenants_file_apply(core_tenants(p->core), core_acts(p->core),
		conf_str(p->conf, CONF_TENANTS_FILE), p->tenants, e) != 0)
		return e->code;
	free(p->tenants);
	p->tenants = NULL;
	log_who_may_call(core_tenants(p->core), p->conf);
	return core_recover(p->core, e);
}

/* ---- the key of secrets */

static void
replace_fd(int *fd, int with)
{
	if (*fd != -1)
		(void)close(*fd);
	*fd = with;
}

static void
on_secrets_key(int fd, void *arg)
{
	struct program *p = arg;

	replace_fd(&p->secrets_key, fd);
}

/* The supervisor has said so when there is none. */
static void
unlock_secrets(struct program *p)
{
	uint8_t *text = NULL;
	struct err e;
	size_t n;

	if (p->secrets_key == -1)
		return;
	if (fd_read_sealed(
		p->secrets_key, SECRETS_KEY_FILE_MAX, &text, &n, &e) != 0 ||
	    secrets_unlock(core_secrets(p->core), (const char *)text, n,
		&p->rekeying, &e) != 0 ||
	    webhooks_unlock(
		p->webhooks, (const char *)text, n, &p->rekeying, &e) != 0)
		log_warn("SECRETS_KEY_FILE: %s; until then runs that need a "
			 "secret are refused",
		    e.msg);
	else
		rekeying_asked(&p->rekeying,
		    secrets_have_older_key(core_secrets(p->core)));
	if (text != NULL)
		explicit_bzero(text, n);
	free(text);
	replace_fd(&p->secrets_key, -1);
}

/* No restart: that would go on without what is gone. */
static void
on_damaged(const struct err *why, void *arg)
{
	struct program *p = arg;

	child_die(p->child, EXIT_CONFIG, "%s", why->msg);
}

/* ---- TLS */

static void
on_tls_file(enum msg_tls_part part, int fd, void *arg)
{
	struct program *p = arg;

	replace_fd(&p->tls_files[part], fd);
}

static int
load_tls(const int *files, struct tls **out, struct err *e)
{
	int rc = tls_load(files[MSG_TLS_PART_CERTIFICATE],
	    files[MSG_TLS_PART_KEY], files[MSG_TLS_PART_CLIENT_CA], out, e);

	if (rc == 0 && tls_warning(*out) != NULL)
		log_warn("%s", tls_warning(*out));
	return rc;
}

/* What came, and then the copies are gone. */
static int
take_tls(struct program *p, struct err *e)
{
	struct tls *tls = NULL;
	int rc;

	if (p->tls_files[MSG_TLS_PART_CERTIFICATE] == -1)
		return 0;
	rc = load_tls(p->tls_files, &tls, e);
	for (size_t i = 0; i < ARRAY_LEN(p->tls_files); i++)
		replace_fd(&p->tls_files[i], -1);
	if (rc == 0)
		front_set_tls(p->front, tls);
	return rc;
}

static int
on_tls_end(void *arg)
{
	struct program *p = arg;
	struct err e;

	if (take_tls(p, &e) != 0) {
		log_error("reload: %s; the certificate stays as it was", e.msg);
		return -1;
	}
	log_info("the TLS certificate was read again");
	return 0;
}

/* "mcp-sandboxd --check-config": the files are where the channel would be. */
static int
check_tls(void)
{
	static const int files[] = {
	    CHILD_CTL_FD, CHILD_CTL_FD + 1, CHILD_CTL_FD + 2};
	int found[ARRAY_LEN(files)];
	struct tls *tls = NULL;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		found[i] = fcntl(files[i], F_GETFD) == -1 ? -1 : files[i];
	if (load_tls(found, &tls, &e) != 0) {
		log_error("%s", e.msg);
		return EXIT_CONFIG;
	}
	tls_free(tls);
	return 0;
}

/* Work done tells the supervisor that a crash is no broken installation. */
static void
on_front_tick(void *arg)
{
	struct program *p = arg;

	child_counts(p->child, (uint32_t)front_requests(p->front));
}

static int
build(struct program *p, struct err *e)
{
	uint8_t key[KEY_BYTES];
	struct front_parts parts;

	raise_descriptor_limit(p->conf);
	if (open_data(p, key, e) != 0)
		return e->code;
	store_on_damaged(p->store, on_damaged, p);
	if (open_core(p, e) != 0)
		return e->code;
	unlock_secrets(p);
	store_event_began(p->store, PACKAGE_VERSION);
	parts = (struct front_parts){
	    .base = p->base,
	    .conf = p->conf,
	    .core = p->core,
	    .webhooks = p->webhooks,
	    .tools = embed_tools,
	    .dir = p->dir,
	    .session_key = key,
	    .heartbeat_ms = FRONT_HEARTBEAT_MS,
	    .on_tick = on_front_tick,
	    .on_tick_arg = p,
	};
	if (front_new(&parts, &p->front, e) != 0)
		return e->code;
	explicit_bzero(key, sizeof(key));
	if (take_tls(p, e) != 0)
		return e->code;
	return 0;
}

static int
on_config(struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	struct program *p = arg;
	int rc;

	p->child = c;
	p->conf = conf_copy(conf);
	rc = build(p, e);
	if (rc != 0)
		/* A wrong installation, or a database that is damaged or not
		 * ours, does not mend itself; a disk may. */
		return rc == ERR_INVAL || rc == ERR_DAMAGED ||
			rc == ERR_WRONG_STATE ?
		    EXIT_CONFIG :
		    EXIT_BUG;
	if (confine(CONFINE_FRONT, e) != 0)
		return EXIT_PRIVILEGE;
	return 0;
}

/* ---- running */

static void
on_reload(const struct conf *conf, void *arg)
{
	struct program *p = arg;
	const char *first = NULL;

	(void)conf_take_reload(p->conf, conf, &first);
	front_reload(p->front);
}

/* Clients wait in the socket's queue until it is known that this database may
 * be used: a few milliseconds after the engine was asked, on a first start. */
static void
serve_cb(void *arg)
{
	struct program *p = arg;
	struct err e;

	if (!core_is_settled(p->core) && clock_mono_ms() < p->serve_at_ms) {
		timer_set_ms(p->serve, SERVE_POLL_MS);
		return;
	}
	for (size_t i = 0; i < p->nlisteners; i++) {
		struct waiting_listener *l = &p->listeners[i];

		if (front_listen(p->front, l->fd, &e) != 0)
			child_die(
			    p->child, EXIT_BUG, "%s: %s", l->address, e.msg);
		log_info("listening on %s", l->address);
		free(l->address);
	}
	p->nlisteners = 0;
}

static void
on_listen(int fd, const char *address, void *arg)
{
	struct program *p = arg;
	struct err e;

	if (front_may_listen(p->front, fd, &e) != 0)
		child_die(p->child, EXIT_CONFIG, "%s: %s", address, e.msg);
	if (p->nlisteners == LISTENERS_MAX)
		child_die(p->child, EXIT_BUG, "more listeners than there are");
	p->listeners[p->nlisteners++] =
	    (struct waiting_listener){fd, xstrdup(address)};
	if (p->serve == NULL) {
		p->serve = timer_new(p->base, serve_cb, p);
		p->serve_at_ms = clock_mono_ms() + SERVE_PATIENCE_MS;
	}
	serve_cb(p);
}

static void
on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	struct program *p = arg;

	(void)generation;
	if (index == CHILD_KEYS_INDEX && p->front->oauth != NULL) {
		oauth_attach(p->front->oauth, fd);
		return;
	}
	if (index == CHILD_COURIER_INDEX) {
		if (p->front->postbox == NULL)
			child_die(p->child, EXIT_BUG, "a courier for nothing");
		postbox_attach(p->front->postbox, fd);
		return;
	}
	core_attach_worker(p->core, index, fd);
}

static void
on_peer_gone(uint32_t index, uint32_t delay_ms, bool throttled, void *arg)
{
	struct program *p = arg;

	if (index >= CHILD_KEYS_INDEX)
		return; /* its channel has ended */
	log_warn("worker %u is gone: back in %u ms", index, delay_ms);
	core_worker_gone(p->core, index, throttled);
}

static void
on_peer_quiet(uint32_t index, bool quiet, void *arg)
{
	struct program *p = arg;

	fleet_worker_quiet(core_fleet(p->core), index, quiet);
}

static void
on_crew_member(const struct msg_crew_member *m, void *arg)
{
	const struct program *p = arg;

	crew_members_take(p->front->crew_members, m);
}

/* ---- the end */

static NORETURN void
finish(struct program *p)
{
	acts_flush(core_acts(p->core));
	event_news_of_server(p->store, EVENT_SERVER_STOPPED);
	store_close(p->store); /* commits what is queued */
	log_info("stopped");
	_exit(0);
}

static void
drain_cb(evutil_socket_t fd, short what, void *arg)
{
	struct program *p = arg;

	(void)fd;
	(void)what;
	if (clock_mono_ms() >= p->drain_until_ms ||
	    (p->is_idle && front_is_quiet(p->front)))
		finish(p);
}

static void
on_idle(void *arg)
{
	struct program *p = arg;

	p->is_idle = true; /* answers may still be on their way out */
}

static void
on_drain(uint32_t left_ms, void *arg)
{
	const struct timeval poll = timer_timeval(DRAIN_POLL_MS);
	struct program *p = arg;

	if (p->drain != NULL)
		return;
	p->drain_until_ms = clock_mono_ms() + left_ms;
	p->drain = event_new(p->base, -1, EV_PERSIST, drain_cb, p);
	if (p->drain == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	(void)event_add(p->drain, &poll);
	event_news_of_server(p->store, EVENT_SERVER_STOPPING);
	core_drain(p->core);
	front_drain(p->front, on_idle, p);
}

static const struct child_ops ops = {
    .on_config = on_config,
    .on_reload = on_reload,
    .on_tls_file = on_tls_file,
    .on_tls_end = on_tls_end,
    .on_secrets_key = on_secrets_key,
    .on_listen = on_listen,
    .on_peer = on_peer,
    .on_peer_gone = on_peer_gone,
    .on_peer_quiet = on_peer_quiet,
    .on_crew_member = on_crew_member,
    .on_drain = on_drain,
};

/* ---- what libevent reports */

static void
on_event_fatal_cb(int err)
{
	fatal(EXIT_BUG, "libevent: fatal error %d", err);
}

static void
on_event_log_cb(int severity, const char *text)
{
	static struct log_limit limit;

	if (severity >= EVENT_LOG_ERR)
		log_error("libevent: %s", text);
	else if (severity == EVENT_LOG_WARN)
		log_warn_limited(&limit, "libevent: %s", text);
}

/* What epoll is to watch is told to it once a turn, before the wait: most of it
 * has changed back by then, and an answer does not wait for it. */
static struct event_base *
base_new(void)
{
	struct event_config *c = event_config_new();
	struct event_base *base = NULL;

	if (c != NULL &&
	    event_config_set_flag(c, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST) == 0)
		base = event_base_new_with_config(c);
	if (c != NULL)
		event_config_free(c);
	return base;
}

/* "mcp-sandboxd-front check data|tls" looks, and serves nothing. */
int
main(int argc, char **argv)
{
	struct program *p = &program;

	log_init("front");
	json_object_seed(0); /* before there are threads */
	tls_init();
	seal_init();
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return strcmp(argv[2], "tls") == 0 ? check_tls() :
						     check_data_main();
	(void)signal(SIGPIPE, SIG_IGN);
	event_set_fatal_callback(on_event_fatal_cb);
	event_set_log_callback(on_event_log_cb);
	p->base = base_new();
	if (p->base == NULL)
		fatal(EXIT_BUG, "no event base");
	p->child = child_start(p->base, MSG_ROLE_FRONT, 0, &ops, p);
	(void)!turns_run(p->base);
	fatal(EXIT_BUG, "the event loop ended by itself");
}
