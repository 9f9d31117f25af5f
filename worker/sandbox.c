#include "worker/sandbox_int.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/ipc.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/link/linkdir.h"
#include "worker/link/unix.h"

#define EXIT_MEMORY 71
#define LOOK_AGAIN_MS 1000
/* The engine learns of a death a moment after the link does. */
#define AWAY_FIRST_MS 50

/* ---- the container, asked for */

void
sandbox_timer(struct sandbox *sb, uint32_t ms)
{
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

	(void)evtimer_add(sb->timer, &tv);
}

void
sandbox_await_agent(struct sandbox *sb, const struct backend_container *c)
{
	memcpy(sb->container_id, c->id, sizeof(sb->container_id));
	sb->pid = c->pid;
	sb->running_us = clock_mono_us();
	sb->state = SANDBOX_GREETING;
	sandbox_timer(sb, SANDBOX_HELLO_MS);
	link_expect(peer_link(sb->peer), (pid_t)c->pid);
}

/* The one that should be there: is it, and is it what we would make? */
static void
looked(struct sandbox *sb, const struct backend_container *c)
{
	struct err e;

	if (!c->is_ours || !uuid_is_equal(&c->sandbox, &sb->uuid)) {
		sandbox_lose(sb, "the container of its name is another's");
		return;
	}
	memcpy(sb->container_id, c->id, sizeof(sb->container_id));
	if (!c->running) {
		sandbox_lose_container(sb, c);
	} else if (strcmp(c->fingerprint, sb->w->policy.fingerprint) != 0) {
		sandbox_lose(sb,
		    "it was made under another policy of network or "
		    "capabilities");
	} else if (sandbox_listen(sb, &e) != 0) {
		log_warn("sandbox %s: %s", sb->name, e.msg);
		sandbox_timer(sb, LOOK_AGAIN_MS);
	} else {
		sandbox_await_agent(sb, c);
	}
}

/* The agent is or was there, and now this is what the engine shows. */
static void
checked(struct sandbox *sb, const struct backend_container *c)
{
	if (!c->running)
		sandbox_lose_container(sb, c);
	else if (c->pid != sb->pid)
		sandbox_lose(sb, "it was restarted from outside");
	else if (sb->state == SANDBOX_AWAY &&
	    clock_mono_ms() - sb->away_since_ms >= SANDBOX_AWAY_MS)
		sandbox_lose(sb, "its agent does not answer any more");
}

static void
inspect_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct sandbox *sb = arg;

	sb->inspecting = false;
	if (sb->state >= SANDBOX_CLOSING) {
		sandbox_answered(sb);
		return;
	}
	if (rc == ERR_NOTFOUND)
		sandbox_lose(sb, "its container was removed from outside");
	else if (rc != 0 && sb->state == SANDBOX_LOOKING)
		sandbox_timer(sb, LOOK_AGAIN_MS); /* nothing is known */
	else if (rc != 0)
		log_debug("sandbox %s: %s", sb->name, why->msg);
	else if (sb->state == SANDBOX_LOOKING)
		looked(sb, c);
	else
		checked(sb, c);
	sandbox_answered(sb);
}

void
sandbox_inspect(struct sandbox *sb)
{
	struct backend *b = sb->w->backend;

	if (sb->inspecting)
		return;
	sb->inspecting = true;
	sb->awaited++;
	b->ops->inspect(b,
	    sb->container_id[0] != '\0' ? sb->container_id : sb->name,
	    inspect_cb, sb);
}

