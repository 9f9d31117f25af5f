#include "worker/artifact.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/link/digest.h"
#include "worker/report.h"
#include "worker/text.h"

#define EXIT_MEMORY 71
#define ACK_BYTES (FRAME_WINDOW_BYTES / 4)
#define TEXT_PATH_MAX 120

enum artifact_state {
	ARTIFACT_IDLE, /* no link */
	ARTIFACT_WALKING,
	ARTIFACT_ASKING, /* the front for a descriptor */
	ARTIFACT_READING,
	ARTIFACT_ENDED
};

struct file {
	uint8_t *path;
	size_t path_len;
	uint64_t size; /* as the walk says */
	uint32_t mode;
	int64_t mtime_ns;
	bool done; /* copied, or given up for good */
	bool copied;
	bool listed; /* by the present walk */
};

struct artifact {
	const struct artifact_host *host;
	uint64_t run;
	enum artifact_state state;
	struct peer *peer;
	struct event *timer;
	uint32_t walk;    /* its request */
	uint32_t request; /* of the read under way */
	struct file *files;
	uint32_t nfiles;
	uint32_t at;     /* the file under way */
	uint32_t number; /* of ARTIFACT_OPEN, counts up over restarts */
	uint32_t ncopied;
	uint64_t total; /* bytes of copied files */

	int fd; /* the front's, -1: none */
	struct digest *digest;
	uint64_t got;
	uint64_t acked;
	uint64_t budget; /* the file may have */

	char error[ARTIFACT_ERROR_MAX];
	uint32_t nerrors;
};

static void next_file(struct artifact *a);

/* ---- what goes wrong */

static void PRINTF(2, 3) note(struct artifact *a, const char *fmt, ...)
{
	size_t n = strlen(a->error);
	char text[ERR_TEXT_MAX];
	va_list ap;

	a->nerrors++;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* The last bytes are for saying that there were more. */
	if (n + strlen(text) + 64 < sizeof(a->error))
		(void)snprintf(a->error + n, sizeof(a->error) - n, "%s%s",
		    n > 0 ? "; " : "", text);
	else if (n > 0 && a->error[n - 1] != '.')
		(void)snprintf(a->error + n, sizeof(a->error) - n,
		    "; and more that are left out ...");
}

static void
note_file(struct artifact *a, const char *what, const uint8_t *path, size_t n)
{
	char shown[TEXT_PATH_MAX];

	text_clean(shown, sizeof(shown), path, n);
	note(a, "%s: %s", what, shown);
}

/* ---- the end */

static void
close_file(struct artifact *a)
{
	if (a->fd >= 0)
		(void)close(a->fd);
	a->fd = -1;
	digest_drop(a->digest);
	a->digest = NULL;
}

/* The file under way does not come: the front throws away what it has. */
static void
drop_file(struct artifact *a, int code)
{
	static const uint8_t none[DIGEST_BYTES];

	if (a->state == ARTIFACT_READING || a->state == ARTIFACT_ASKING)
		report_file_done(
		    *a->host->front, a->run, a->number - 1, code, a->got, none);
	close_file(a);
}

static void
end(struct artifact *a)
{
	a->state = ARTIFACT_ENDED;
	(void)evtimer_del(a->timer);
	a->host->on_end(a, a->host->arg);
}

void
artifact_stop(struct artifact *a, const char *why)
{
	if (a->state == ARTIFACT_ENDED)
		return;
	if (a->peer != NULL && a->state == ARTIFACT_READING)
		peer_abort(a->peer, a->request);
	if (a->peer != NULL && a->state == ARTIFACT_WALKING)
		peer_abort(a->peer, a->walk);
	drop_file(a, ERR_LOST);
	note(a, "artifact extraction: %s", why);
	end(a);
}

static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	artifact_stop(arg, "it took too long, the rest is left out");
}

/* ---- life */

struct artifact *
artifact_new(const struct artifact_host *host, uint64_t run)
{
	struct timeval tv = {(time_t)(host->time_ms / 1000),
	    (suseconds_t)(host->time_ms % 1000) * 1000};
	struct artifact *a = xcalloc(1, sizeof(*a));

	a->host = host;
	a->run = run;
	a->fd = -1;
	a->timer = evtimer_new(host->base, timer_cb, a);
	if (a->timer == NULL)
		fatal(EXIT_MEMORY, "no memory for a timer");
	(void)evtimer_add(a->timer, &tv);
	return a;
}

