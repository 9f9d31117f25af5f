#include "supervisor/ctl/ctl_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include <curl/curl.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"

#define ANSWER_MAX (64u << 20)
#define DEPTH_MAX 16
#define CONNECT_S 10L
#define ANSWER_S 60L

struct ctl_link {
	CURL *curl;
	int dir;    /* DATA_DIR; -1: over HTTP */
	char *base; /* of URLs */
	long patience_s;
	char *token; /* its header, or NULL */
	struct buf answer;
	FILE *pipe; /* for what a good answer has, NULL: none */
	char why[CURL_ERROR_SIZE];
};

static size_t
answer_cb(char *p, size_t size, size_t n, void *arg)
{
	struct ctl_link *l = arg;
	long status = 0;

	if (l->pipe != NULL)
		(void)curl_easy_getinfo(
		    l->curl, CURLINFO_RESPONSE_CODE, &status);
	if (l->pipe != NULL && status >= 200 && status <= 299)
		return fwrite(p, size, n, l->pipe) * size;
	return buf_append(&l->answer, p, size * n) == 0 ? size * n : 0;
}

static int
open_socket(struct ctl_link *l, const char *data_dir, struct err *e)
{
	char path[64];

	l->dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (l->dir == -1)
		return err_set(e, ERR_INVAL,
		    "%s: %s: name the server's DATA_DIR with --data-dir, or "
		    "another server with --url",
		    data_dir, strerror(errno));
	if (faccessat(l->dir, LAYOUT_ADMIN, R_OK | W_OK, 0) != 0)
		return err_set(e, ERR_BACKEND, "%s/" LAYOUT_ADMIN ": %s%s",
		    data_dir, strerror(errno),
		    errno == ENOENT ? ": no server runs there" : "");
	(void)snprintf(
	    path, sizeof(path), "/proc/self/fd/%d/" LAYOUT_ADMIN, l->dir);
	l->base = xstrdup("http://localhost");
	(void)curl_easy_setopt(l->curl, CURLOPT_UNIX_SOCKET_PATH, path);
	return 0;
}

static void
use_url(struct ctl_link *l, const struct ctl_options *o)
{
	size_t n;

	l->dir = -1;
	l->base = xstrdup(o->url);
	for (n = strlen(l->base); n > 0 && l->base[n - 1] == '/'; n--)
		l->base[n - 1] = '\0';
	l->token = xasprintf("Authorization: Bearer %s", o->token);
}

int
ctl_link_open(const struct ctl_options *o, struct ctl_link **out, struct err *e)
{
	struct ctl_link *l = xcalloc(1, sizeof(*l));

	l->dir = -1;
	l->patience_s = ANSWER_S;
	buf_init(&l->answer, ANSWER_MAX);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
		l->curl = curl_easy_init();
	if (l->curl == NULL) {
		ctl_link_close(l);
		return err_set(e, ERR_SYS, "libcurl does not start");
	}
	if (o->url != NULL) {
		use_url(l, o);
	} else if (open_socket(l, o->data_dir, e) != 0) {
		ctl_link_close(l);
		return e->code;
	}
	*out = l;
	return 0;
}

void
ctl_link_hurry(struct ctl_link *l, long seconds)
{
	l->patience_s = seconds;
}

void
ctl_link_close(struct ctl_link *l)
{
	if (l == NULL)
		return;
	curl_easy_cleanup(l->curl);
	curl_global_cleanup();
	if (l->dir >= 0)
		(void)close(l->dir);
	if (l->token != NULL)
		explicit_bzero(l->token, strlen(l->token));
	free(l->token);
	free(l->base);
	buf_clear(&l->answer);
	free(l);
}