static void
opened_cb(
    int rc, const struct backend_opened *o, const struct err *why, void *arg)
{
	struct sandbox *sb = arg;

	sb->open = NULL;
	if (rc == 0) {
		memcpy(sb->container_id, o->c.id, sizeof(sb->container_id));
		sb->times.create_us = o->create_us;
		sb->times.start_us = o->start_us;
	}
	if (sb->state != SANDBOX_CREATING)
		sandbox_opened_late(sb);
	else if (rc != 0)
		sandbox_fail(sb, rc, why->msg);
	else
		sandbox_await_agent(sb, &o->c);
	sandbox_answered(sb);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox *sb = arg;

	(void)fd;
	(void)what;
	switch (sb->state) {
	case SANDBOX_LOOKING:
		sandbox_inspect(sb);
		break;
	case SANDBOX_GREETING:
		if (sb->mode == SANDBOX_CREATE)
			sandbox_fail(sb, ERR_BACKEND,
			    "the sandbox started but its agent did not "
			    "answer within 10 s");
		else
			sandbox_lose(sb, "its agent does not answer");
		break;
	case SANDBOX_AWAY:
		sandbox_timer(sb, LOOK_AGAIN_MS);
		sandbox_inspect(sb);
		break;
	default:
		break;
	}
}

void
sandbox_on_change(struct worker *w, const char *container_id,
    enum backend_change what, int32_t exit_code)
{
	struct sandbox *sb;
	size_t at = 0;

	while ((sb = idmap_each(&w->sandboxes, &at)) != NULL)
		if (strcmp(sb->container_id, container_id) == 0)
			break;
	if (sb == NULL || sb->state < SANDBOX_GREETING ||
	    sb->state >= SANDBOX_CLOSING)
		return;
	log_debug("sandbox %s: engine's event %d, exit code %d", sb->name,
	    (int)what, exit_code);
	if (what == BACKEND_DESTROYED)
		sandbox_lose(sb, "its container was removed from outside");
	else if (what == BACKEND_DIED)
		sandbox_inspect(sb); /* says why */
}

/* ---- the agent */

static void
tell_ready(struct sandbox *sb)
{
	sb->times.hello_us = (uint32_t)(clock_mono_us() - sb->running_us);
	sb->told_ready = true;
	log_info("sandbox %s is up: create %u us, start %u us, agent %u us",
	    sb->name, sb->times.create_us, sb->times.start_us,
	    sb->times.hello_us);
	report_ready(sb->w->front, sb->id, sb->container_id, &sb->times);
	worker_count(sb->w, 1, 0);
}

static int
on_hello(const struct peer_hello *h, void *arg, struct err *e)
{
	struct sandbox *sb = arg;

	(void)e;
	if (sb->has_boot && !uuid_is_equal(&sb->boot, &h->boot)) {
		sandbox_lose(sb, "its agent was restarted");
		return 0;
	}
	sb->has_boot = true;
	sb->boot = h->boot;
	sb->state = SANDBOX_UP;
	sb->hello = h;
	(void)evtimer_del(sb->timer);
	if (!sb->told_ready)
		tell_ready(sb);
	sandbox_runs_attach(sb, h);
	return 0;
}

static void
on_down(const struct err *why, void *arg)
{
	static struct log_limit limit;
	struct sandbox *sb = arg;
	char text[ERR_TEXT_MAX];

	if (why->code == ERR_PROTO) {
		(void)snprintf(text, sizeof(text),
		    "its agent broke the protocol: %.300s", why->msg);
		log_warn_limited(&limit, "sandbox %s: %s", sb->name, text);
		if (sb->mode == SANDBOX_CREATE && !sb->told_ready)
			sandbox_fail(sb, ERR_BACKEND, text);
		else
			sandbox_lose(sb, text);
		return;
	}
	if (sb->state != SANDBOX_UP)
		return; /* it comes again, or the timer ends the wait */
	log_debug("sandbox %s: link lost: %s", sb->name, why->msg);
	sb->state = SANDBOX_AWAY;
	sb->away_since_ms = clock_mono_ms();
	sb->hello = NULL;
	sandbox_runs_detach(sb);
	sandbox_timer(sb, AWAY_FIRST_MS);
	sandbox_inspect(sb);
}