void
artifact_free(struct artifact *a)
{
	if (a == NULL)
		return;
	close_file(a);
	event_free(a->timer);
	for (uint32_t i = 0; i < a->nfiles; i++)
		free(a->files[i].path);
	free(a->files);
	free(a);
}

uint32_t
artifact_files(const struct artifact *a)
{
	return a->ncopied;
}

const char *
artifact_error(const struct artifact *a)
{
	return a->error;
}

void
artifact_attach(struct artifact *a, struct peer *p)
{
	a->peer = p;
	if (a->state != ARTIFACT_IDLE)
		return;
	a->state = ARTIFACT_WALKING;
	a->walk = (*a->host->next_request)++;
	for (uint32_t i = 0; i < a->nfiles; i++)
		a->files[i].listed = false;
	peer_walk(p, a->walk, ARTIFACT_ROOT);
}

void
artifact_detach(struct artifact *a)
{
	a->peer = NULL;
	if (a->state == ARTIFACT_ENDED)
		return;
	drop_file(a, ERR_LOST);
	a->state = ARTIFACT_IDLE;
}

void
artifact_taken(struct artifact *a)
{
	for (uint32_t i = 0; i < a->nfiles; i++)
		if (a->peer != NULL && a->files[i].copied)
			peer_walk_taken(a->peer, a->walk, a->files[i].path,
			    a->files[i].path_len);
}

/* ---- the walk */

bool
artifact_is_path(const uint8_t *p, size_t n)
{
	size_t from = 0;

	if (n == 0 || n > ARTIFACT_PATH_MAX || memchr(p, '\0', n) != NULL)
		return false;
	for (size_t i = 0; i <= n; i++) {
		size_t part = i - from;

		if (i < n && p[i] != '/')
			continue;
		if (part == 0 || (part == 1 && p[from] == '.') ||
		    (part == 2 && p[from] == '.' && p[from + 1] == '.'))
			return false;
		from = i + 1;
	}
	return true;
}

static struct file *
find_file(struct artifact *a, const uint8_t *path, size_t n)
{
	for (uint32_t i = 0; i < a->nfiles; i++)
		if (a->files[i].path_len == n &&
		    memcmp(a->files[i].path, path, n) == 0)
			return &a->files[i];
	return NULL;
}

static void
add_file(struct artifact *a, const struct peer_entry *f)
{
	struct file *known = NULL;

	/* Only after a restart can there be one of that name. */
	if (a->walk != 0 && a->number > 0)
		known = find_file(a, f->path, f->path_len);
	if (known == NULL) {
		if (a->nfiles % 64 == 0)
			a->files = xreallocarray(
			    a->files, a->nfiles + 64, sizeof(*a->files));
		known = &a->files[a->nfiles++];
		memset(known, 0, sizeof(*known));
		known->path = xmemdup(f->path, f->path_len);
		known->path_len = f->path_len;
	}
	known->listed = true;
	known->size = f->size;
	known->mode = f->mode & 0777;
	known->mtime_ns = f->mtime_ns;
}

int
artifact_on_entry(struct artifact *a, uint32_t request,
    const struct peer_entry *f, struct err *e)
{
	if (a->state != ARTIFACT_WALKING || request != a->walk ||
	    f->kind != 'f')
		return 0;
	if (a->nfiles >= 2 * FRAME_WALK_MAX)
		return err_set(e, ERR_PROTO, "more entries than were asked");
	if (!artifact_is_path(f->path, f->path_len))
		note_file(a, "artifact extraction: no good path", f->path,
		    f->path_len);
	else
		add_file(a, f);
	return 0;
}

/* ---- one file after the other */

/* Bytes that may still come, all in all. */
static uint64_t
total_left(const struct artifact *a)
{
	uint64_t max = a->host->limits->total_bytes;

	if (max == 0)
		return INT64_MAX;
	return a->total < max ? max - a->total : 0;
}

/* NULL, or why this file is not even asked for. */
static const char *
why_not(const struct artifact *a, const struct file *f)
{
	if (f->size > a->host->limits->file_bytes)
		return "artifact extraction: file too large";
	if (f->size > total_left(a))
		return "artifact extraction: total size exceeded";
	if (a->ncopied >= a->host->limits->files)
		return "artifact extraction: too many files";
	return NULL;
}

