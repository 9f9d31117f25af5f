#include "supervisor/core/fleet.h"

#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/runlog.h"
#include "common/runtimes.h"
#include "common/xmalloc.h"

struct fleet_worker {
	struct fleet *fleet;
	uint32_t index;
	struct ipc_chan *chan; /* NULL: away */
	bool engine_known;     /* it has said so since it came */
	bool engine_up;
	bool throttled;
	bool quiet;       /* it answers nobody */
	char detail[256]; /* about its engine, for people */
	char lack[256];   /* why no sandbox can be made; "": it can */
	int64_t since_ms; /* it came, went, or its engine did */
	bool engine_said;
	struct fleet_engine engine;
	char carrier[MSG_CARRIER_IS_CARRIER_MAX + 1];
	char carrier_why[MSG_CARRIER_IS_WHY_MAX + 1];
};

struct fleet {
	struct event_base *base;
	const struct fleet_ops *ops;
	void *arg;
	uint64_t restarts;
	uint32_t nworkers;
	struct fleet_worker workers[];
};

/* ---- what they say */

void *
fleet_worker_arg(const struct fleet_worker *w)
{
	return w->fleet->arg;
}

uint32_t
fleet_worker_index(const struct fleet_worker *w)
{
	return w->index;
}

int
fleet_on_worker_state(
    void *worker, const struct msg_worker_state *m, struct err *e)
{
	struct fleet_worker *w = worker;
	bool is_new = !w->engine_known;

	(void)e;
	if (is_new || w->engine_up != m->engine_up)
		w->since_ms = clock_wall_ms();
	w->engine_up = m->engine_up;
	w->engine_known = true;
	(void)snprintf(w->detail, sizeof(w->detail), "%s", m->detail);
	(void)snprintf(w->lack, sizeof(w->lack), "%s", m->lack);
	if (is_new)
		w->fleet->ops->on_came(w->index, w->fleet->arg);
	return 0;
}

int
fleet_on_engine_is(void *worker, const struct msg_engine_is *m, struct err *e)
{
	struct fleet_worker *w = worker;
	const struct {
		const char *from;
		char *to;
		size_t size;
	} texts[] = {{m->name, w->engine.name, sizeof(w->engine.name)},
	    {m->version, w->engine.version, sizeof(w->engine.version)},
	    {m->api, w->engine.api, sizeof(w->engine.api)},
	    {m->runtime, w->engine.runtime, sizeof(w->engine.runtime)},
	    {m->runtimes, w->engine.runtimes, sizeof(w->engine.runtimes)}};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		size_t n = strlen(texts[i].from);

		if (!runlog_is_printable(texts[i].from, n))
			return err_set(e, ERR_PROTO,
			    "a word of the engine that is not printable");
		(void)snprintf(texts[i].to, texts[i].size, "%s", texts[i].from);
	}
	w->engine_said = true;
	return 0;
}

int
fleet_on_carrier_is(void *worker, const struct msg_carrier_is *m, struct err *e)
{
	struct fleet_worker *w = worker;

	if (!runlog_is_printable(m->carrier, strlen(m->carrier)) ||
	    !runlog_is_printable(m->why, strlen(m->why)))
		return err_set(e, ERR_PROTO,
		    "a word of the carrier that is not printable");
	(void)snprintf(w->carrier, sizeof(w->carrier), "%s", m->carrier);
	(void)snprintf(w->carrier_why, sizeof(w->carrier_why), "%s", m->why);
	return 0;
}

static int
worker_on_message(
    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	struct fleet_worker *w = arg;

	(void)c;
	return msg_dispatch_worker_to_front(w->fleet->ops->handlers, m, w, e);
}

/* ---- coming and going */

static void
worker_drop(struct fleet_worker *w)
{
	struct fleet *f = w->fleet;

	if (w->chan == NULL)
		return;
	ipc_chan_free(w->chan);
	w->chan = NULL;
	w->engine_known = false;
	w->engine_up = false;
	w->engine_said = false;
	w->carrier[0] = '\0';
	w->carrier_why[0] = '\0';
	w->since_ms = clock_wall_ms();
	f->restarts++;
	f->ops->on_went(w->index, f->arg);
}

static void
worker_on_close(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct fleet_worker *w = arg;

	(void)c;
	log_warn("worker %u: channel closed: %s", w->index, why->msg);
	worker_drop(w);
}

static const struct ipc_ops worker_ops = {
    worker_on_message, worker_on_close, NULL};

void
fleet_attach(struct fleet *f, uint32_t worker, int fd)
{
	struct fleet_worker *w;
	char name[32];

	if (worker >= f->nworkers) {
		(void)close(fd);
		return;
	}
	w = &f->workers[worker];
	worker_drop(w);
	(void)snprintf(name, sizeof(name), "worker %u", worker);
	w->chan = ipc_chan_new(f->base, fd, name, &worker_ops, w);
	w->throttled = false;
	w->quiet = false;
	w->since_ms = clock_wall_ms();
}

void
fleet_worker_gone(struct fleet *f, uint32_t worker, bool throttled)
{
	if (worker >= f->nworkers)
		return;
	worker_drop(&f->workers[worker]);
	f->workers[worker].throttled = throttled;
}

void
fleet_worker_quiet(struct fleet *f, uint32_t worker, bool quiet)
{
	if (worker < f->nworkers)
		f->workers[worker].quiet = quiet;
}

