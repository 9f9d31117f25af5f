/*
 * artifact_route.c - GET /artifacts/{identifier}/{run_id or latest}/{path}
 *
 * A file that a run left.  Whoever wrote it is not trusted, so it is always an
 * attachment of no particular type, in a sandbox should a browser show it all
 * the same.  Conditions and one range of bytes are as RFC 9110 has them.
 */
#include "supervisor/front/handlers.h"

#include <stdio.h>
#include <time.h>

#include "common/hex.h"
#include "common/utf8.h"
#include "supervisor/core/download.h"
#include "supervisor/front/etag.h"
#include "supervisor/http/range.h"

#define DISPOSITION_NAME_MAX 255

/* What is sent: its descriptor is http.c's once it is. */
struct artifact_sent {
	struct download *d;
	char etag[HEX_BYTES(32) + 2]; /* the digest in quotes */
};

/* ---- headers */

/* RFC 6266 and 8187: a plain name for old clients, the real one in UTF-8. */
static void
add_disposition(struct http_exchange *x)
{
	const char *path = http_param(x, "path");
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	char plain[DISPOSITION_NAME_MAX + 1];
	char coded[3 * DISPOSITION_NAME_MAX + 1];
	char value[4 * DISPOSITION_NAME_MAX + 64];
	size_t n = strlen(name), at = 0;

	if (n > DISPOSITION_NAME_MAX)
		n = utf8_complete_len(name, DISPOSITION_NAME_MAX);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';

		plain[i] = safe ? (char)c : '_';
		if (safe)
			coded[at++] = (char)c;
		else
			at += (size_t)snprintf(
			    coded + at, sizeof(coded) - at, "%%%02X", c);
	}
	plain[n] = '\0';
	coded[at] = '\0';
	(void)snprintf(value, sizeof(value),
	    "attachment; filename=\"%s\"; filename*=UTF-8''%s", plain, coded);
	http_add_header(x, "Content-Disposition", value);
}

static void
add_file_headers(struct http_exchange *x, const struct artifact_sent *a,
    const char *modified)
{
	http_add_header(x, "ETag", a->etag);
	http_add_header(x, "Last-Modified", modified);
	http_add_header(x, "Cache-Control", "private, no-cache");
	http_add_header(x, "Accept-Ranges", "bytes");
	http_add_header(
	    x, "Content-Security-Policy", "sandbox; default-src 'none'");
	add_disposition(x);
}

/* ---- conditions */

static bool
is_unmodified_since(const char *text, int64_t mtime_s)
{
	struct tm tm = {0};
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);

	return end != NULL && *end == '\0' && mtime_s <= (int64_t)timegm(&tm);
}

/* RFC 9110, section 13.2.2: tags go before dates. */
static enum etag_verdict
judge(struct http_exchange *x, const struct artifact_sent *a)
{
	const char *since = http_header(x, HTTP_H_IF_MODIFIED_SINCE);
	enum etag_verdict verdict = etag_judge(x, a->etag);

	if (verdict == ETAG_GO_ON && since != NULL &&
	    http_header(x, HTTP_H_IF_NONE_MATCH) == NULL &&
	    is_unmodified_since(since, a->d->mtime_ns / 1000000000))
		return ETAG_SAME;
	return verdict;
}

/* The part that is asked for; a stale If-Range asks for all. */
static enum range_result
wanted_range(const struct http_exchange *x, const struct artifact_sent *a,
    const char *modified, struct range *r)
{
	const char *text = http_header(x, HTTP_H_RANGE);
	const char *only_if = http_header(x, HTTP_H_IF_RANGE);

	if (text == NULL || http_method(x) != HTTP_METHOD_GET)
		return RANGE_NONE;
	if (only_if != NULL && strcmp(only_if, a->etag) != 0 &&
	    strcmp(only_if, modified) != 0)
		return RANGE_NONE;
	return range_parse(text, a->d->size, r);
}

/* ---- the answer */

static void
send_file(struct http_exchange *x, struct artifact_sent *a)
{
	static const char type[] = "application/octet-stream";
	time_t mtime = (time_t)(a->d->mtime_ns / 1000000000);
	struct range r = {0, a->d->size};
	enum range_result what;
	enum etag_verdict verdict = judge(x, a);
	char modified[64], text[80];
	struct tm tm;
	int fd;

	if (verdict == ETAG_ANSWERED)
		return;

	(void)strftime(modified, sizeof(modified), "%a, %d %b %Y %H:%M:%S GMT",
	    gmtime_r(&mtime, &tm));
	add_file_headers(x, a, modified);
	if (verdict == ETAG_SAME) {
		http_reply(x, 304, NULL, NULL, 0);
		return;
	}
	what = wanted_range(x, a, modified, &r);
	if (what == RANGE_BAD) {
		(void)snprintf(text, sizeof(text), "bytes */%llu",
		    (unsigned long long)a->d->size);
		http_add_header(x, "Content-Range", text);
		http_error(x, 416, "range_not_satisfiable",
		    "the file has %llu bytes", (unsigned long long)a->d->size);
		return;
	}
	if (what == RANGE_PART) {
		(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu",
		    (unsigned long long)r.first,
		    (unsigned long long)(r.first + r.length - 1),
		    (unsigned long long)a->d->size);
		http_add_header(x, "Content-Range", text);
	}
	fd = a->d->fd; /* from here on http.c's */
	a->d->fd = -1;
	http_reply_file(
	    x, what == RANGE_PART ? 206 : 200, type, fd, r.first, r.length);
}

static void
artifact_cb(int rc, struct download *d, const struct err *why, void *arg)
{
	struct http_exchange *x = arg;
	struct artifact_sent a = {.d = d, .etag = "\""};

	if (http_is_gone(x)) {
		http_drop(x);
	} else if (rc == ERR_NOTFOUND) {
		http_error(x, 404, "not_found", "no such artifact");
	} else if (rc != 0) {
		http_error_from(x, rc, why);
	} else {
		hex_encode(d->sha256, sizeof(d->sha256), a.etag + 1);
		(void)strcat(a.etag, "\"");
		send_file(x, &a);
	}
}

void
front_on_artifact(struct request *r)
{
	struct http_exchange *x = r->x;

	http_hold(x, NULL, NULL);
	download_open(r->front->core, r->who, http_param(x, "identifier"),
	    http_param(x, "run_or_latest"), http_param(x, "path"), artifact_cb,
	    x);
}
