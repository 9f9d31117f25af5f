#include "supervisor/master/master.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/exit.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/turns.h"
#include "common/timer.h"
#include "supervisor/master/crew.h"
#include "supervisor/master/figures.h"
#include "supervisor/master/notify.h"
#include "supervisor/master/tuning.h"

enum master_state {
	MASTER_STARTING,
	MASTER_RUNNING,
	MASTER_STOPPING
};

struct master {
	const struct options *options;
	struct conf *conf;
	struct prepared *given;
	struct event_base *base;
	int signal_fd;
	struct event *signals;
	struct notify *notify;
	struct timer *watchdog; /* NULL: the service manager wants none */
	struct tuning tuning;
	struct crew *crew;
	struct conf *told; /* what children are told: conf with facts in it */
	enum master_state state;
	bool ignores_hangup; /* nohup */
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
make_told(const struct master *m)
{
	struct conf *told = conf_copy(m->conf);
	char text[32];

	(void)snprintf(text, sizeof(text), "%u", m->given->listener.port);
	tell(told, "PORT", text);
	tell(told, "DATA_DIR", m->given->datadir.path);
	if (conf_str(told, CONF_INSTANCE)[0] == '\0') {
		datadir_instance(m->given->datadir.path, text);
		tell(told, "INSTANCE", text);
	}
	return told;
}

static void
configure_children(struct master *m)
{
	struct conf *before = m->told;

	m->told = make_told(m);
	crew_configure(m->crew, m->told);
	crew_set_log_level(m->crew, (unsigned int)log_get_level());
	conf_free(before);
}

static void
say_ready(struct master *m)
{
	if (m->given->listener.fd < 0)
		notify_status(m->notify, "ready on " LAYOUT_ADMIN);
	else
		notify_status(m->notify, "ready on %s://%s",
		    tlsfiles_scheme(m->conf), m->given->listener.address);
}

static void
on_crew_ready(void *arg)
{
	struct master *m = arg;

	if (m->state != MASTER_STARTING)
		return;
	m->state = MASTER_RUNNING;
	log_info("ready");
	notify_say(m->notify, "READY=1");
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
	uint32_t left_ms = (uint32_t)conf_int(m->conf, CONF_DRAIN_TIMEOUT_MS);

	if (m->state == MASTER_STOPPING) {
		log_warn("told to stop again: not waiting any longer");
		crew_kill(m->crew);
		return;
	}
	m->state = MASTER_STOPPING;
	log_info("stopping; calls in flight have %u ms", left_ms);
	notify_say(m->notify, "STOPPING=1");
	listen_close(&m->given->listener);
	listen_close(&m->given->admin);
	crew_stop(m->crew, left_ms);
}

/* What is wrong with the files themselves is the front's to find; it says so
 * in the log and goes on with those it has. */
static void
reload_tls(struct master *m)
{
	struct tlsfiles fresh;
	struct err e;

	if (tlsfiles_open(m->conf, &fresh, &e) != 0)
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

	if (options_load(m->options, &newer, &e) != 0) {
		log_error(
		    "reload: %s; the configuration stays as it was", e.msg);
		return;
	}
	notify_reloading(m->notify);
	others = conf_take_reload(m->conf, newer, &first);
	conf_free(newer);
	if (others > 0)
		log_warn("reload: %s%s needs a restart to change", first,
		    others > 1 ? " (and others)" : "");
	conf_apply_log(m->conf);
	configure_children(m);
	reload_tls(m);
	log_info("configuration reloaded");
	if (m->state == MASTER_RUNNING)
		notify_say(m->notify, "READY=1");
}

/* SIGHUP comes from a person, or from the kernel when the terminal that we were
 * started in is closed. */
static void
on_signal(struct master *m, const struct signalfd_siginfo *info)
{
	switch (info->ssi_signo) {
	case SIGCHLD:
		crew_reap(m->crew);
		break;
	case SIGHUP:
		if (info->ssi_code == SI_KERNEL && !m->ignores_hangup)
			stop(m);
		else if (info->ssi_code != SI_KERNEL &&
		    m->state != MASTER_STOPPING)
			reload(m);
		break;
	default:
		log_info(
		    "%s", info->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
		stop(m);
	}
}

static void
signal_cb(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		on_signal(arg, &info);
}

/* They stay blocked for good (a child unblocks them): nothing of ours runs
 * inside a signal handler. */
static int
open_signals(struct master *m, struct err *e)
{
	static const int wanted[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	/* Ignored by who started us, SIGCHLD would take the zombies away. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return err_errno(e, "sigprocmask");
	m->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (m->signal_fd == -1)
		return err_errno(e, "signalfd");
	m->signals = event_new(
	    m->base, m->signal_fd, EV_READ | EV_PERSIST, signal_cb, m);
	if (m->signals == NULL || event_add(m->signals, NULL) == -1)
		return err_set(e, ERR_SYS, "signals: no event");
	return 0;
}

static void
watchdog_cb(void *arg)
{
	struct master *m = arg;

	notify_say(m->notify, "WATCHDOG=1");
	timer_set_ms(m->watchdog, notify_watchdog_ms(m->notify));
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
		m->ignores_hangup = true;
	m->base = event_base_new();
	if (m->base == NULL)
		return err_set(e, ERR_SYS, "no event loop");
	m->notify = notify_open();
	if (open_signals(m, e) != 0 || figures_open(m->base, e) != 0)
		return e->code;
	if (notify_watchdog_ms(m->notify) > 0) {
		m->watchdog = timer_new(m->base, watchdog_cb, m);
		timer_set_ms(m->watchdog, notify_watchdog_ms(m->notify));
	}
	return 0;
}

static void
release(struct master *m)
{
	crew_free(m->crew);
	figures_close();
	timer_free(m->watchdog);
	if (m->signals != NULL)
		event_free(m->signals);
	if (m->signal_fd != -1)
		(void)close(m->signal_fd);
	notify_close(m->notify);
	conf_free(m->told);
	if (m->base != NULL)
		event_base_free(m->base);
}

static void
start_crew(struct master *m)
{
	tuning_load(&m->tuning);
	m->crew = crew_new(m->base, &m->tuning, m->given,
	    (uint32_t)conf_int(m->conf, CONF_WORKERS), &crew_ops, m);
	m->told = make_told(m);
	crew_configure(m->crew, m->told);
	crew_start(m->crew);
}

int
master_run(
    const struct options *options, struct conf *conf, struct prepared *given)
{
	struct master m = {
	    .options = options, .conf = conf, .given = given, .signal_fd = -1};
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