static void
ask_front(struct artifact *a, const struct file *f)
{
	struct report_file r = {.file = a->number++,
	    .size = f->size,
	    .mode = f->mode,
	    .mtime_ns = f->mtime_ns,
	    .path = f->path,
	    .path_len = f->path_len};

	a->state = ARTIFACT_ASKING;
	a->got = a->acked = 0;
	report_file(*a->host->front, a->run, &r);
}

static void
next_file(struct artifact *a)
{
	for (; a->at < a->nfiles; a->at++) {
		struct file *f = &a->files[a->at];
		const char *why;

		if (f->done || !f->listed)
			continue;
		why = why_not(a, f);
		if (why == NULL) {
			ask_front(a, f);
			return;
		}
		f->done = true;
		note_file(a, why, f->path, f->path_len);
	}
	end(a);
}

static void
skip_file(struct artifact *a, const char *why)
{
	struct file *f = &a->files[a->at++];

	f->done = true;
	note_file(a, why, f->path, f->path_len);
	drop_file(a, ERR_LIMIT);
	next_file(a);
}

void
artifact_on_fd(struct artifact *a, uint32_t number, int fd, const char *refusal)
{
	const struct file *f;
	char why[ERR_TEXT_MAX];
	uint64_t left;
	struct stat st;

	/* An answer from before a restart. */
	if (a->state != ARTIFACT_ASKING || number != a->number - 1 ||
	    a->peer == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	if (fd < 0 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			(void)close(fd);
		(void)snprintf(why, sizeof(why), "artifact extraction: %.200s",
		    fd < 0 ? refusal : "no file to write to");
		skip_file(a, why);
		return;
	}
	f = &a->files[a->at];
	left = total_left(a);
	a->fd = fd;
	a->digest = digest_begin();
	a->budget = a->host->limits->file_bytes < left ?
	    a->host->limits->file_bytes :
	    left;
	a->request = (*a->host->next_request)++;
	a->state = ARTIFACT_READING;
	peer_read(a->peer, a->request, a->budget + 1, ARTIFACT_ROOT, f->path,
	    f->path_len);
}

int
artifact_on_data(struct artifact *a, uint32_t request, uint64_t offset,
    const uint8_t *p, size_t n, struct err *e)
{
	struct err why;

	if (a->state != ARTIFACT_READING || request != a->request)
		return 0; /* on its way when the read was ended */
	if (offset != a->got || offset + n > a->acked + FRAME_WINDOW_BYTES)
		return err_set(e, ERR_PROTO, "file bytes that cannot be");
	if (a->got + n > a->budget) {
		peer_abort(a->peer, a->request);
		skip_file(a,
		    a->budget < a->host->limits->file_bytes ?
			"artifact extraction: total size exceeded" :
			"artifact extraction: file too large");
		return 0;
	}
	if (fd_write_all(a->fd, p, n, &why) != 0) {
		peer_abort(a->peer, a->request);
		drop_file(a, ERR_SYS);
		note(a, "artifact extraction: %s", why.msg);
		end(a); /* the next would not fit either */
		return 0;
	}
	digest_add(a->digest, p, n);
	a->got += n;
	if (a->got - a->acked >= ACK_BYTES) {
		a->acked = a->got;
		peer_read_ack(a->peer, a->request, a->acked);
	}
	return 0;
}

static void
file_done(struct artifact *a)
{
	struct file *f = &a->files[a->at++];
	uint8_t sum[DIGEST_BYTES];

	digest_end(a->digest, sum);
	a->digest = NULL;
	close_file(a);
	f->done = f->copied = true;
	a->ncopied++;
	a->total += a->got;
	report_file_done(
	    *a->host->front, a->run, a->number - 1, 0, a->got, sum);
	next_file(a);
}

int
artifact_on_end(
    struct artifact *a, uint32_t request, int32_t error, struct err *e)
{
	char why[128];

	(void)e;
	if (a->state == ARTIFACT_WALKING && request == a->walk) {
		if (error == E2BIG)
			note(a, "artifact extraction: too many files");
		else if (error != 0)
			note(a, "artifact extraction: cannot list %s: %s",
			    ARTIFACT_ROOT, strerror(error));
		a->at = 0;
		next_file(a);
	} else if (a->state == ARTIFACT_READING && request == a->request) {
		if (error == 0) {
			file_done(a);
			return 0;
		}
		(void)snprintf(why, sizeof(why), "artifact extraction: %s",
		    strerror(error));
		skip_file(a, why);
	}
	return 0;
}
