#include "worker/docker/docker_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "worker/docker/operation.h"

static void
ended(const char *method, const char *path, long status, uint64_t us)
{
	operation_ended(operation_of(method, path), status, us);
}

static int
explain_nobody(const struct api_failure *f, struct err *e)
{
	if (f->number == EACCES || f->number == EPERM)
		return err_set(e, ERR_BACKEND,
		    "no permission on the engine's socket %s: let the "
		    "worker's user into its group (usually docker)",
		    f->where);
	return err_set(e, ERR_BACKEND,
	    "no Docker engine at %s: %s; start it or set DOCKER_HOST", f->where,
	    f->number != 0 ? strerror(f->number) : "no answer");
}

static int
explain(const struct api_failure *f, struct err *e)
{
	switch (f->kind) {
	case API_NOBODY:
		return explain_nobody(f, e);
	case API_LATE:
		return err_set(e, ERR_BACKEND,
		    "the engine at %s did not answer %s %.100s within %u ms",
		    f->where, f->method, f->path, f->timeout_ms);
	case API_TOO_LARGE:
		return err_set(e, ERR_LIMIT,
		    "the engine's answer to %s %.100s is larger than %zu bytes",
		    f->method, f->path, f->limit);
	case API_UNSENDABLE:
		return err_set(e, ERR_INVAL,
		    "a path for the engine has a blank or a control character");
	case API_ENDING:
		return err_set(e, ERR_WRONG_STATE, "the worker is ending");
	case API_BROKEN:
	default:
		return err_set(e, ERR_BACKEND,
		    "the engine at %s broke off its answer to %s %.100s: %s",
		    f->where, f->method, f->path, f->why);
	}
}

const struct api_server docker_server = {explain, ended};

struct api_call *
docker_ask(struct docker *d, const struct api_ask *ask, const char *path, ...)
{
	struct api_ask full = *ask;
	char text[API_PATH_MAX];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "/%s", d->engine.is.speak);
	va_start(ap, path);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n, path, ap);
	va_end(ap);
	full.path = text;
	if (full.max_body == 0)
		full.max_body = ANSWER_SMALL_MAX;
	return api_start(d->api, &full);
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

int
docker_check(const struct api_answer *a, const char *what, struct err *e)
{
	return a->rc == 0 && a->status == 200 ? 0 : docker_fail(a, what, e);
}