static void
set_options(struct ctl_link *l, const char *method, const char *url,
    const struct span *body, struct curl_slist *headers)
{
	/* No proxy of the environment: a token is meant for one server. */
	(void)curl_easy_setopt(l->curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(l->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(l->curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(l->curl, CURLOPT_CUSTOMREQUEST, method);
	(void)curl_easy_setopt(l->curl, CURLOPT_HTTPHEADER, headers);
	(void)curl_easy_setopt(l->curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(l->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	(void)curl_easy_setopt(l->curl, CURLOPT_TIMEOUT, l->patience_s);
	(void)curl_easy_setopt(l->curl, CURLOPT_ERRORBUFFER, l->why);
	(void)curl_easy_setopt(l->curl, CURLOPT_WRITEFUNCTION, answer_cb);
	(void)curl_easy_setopt(l->curl, CURLOPT_WRITEDATA, l);
	if (l->pipe != NULL) { /* for as long as something comes */
		(void)curl_easy_setopt(l->curl, CURLOPT_TIMEOUT, 0L);
		(void)curl_easy_setopt(l->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		(void)curl_easy_setopt(
		    l->curl, CURLOPT_LOW_SPEED_TIME, l->patience_s);
	}
	if (body == NULL) {
		(void)curl_easy_setopt(l->curl, CURLOPT_HTTPGET, 1L);
		return;
	}
	(void)curl_easy_setopt(
	    l->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->n);
	(void)curl_easy_setopt(l->curl, CURLOPT_POSTFIELDS, body->p);
}

static struct curl_slist *
new_headers(const struct ctl_link *l, const char *type)
{
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	if (type != NULL)
		list = curl_slist_append(list, type);
	if (l->token != NULL)
		list = curl_slist_append(list, l->token);
	return list;
}

/* What the server says of an answer that is none of 2xx. */
static int
refused(long status, const json_t *o, struct err *e)
{
	const char *text = js_text(json_object_get(o, "error"), "message");

	return err_set(e, status == 404 ? ERR_NOTFOUND : ERR_BACKEND,
	    "%s (status %ld)", text[0] != '\0' ? text : "the server refused",
	    status);
}

struct asked {
	const char *method, *path;
	const char *type; /* the header of a body, NULL when there is none */
	const struct span *body;
};

/* Whatever it says: *status, and the bytes in l->answer.  ERR_LOST when there
 * is no answer. */
static int
perform(struct ctl_link *l, const struct asked *a, long *status, struct err *e)
{
	AUTO(auto_free) char *url = xasprintf("%s%s", l->base, a->path);
	struct curl_slist *headers = new_headers(l, a->type);
	CURLcode rc;

	buf_consume(&l->answer, buf_len(&l->answer));
	l->why[0] = '\0';
	set_options(l, a->method, url, a->body, headers);
	rc = curl_easy_perform(l->curl);
	*status = 0;
	(void)curl_easy_getinfo(l->curl, CURLINFO_RESPONSE_CODE, status);
	curl_slist_free_all(headers);
	if (rc != CURLE_OK)
		return err_set(e, ERR_LOST, "%s: %s", url,
		    l->why[0] != '\0' ? l->why : curl_easy_strerror(rc));
	return 0;
}

static int
parse_answer(struct ctl_link *l, const struct asked *a, long status,
    json_t **out, struct err *e)
{
	if (js_parse((const char *)buf_data(&l->answer), buf_len(&l->answer),
		ANSWER_MAX, DEPTH_MAX, out, e) != 0)
		return err_set(e, ERR_BACKEND,
		    "%s%s answers with status %ld and no JSON", l->base,
		    a->path, status);
	return 0;
}

/* What is none of 2xx. */
static int
refuse(struct ctl_link *l, const struct asked *a, long status, struct err *e)
{
	json_t *o = NULL;
	int rc = parse_answer(l, a, status, &o, e);

	if (rc == 0)
		rc = refused(status, o, e);
	json_decref(o);
	return status == 502 || status == 503 ? ERR_LOST : rc;
}

static int
send_request(
    struct ctl_link *l, const struct asked *a, json_t **out, struct err *e)
{
	long status;

	if (perform(l, a, &status, e) != 0)
		return e->code;
	if (status < 200 || status > 299)
		return refuse(l, a, status, e);
	return parse_answer(l, a, status, out, e);
}

int
ctl_request(struct ctl_link *l, const char *method, const char *path,
    const json_t *body, json_t **out, struct err *e)
{
	AUTO(auto_free) char *text = body == NULL ? NULL : js_dump(body);
	const struct span bytes = {
	    (const uint8_t *)text, text == NULL ? 0 : strlen(text)};

	return send_request(l,
	    &(struct asked){method, path,
		text == NULL ? NULL : "Content-Type: application/json",
		text == NULL ? NULL : &bytes},
	    out, e);
}

int
ctl_request_bytes(struct ctl_link *l, const char *method, const char *path,
    const struct span *body, json_t **out, struct err *e)
{
	return send_request(l,
	    &(struct asked){
		method, path, "Content-Type: application/octet-stream", body},
	    out, e);
}

static const char *
header_of(struct ctl_link *l, const char *name)
{
	struct curl_header *h = NULL;

	return curl_easy_header(l->curl, name, 0, CURLH_HEADER, -1, &h) ==
		CURLHE_OK ?
	    h->value :
	    "";
}

int
ctl_request_output(
    struct ctl_link *l, const char *path, struct ctl_output *out, struct err *e)
{
	const struct asked a = {"GET", path, NULL, NULL};
	long status;

	if (perform(l, &a, &status, e) != 0)
		return e->code;
	if (status < 200 || status > 299)
		return refuse(l, &a, status, e);
	*out = (struct ctl_output){
	    .bytes = {buf_data(&l->answer), buf_len(&l->answer)},
	    .next = strtoull(header_of(l, "X-Output-Next"), NULL, 10),
	    .missing = strtoull(header_of(l, "X-Output-Missing"), NULL, 10),
	    .is_complete =
		strcmp(header_of(l, "X-Output-Complete"), "true") == 0};
	return 0;
}

int
ctl_request_pipe(struct ctl_link *l, const char *path, FILE *f, struct err *e)
{
	const struct asked a = {"GET", path, NULL, NULL};
	long status;
	int rc;

	l->pipe = f;
	rc = perform(l, &a, &status, e);
	l->pipe = NULL;
	if (rc == 0 && (status < 200 || status > 299))
		rc = refuse(l, &a, status, e);
	return rc;
}
