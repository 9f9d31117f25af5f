#include "worker/docker/docker_int.h"

#include <stdarg.h>
#include <stdio.h>

#include "worker/docker/operation.h"

static void
ended(const char *method, const char *path, long status, uint64_t us)
{
	operation_ended(operation_of(method, path), status, us);
}

const struct api_server docker_server = {.name = "engine",
    .title = "Docker engine",
    .refused = "let the worker's user into its group (usually docker)",
    .away = "start it or set DOCKER_HOST",
    .on_ended = ended};

struct api_call *
docker_ask_full(struct docker *d, const struct api_ask *ask)
{
	struct api_ask full = *ask;
	char path[API_PATH_MAX];

	(void)snprintf(
	    path, sizeof(path), "/%s%s", d->engine.version, ask->path);
	full.path = path;
	return api_start(d->api, &full);
}

struct api_call *
docker_ask(struct docker *d, const char *method, uint32_t timeout_ms,
    void (*on_done)(const struct api_answer *, void *), void *arg,
    const char *path, ...)
{
	char text[API_PATH_MAX];
	struct api_ask ask = {.method = method,
	    .path = text,
	    .timeout_ms = timeout_ms,
	    .max_body = ANSWER_SMALL_MAX,
	    .on_done = on_done,
	    .arg = arg};
	va_list ap;

	va_start(ap, path);
	(void)vsnprintf(text, sizeof(text), path, ap);
	va_end(ap);
	return docker_ask_full(d, &ask);
}

int
docker_fail(const struct api_answer *a, const char *what, struct err *e)
{
	char text[ANSWER_TEXT_MAX];

	if (a->rc != 0)
		return err_set(e,
		    a->rc == ERR_WRONG_STATE ? ERR_WRONG_STATE : ERR_BACKEND,
		    "%s: %s", what, a->why->msg);
	answer_message(a->body, a->len, text);
	return err_set(e, a->status == 404 ? ERR_NOTFOUND : ERR_BACKEND,
	    "%s: the engine answers %ld: %s", what, a->status, text);
}
