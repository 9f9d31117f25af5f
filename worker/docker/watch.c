#include "worker/docker/docker_int.h"

#include <stdio.h>

#include "common/log.h"
#include "worker/docker/body.h"

static struct log_limit watch_limit;

static void
line_cb(const char *line, size_t n, void *arg)
{
	struct docker *d = arg;
	struct answer_event ev;
	struct err e;
	int rc = answer_event(line, n, &ev, &e);

	if (rc < 0)
		log_warn_limited(&watch_limit, "engine's events: %s", e.msg);
	else if (rc > 0)
		d->user->on_change(&ev.handle, ev.what, d->user_arg);
}

/* The stream ended: the next good ping asks for it again.  What it would have
 * said meanwhile is found out by the links that close. */
static void
done_cb(const struct api_answer *a, void *arg)
{
	struct docker *d = arg;
	struct err e;

	d->events = NULL;
	if (d->freeing)
		return;
	(void)docker_fail(a, "events", &e);
	log_debug("engine's events ended: %s", e.msg);
}

void
watch_start(struct docker *d)
{
	char path[API_PATH_MAX];
	struct api_ask ask = {.method = "GET",
	    .path = path,
	    .max_body = ANSWER_SMALL_MAX,
	    .on_line = line_cb,
	    .on_done = done_cb,
	    .arg = d};
	struct buf q;

	if (d->events != NULL)
		return;
	buf_init(&q, API_PATH_MAX / 2);
	body_filters_events(&q, d->id);
	(void)snprintf(path, sizeof(path), "/events?%.*s", (int)buf_len(&q),
	    (const char *)buf_data(&q));
	buf_clear(&q);
	d->events = docker_ask_full(d, &ask);
}

void
watch_stop(struct docker *d)
{
	if (d->events != NULL)
		api_cancel(d->events);
	d->events = NULL;
}
