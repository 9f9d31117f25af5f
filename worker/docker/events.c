#include "worker/docker/internal.h"

#include <stdio.h>

#include "common/log.h"
#include "worker/docker/body.h"

static struct log_limit events_limit;

static void
line_cb(const char *line, size_t n, void *arg)
{
	struct docker *d = arg;
	struct answer_event ev;
	struct err e;
	int rc = answer_event(line, n, &ev, &e);

	if (rc < 0)
		log_warn_limited(&events_limit, "engine's events: %s", e.msg);
	else if (rc > 0)
		d->watch->on_change(&ev.handle, ev.what, d->watch_arg);
}

static void
events_data_cb(const uint8_t *p, size_t n, void *arg)
{
	struct docker *d = arg;

	answer_lines_feed(&d->lines, p, n, line_cb, d);
}

/* The stream ended: the next good ping asks for it again.  What it would have
 * said meanwhile is found out by the links that close. */
static void
events_done_cb(const struct http_answer *a, void *arg)
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
events_start(struct docker *d)
{
	char path[HTTP_PATH_MAX];
	struct http_ask ask = {.method = "GET",
	    .path = path,
	    .max_body = ANSWER_SMALL_MAX,
	    .on_data = events_data_cb,
	    .on_done = events_done_cb,
	    .arg = d};
	struct buf q;

	if (d->events != NULL)
		return;
	buf_init(&q, HTTP_PATH_MAX / 2);
	body_filters_events(&q, d->instance);
	(void)snprintf(path, sizeof(path), "/events?%.*s", (int)buf_len(&q),
	    (const char *)buf_data(&q));
	buf_clear(&q);
	answer_lines_clear(&d->lines);
	d->lines.skipping = false;
	d->events = docker_ask_full(d, &ask);
}

void
events_stop(struct docker *d)
{
	if (d->events != NULL)
		http_cancel(d->events);
	d->events = NULL;
}