static const struct peer_ops peer_ops = {
    .on_hello = on_hello,
    .on_run_known = sandbox_on_run_known,
    .on_run_refused = sandbox_on_run_refused,
    .on_run_log = sandbox_on_run_log,
    .on_file_entry = sandbox_on_file_entry,
    .on_file_data = sandbox_on_file_data,
    .on_file_end = sandbox_on_file_end,
    .on_turn = sandbox_on_turn,
    .on_drain = sandbox_on_drain,
    .on_down = on_down,
};

int
sandbox_listen(struct sandbox *sb, struct err *e)
{
	AUTO(auto_close) int dir = -1;
	struct link *link;
	int rc;

	free(sb->link_dir);
	sb->link_dir = NULL;
	dir = linkdirs_make(sb->w->links, &sb->uuid, &sb->link_dir, e);
	if (dir < 0)
		return dir;
	rc = unix_link_new(sb->w->base, dir, &link, e);
	if (rc != 0)
		return rc;
	sb->peer = peer_new(link, &peer_ops, sb);
	if (sb->w->front != NULL && ipc_chan_is_full(sb->w->front))
		link_pause(link);
	return 0;
}

/* ---- opening */

static struct sandbox *
sandbox_new(struct worker *w, const struct sandbox_start *s)
{
	struct sandbox *sb = xcalloc(1, sizeof(*sb));

	sb->w = w;
	sb->id = s->id;
	sb->uuid = s->uuid;
	sb->mode = s->mode;
	sb->name = xstrdup(s->ask.name);
	(void)snprintf(
	    sb->container_id, sizeof(sb->container_id), "%s", s->container_id);
	sb->timer = evtimer_new(w->base, timer_cb, sb);
	if (sb->timer == NULL)
		fatal(EXIT_MEMORY, "no memory for a timer");
	sandbox_runs_init(sb);
	sb->in_map = true;
	idmap_put(&w->sandboxes, s->id, sb);
	return sb;
}

static void
create(struct sandbox *sb, const struct sandbox_start *s)
{
	struct backend_spec spec = {
	    .uuid = s->uuid, .generation = s->generation, .ask = s->ask};
	struct backend *b = sb->w->backend;
	struct err e;
	int rc;

	sb->state = SANDBOX_CREATING;
	rc = policy_check(&sb->w->policy, &spec.ask, &e);
	if (rc == 0)
		rc = sandbox_listen(sb, &e);
	if (rc != 0) {
		sandbox_fail(sb, rc, e.msg);
		return;
	}
	spec.link_dir = sb->link_dir;
	sb->awaited++;
	sb->open = b->ops->open(b, &spec, opened_cb, sb);
}

void
sandbox_open(struct worker *w, const struct sandbox_start *s)
{
	struct sandbox *sb = sandbox_new(w, s);

	if (s->mode == SANDBOX_CREATE) {
		create(sb, s);
	} else {
		sb->state = SANDBOX_LOOKING;
		sandbox_inspect(sb);
	}
}

/* ---- all of them */

void
sandbox_set_reading(struct worker *w, bool on)
{
	struct sandbox *sb;
	size_t at = 0;

	while ((sb = idmap_each(&w->sandboxes, &at)) != NULL) {
		if (sb->peer == NULL)
			continue;
		if (on)
			link_resume(peer_link(sb->peer));
		else
			link_pause(peer_link(sb->peer));
	}
}

void
sandbox_look_all(struct worker *w)
{
	struct sandbox *sb;
	size_t at = 0;

	while ((sb = idmap_each(&w->sandboxes, &at)) != NULL)
		if (sb->state == SANDBOX_LOOKING)
			sandbox_inspect(sb);
}

bool
sandbox_is_busy(const struct worker *w)
{
	const struct sandbox *sb;
	size_t at = 0;

	while ((sb = idmap_each(&w->sandboxes, &at)) != NULL)
		if (sb->state == SANDBOX_CREATING ||
		    sb->state == SANDBOX_CLOSING)
			return true;
	return false;
}
