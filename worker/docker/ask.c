#include "worker/docker/docker_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "worker/docker/owner.h"
#include "worker/operation.h"

/* ---- which kind of request a path is, for metrics */

/* Of paths behind their version. */
static const struct operation_shape shapes[] = {
    {"GET", "/info", "", NULL, OPERATION_INFO},
    {"GET", "/version", "", NULL, OPERATION_INFO},
    {"GET", "/_ping", "", NULL, OPERATION_INFO},
    {"GET", "/events", "", NULL, OPERATION_EVENTS},
    {"GET", "/containers/json", "", NULL, OPERATION_LIST},
    {"GET", "/containers/", "/json", NULL, OPERATION_INSPECT},
    {"POST", "/containers/create", "", NULL, OPERATION_CREATE},
    {"POST", "/containers/", "/start", NULL, OPERATION_START},
    {"POST", "/containers/", "/stop", NULL, OPERATION_STOP},
    {"POST", "/containers/", "/update", NULL, OPERATION_UPDATE},
    {"POST", "/containers/", "/exec", NULL, OPERATION_EXEC},
    {"POST", "/exec/", "/start", NULL, OPERATION_EXEC},
    {"DELETE", "/containers/", "", NULL, OPERATION_REMOVE},
    {"GET", "/images/", "", NULL, OPERATION_IMAGE},
    {"POST", "/images/", "", NULL, OPERATION_IMAGE},
    {"POST", "/build", "", NULL, OPERATION_BUILD},
};

/* "/v1.41/info" is "/info". */
static const char *
skip_version(const char *path)
{
	size_t n;

	if (strncmp(path, "/v", 2) != 0 || path[2] < '0' || path[2] > '9')
		return path;
	n = 2 + strspn(path + 2, "0123456789.");
	return path[n] == '/' ? path + n : path;
}

static void
on_ended(const char *method, const char *path, long status, uint64_t us)
{
	operation_count(
	    operation_of(shapes, ARRAY_LEN(shapes), method, skip_version(path)),
	    status, us);
}

/* ---- asking */

static int
explain_nobody(const struct api_failure *f, struct err *e)
{
	char why[SITE_WHY_MAX];

	if ((f->number == EACCES || f->number == EPERM) && f->where[0] == '/') {
		owner_say_refusal(f->where, why, sizeof(why));
		return err_set(e, ERR_BACKEND,
		    "no permission on the engine's socket %s: %s", f->where,
		    why);
	}
	return err_set(e, ERR_BACKEND,
	    "no Docker engine at %s: %s; start it or set DOCKER_HOST", f->where,
	    f->number != 0        ? strerror(f->number) :
		f->why[0] != '\0' ? f->why :
				    "no answer");
}

/* What a person can do about it, behind "the engine at WHERE". */
static const char *const tls_advice[] = {
    [API_TLS_UNTRUSTED] = "shows a certificate that ca.pem of DOCKER_CERT_PATH "
			  "does not vouch for: take the ca.pem of that engine",
    [API_TLS_EXPIRED] = "shows a certificate that is too old or not valid yet: "
			"renew it on the engine's machine, or set the clock",
    [API_TLS_MISNAMED] = "shows a certificate for another name: name it in "
			 "DOCKER_HOST as the certificate does, or give the "
			 "engine one with this name",
    [API_TLS_NONE] = "does not speak TLS there: start it with --tlsverify, "
		     "take its port for TLS (2376), or leave DOCKER_TLS_VERIFY "
		     "and DOCKER_CERT_PATH away",
    [API_TLS_REFUSED] = "does not take our certificate: cert.pem and key.pem "
			"of DOCKER_CERT_PATH must be of the authority that it "
			"asks for (--tlscacert)",
    [API_TLS_FILE] = "cannot be asked, a file of DOCKER_CERT_PATH is not good"};

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
	case API_TLS_UNTRUSTED:
	case API_TLS_EXPIRED:
	case API_TLS_MISNAMED:
	case API_TLS_NONE:
	case API_TLS_REFUSED:
	case API_TLS_FILE:
		return err_set(e, ERR_BACKEND, "the engine at %.100s %s (%s)",
		    f->where, tls_advice[f->kind], f->why);
	case API_BROKEN:
	default:
		return err_set(e, ERR_BACKEND,
		    "the engine at %s broke off its answer to %s %.100s: %s",
		    f->where, f->method, f->path, f->why);
	}
}

const struct api_server docker_server = {explain, on_ended};

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
	/* Docker's words, and those of what else is written in Go. */
	if (a->status == 400 && strstr(text, "to an HTTPS server") != NULL)
		return err_set(e, ERR_BACKEND,
		    "%s: the engine speaks TLS there: set DOCKER_TLS_VERIFY=1 "
		    "and DOCKER_CERT_PATH",
		    what);
	return err_set(e, a->status == 404 ? ERR_NOTFOUND : ERR_BACKEND,
	    "%s: the engine answers %ld: %s", what, a->status, text);
}

int
docker_check(const struct api_answer *a, const char *what, struct err *e)
{
	return a->rc == 0 && a->status == 200 ? 0 : docker_fail(a, what, e);
}