struct fleet *
fleet_new(struct event_base *base, uint32_t nworkers,
    const struct fleet_ops *ops, void *arg)
{
	struct fleet *f =
	    xcalloc(1, sizeof(*f) + nworkers * sizeof(f->workers[0]));

	f->base = base;
	f->ops = ops;
	f->arg = arg;
	f->nworkers = nworkers;
	for (uint32_t i = 0; i < nworkers; i++) {
		f->workers[i].fleet = f;
		f->workers[i].index = i;
	}
	return f;
}

void
fleet_free(struct fleet *f)
{
	if (f == NULL)
		return;
	for (uint32_t i = 0; i < f->nworkers; i++)
		ipc_chan_free(f->workers[i].chan);
	free(f);
}

/* ---- who has what */

static bool
worker_can_open(const struct fleet_worker *w)
{
	return w->chan != NULL && !w->quiet &&
	    (!w->engine_known || w->engine_up);
}

bool
fleet_is_away(const struct fleet *f)
{
	bool is_away = false;

	for (uint32_t i = 0; i < f->nworkers; i++) {
		const struct fleet_worker *w = &f->workers[i];

		if (w->engine_up)
			return false;
		is_away = is_away || w->engine_known;
	}
	return is_away;
}

uint32_t
fleet_place(const struct fleet *f, uint64_t sandbox)
{
	uint32_t home = (uint32_t)(sandbox % f->nworkers);

	for (uint32_t i = 0; i < f->nworkers; i++) {
		uint32_t at = (home + i) % f->nworkers;

		if (worker_can_open(&f->workers[at]))
			return at;
	}
	return home;
}

struct ipc_chan *
fleet_chan(const struct fleet *f, uint32_t worker)
{
	const struct fleet_worker *w = &f->workers[worker];

	return w->engine_known ? w->chan : NULL;
}

struct ipc_chan *
fleet_sweeper_chan(const struct fleet *f)
{
	for (uint32_t i = 0; i < f->nworkers; i++)
		if (f->workers[i].chan != NULL && f->workers[i].engine_up)
			return f->workers[i].chan;
	return NULL;
}

int
fleet_check(const struct fleet *f, uint32_t worker, struct err *e)
{
	const struct fleet_worker *w = &f->workers[worker];

	if (w->chan == NULL)
		return err_set(e, ERR_BACKEND, "%s",
		    w->throttled ?
			"the worker for this sandbox keeps failing and is "
			"paused: see the server's log" :
			"the worker for this sandbox is starting: try again");
	if (w->engine_known && !w->engine_up)
		return err_set(e, ERR_BACKEND, "%s", w->detail);
	return 0;
}

bool
fleet_has_no_engine(const struct fleet *f, uint32_t worker)
{
	const struct fleet_worker *w = &f->workers[worker];

	return w->chan != NULL && w->engine_known && !w->engine_up;
}

int
fleet_check_all(const struct fleet *f, struct err *e)
{
	for (uint32_t i = 0; i < f->nworkers; i++) {
		const struct fleet_worker *w = &f->workers[i];

		if (w->chan != NULL && !w->engine_known)
			return err_set(e, ERR_BACKEND,
			    "worker %u looks for the engine", i);
		if (w->quiet)
			return err_set(e, ERR_BACKEND,
			    "worker %u does not answer: it is stopped, or has "
			    "too much to do",
			    i);
		if (fleet_check(f, i, e) != 0)
			return e->code;
		if (w->chan != NULL && w->lack[0] != '\0')
			return err_set(e, ERR_BACKEND, "%s", w->lack);
	}
	return 0;
}

int
fleet_check_runtime(
    const struct fleet *f, uint32_t worker, const char *runtime, struct err *e)
{
	const struct fleet_worker *w = &f->workers[worker];

	return w->engine_said ? runtimes_check(w->engine.runtimes, runtime, e) :
				0;
}

struct fleet_stats
fleet_stats(const struct fleet *f)
{
	struct fleet_stats st = {.total = f->nworkers, .restarts = f->restarts};

	for (uint32_t i = 0; i < f->nworkers; i++)
		st.ready += f->workers[i].chan != NULL &&
		    f->workers[i].engine_up && !f->workers[i].quiet;
	return st;
}

struct fleet_look
fleet_look_at(const struct fleet *f, uint32_t worker)
{
	const struct fleet_worker *w = &f->workers[worker];
	struct fleet_look look = {.word = "away",
	    .since_ms = w->since_ms,
	    .detail = "",
	    .carrier = "",
	    .carrier_why = ""};

	if (w->chan == NULL)
		return look;
	if (w->engine_known)
		look.detail = w->detail[0] != '\0' ? w->detail : w->lack;
	look.word = !w->engine_known ? "unknown" : w->engine_up ? "up" : "down";
	look.engine = w->engine_said ? &w->engine : NULL;
	look.carrier = w->carrier;
	look.carrier_why = w->carrier_why;
	return look;
}

const struct fleet_engine *
fleet_engine(const struct fleet *f)
{
	for (uint32_t i = 0; i < f->nworkers; i++) {
		const struct fleet_worker *w = &f->workers[i];

		if (w->chan != NULL && w->engine_up && w->engine_said)
			return &w->engine;
	}
	return NULL;
}
