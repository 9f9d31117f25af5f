#include "supervisor/master/master.h"

#include <signal.h>
#include <stdio.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/turns.h"
#include "common/timer.h"
#include "supervisor/master/crew.h"
#include "supervisor/master/figures.h"
#include "supervisor/master/notify.h"
#include "supervisor/master/signals.h"
#include "supervisor/master/tuning.h"

enum master_state {
	MASTER_STARTING,
	MASTER_RUNNING,
	MASTER_STOPPING
};
enum master_hangup {
	MASTER_HANGUP_ENDS,
	MASTER_HANGUP_IGNORED
};

struct master {
	const struct master_setup *setup;
	struct event_base *base;
	struct signals *signals;
	struct notify *notify;
	struct event *watchdog;
	struct tuning tuning;
	struct crew_setup crew_setup;
	struct crew *crew;
	struct conf *told; /* what children are told: conf with facts in it */
	enum master_state state;
	enum master_hangup hangup;
	int status;
};

static void
tell(struct conf *told, const char *key, const char *value)
{
	struct err e;

	if (conf_set(told, key, value, &e) != 0)
		fatal(EXIT_BUG, "%s: %s", key, e.msg);
}

/* Children are told facts where the configuration leaves something open: the
 * port we got, the absolute DATA_DIR, the instance derived from it. */
static struct conf *
make_told(const struct master_setup *setup)
{
	struct conf *told = conf_copy(setup->conf);
	char text[32];

	(void)snprintf(text, sizeof(text), "%u", setup->listener->port);
	tell(told, "PORT", text);
	tell(told, "DATA_DIR", setup->datadir->path);
	if (conf_str(told, CONF_INSTANCE)[0] == '\0') {
		datadir_instance(setup->datadir->path, text);
		tell(told, "INSTANCE", text);
	}
	return told;
}

static void
apply_log_settings(const struct conf *conf)
{
	int level = log_parse_level(conf_str(conf, CONF_LOG_LEVEL));

	if (level >= 0)
		log_set_level((enum log_level)level);
}

static void
configure_children(struct master *m)
{
	struct conf *before = m->told;

	m->told = make_told(m->setup);
	crew_configure(m->crew, m->told);
	crew_set_log_level(m->crew, (unsigned int)log_get_level());
	conf_free(before);
}

static void
say_ready(struct master *m)
{
	notify_status(m->notify, "ready on %s://%s",
	    tlsfiles_scheme(m->setup->conf), m->setup->listener->address);
}

static void
on_crew_ready(void *arg)
{
	struct master *m = arg;

	if (m->state != MASTER_STARTING)
		return;
	m->state = MASTER_RUNNING;
	log_info("ready");
	notify_ready(m->notify);
	say_ready(m);
}

static void
on_crew_health(enum crew_health health, void *arg)
{
	struct master *m = arg;

	if (m->state == MASTER_STOPPING)
		return;
	if (health == CREW_DEGRADED)
		notify_status(m->notify, "degraded: restarts are throttled");
	else
		say_ready(m);
}

static void
on_crew_end(int status, void *arg)
{
	struct master *m = arg;

	m->status = status;
	(void)event_base_loopbreak(m->base);
}

static const struct crew_ops crew_ops = {.on_ready = on_crew_ready,
    .on_health = on_crew_health,
    .on_end = on_crew_end};

/* The first one drains; clients that connect from now on are refused instead
 * of waiting for nobody.  The second one means it. */
static void
stop(struct master *m)
{
	uint32_t left_ms =
	    (uint32_t)conf_int(m->setup->conf, CONF_DRAIN_TIMEOUT_MS);

	if (m->state == MASTER_STOPPING) {
		log_warn("told to stop again: not waiting any longer");
		crew_kill(m->crew);
		return;
	}
	m->state = MASTER_STOPPING;
	log_info("stopping; calls in flight have %u ms", left_ms);
	notify_stopping(m->notify);
	listen_close(m->setup->listener);
	listen_close(m->setup->admin);
	crew_stop(m->crew, left_ms);
}

/* What is wrong with the files themselves is the front's to find; it says so
 * in the log and goes on with those it has. */
static void
reload_tls(struct master *m)
{
	struct tlsfiles fresh;
	struct err e;

	if (tlsfiles_open(m->setup->conf, &fresh, &e) != 0)
		log_error("reload: %s; the certificate stays as it was", e.msg);
	else
		crew_offer_tls(m->crew, &fresh);
}

static void
reload(struct master *m)
{
	struct conf *newer = NULL;
	const char *first = NULL;
	struct err e;
	int others;

	if (options_load(m->setup->options, &newer, &e) != 0) {
		log_error(
		    "reload: %s; the configuration stays as it was", e.msg);
		return;
	}
	notify_reloading(m->notify);
	others = conf_take_reload(m->setup->conf, newer, &first);
	conf_free(newer);
	if (others > 0)
		log_warn("reload: %s%s needs a restart to change", first,
		    others > 1 ? " (and others)" : "");
	apply_log_settings(m->setup->conf);
	configure_children(m);
	reload_tls(m);
	log_info("configuration reloaded");
	if (m->state == MASTER_RUNNING)
		notify_ready(m->notify);
}

static void
on_hangup(struct master *m, enum signals_origin origin)
{
	if (origin == SIGNALS_KERNEL) {
		if (m->hangup == MASTER_HANGUP_ENDS)
			stop(m);
		return;
	}
	if (m->state != MASTER_STOPPING)
		reload(m);
}

static void
on_signal(int sig, enum signals_origin origin, void *arg)
{
	struct master *m = arg;

	switch (sig) {
	case SIGCHLD:
		crew_reap(m->crew);
		break;
	case SIGHUP:
		on_hangup(m, origin);
		break;
	default:
		log_info("%s", sig == SIGINT ? "SIGINT" : "SIGTERM");
		stop(m);
	}
}

static void
watchdog_cb(evutil_socket_t fd, short what, void *arg)
{
	struct master *m = arg;

	(void)fd;
	(void)what;
	notify_watchdog(m->notify);
}

static int
start_watchdog(struct master *m, struct err *e)
{
	uint32_t ms = notify_watchdog_ms(m->notify);
	struct timeval tv = timer_timeval(ms);

	if (ms == 0)
		return 0;
	m->watchdog = event_new(m->base, -1, EV_PERSIST, watchdog_cb, m);
	if (m->watchdog == NULL || event_add(m->watchdog, &tv) == -1)
		return err_set(e, ERR_SYS, "watchdog: no timer");
	return 0;
}

static void
on_libevent_fatal(int code)
{
	log_error("libevent: fatal error %d", code);
}

static int
prepare(struct master *m, struct err *e)
{
	struct sigaction hangup;

	event_set_fatal_callback(on_libevent_fatal);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 &&
	    hangup.sa_handler == SIG_IGN)
		m->hangup = MASTER_HANGUP_IGNORED; /* nohup */
	m->base = event_base_new();
	if (m->base == NULL)
		return err_set(e, ERR_SYS, "no event loop");
	m->notify = notify_open();
	if (signals_open(m->base, on_signal, m, &m->signals, e) != 0)
		return ERR_SYS;
	if (figures_open(m->base, e) != 0)
		return e->code;
	return start_watchdog(m, e);
}

static void
release(struct master *m)
{
	crew_free(m->crew);
	figures_close();
	if (m->watchdog != NULL)
		event_free(m->watchdog);
	signals_close(m->signals);
	notify_close(m->notify);
	conf_free(m->told);
	if (m->base != NULL)
		event_base_free(m->base);
}

static void
start_crew(struct master *m)
{
	tuning_load(&m->tuning);
	m->crew_setup = (struct crew_setup){
	    .tuning = &m->tuning,
	    .users = m->setup->users,
	    .listener = m->setup->listener,
	    .admin = m->setup->admin,
	    .instance = m->setup->instance,
	    .bounds = m->setup->bounds,
	    .tls = m->setup->tls,
	    .secrets_key = m->setup->secrets_key,
	    .paths = m->setup->paths,
	    .workers = (uint32_t)conf_int(m->setup->conf, CONF_WORKERS),
	};
	m->crew = crew_new(m->base, &m->crew_setup, &crew_ops, m);
	m->told = make_told(m->setup);
	crew_configure(m->crew, m->told);
	crew_start(m->crew);
}

int
master_run(const struct master_setup *setup)
{
	struct master m = {.setup = setup,
	    .state = MASTER_STARTING,
	    .hangup = MASTER_HANGUP_ENDS};
	struct err e;

	if (prepare(&m, &e) != 0) {
		log_error("%s", e.msg);
		release(&m);
		return EXIT_MEMORY;
	}
	start_crew(&m);
	if (turns_run(m.base) == -1) {
		log_error("the event loop failed");
		m.status = EXIT_BUG;
	}
	release(&m);
	if (m.status == 0)
		log_info("stopped");
	return m.status;
}
