/*
 * One task's artifacts, from the box to the front's files.
 *
 *	IDLE		no link
 *	WALKING		the agent lists what changed below the root
 *	ASKING		the front is asked for a file to write one to
 *	READING		its bytes come, within credit
 *	ENDED		on_end was called
 *
 * ASKING and READING go on in turn until no listed file is left.  A lost link
 * takes all but ENDED back to IDLE; the next walk lists anew, and files that
 * were copied before are not asked for again.  What is wrong with one file is
 * a note, and the next one's turn.
 */
#include "worker/copy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/msg/msg_gen.h"
#include "common/fd.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/link/digest.h"
#include "worker/room_watch.h"
#include "worker/text.h"

/* Taken so far before the agent is told. */
#define TAKE_BYTES (FRAME_WINDOW_BYTES / 4)
#define TAKE_ENTRIES (PEER_WALK_WINDOW / 2)
#define TEXT_PATH_MAX 120

enum copy_state {
	COPY_IDLE, /* no link */
	COPY_WALKING,
	COPY_ASKING, /* the front for a descriptor */
	COPY_READING,
	COPY_ENDED
};

struct file {
	uint8_t *path;
	size_t path_len;
	uint64_t size; /* as the walk says */
	uint32_t mode;
	int64_t mtime_ns;
	uint8_t mark[FRAME_MARK_BYTES];
	bool done; /* copied, or given up for good */
	bool copied;
	bool listed; /* by the present walk */
};

struct copy {
	const struct copy_host *host;
	uint64_t run;
	enum copy_state state;
	struct peer *peer;
	struct timer *timer;
	struct peer_chan *chan; /* of the walk or the read under way */
	uint32_t nlisted;       /* entries of the walk */
	struct file *files;
	uint32_t nfiles;
	uint32_t at;     /* the file under way */
	uint32_t number; /* of ARTIFACT_OPEN, counts up over restarts */
	uint32_t ncopied;
	uint64_t total; /* bytes of copied files */

	int fd; /* the front's, -1: none */
	struct digest *digest;
	uint64_t got;
	uint64_t taken;  /* of got, as the agent was told */
	uint64_t budget; /* the file may have */

	char error[COPY_ERROR_MAX];
	uint32_t nerrors;
};

static const struct peer_chan_ops walk_ops, read_ops;
static void next_file(struct copy *c);

/* ---- what goes wrong */

static void PRINTF(2, 3) note(struct copy *c, const char *fmt, ...)
{
	size_t n = strlen(c->error);
	char text[ERR_TEXT_MAX];
	va_list ap;

	c->nerrors++;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* The last bytes are for saying that there were more. */
	if (n + strlen(text) + 64 < sizeof(c->error))
		(void)snprintf(c->error + n, sizeof(c->error) - n, "%s%s",
		    n > 0 ? "; " : "", text);
	else if (n > 0 && c->error[n - 1] != '.')
		(void)snprintf(c->error + n, sizeof(c->error) - n,
		    "; and more that are left out ...");
}

static void
note_file(struct copy *c, const char *what, const uint8_t *path, size_t n)
{
	char shown[TEXT_PATH_MAX];

	text_clean(shown, sizeof(shown), path, n);
	note(c, "%s: %s", what, shown);
}

/* ---- the end */

static void
close_file(struct copy *c)
{
	if (c->fd >= 0)
		(void)close(c->fd);
	c->fd = -1;
	digest_drop(c->digest);
	c->digest = NULL;
}

static void
close_chan(struct copy *c)
{
	peer_close(c->chan);
	c->chan = NULL;
}

/* The file under way does not come: the front throws away what it has. */
static void
drop_file(struct copy *c)
{
	if (c->state == COPY_READING || c->state == COPY_ASKING)
		msg_send_artifact_failed(*c->host->front,
		    &(struct msg_artifact_failed){
			.id = c->run, .file = c->number - 1});
	close_file(c);
}

static void
end(struct copy *c)
{
	c->state = COPY_ENDED;
	timer_stop(c->timer);
	c->host->on_end(c, c->host->arg);
}

void
copy_stop(struct copy *c, const char *why)
{
	if (c->state == COPY_ENDED)
		return;
	close_chan(c);
	drop_file(c);
	note(c, "artifact extraction: %s", why);
	end(c);
}

static void
timer_cb(void *arg)
{
	copy_stop(arg, "it took too long, the rest is left out");
}

/* ---- life */

struct copy *
copy_new(const struct copy_host *host, uint64_t run)
{
	struct copy *c = xcalloc(1, sizeof(*c));

	c->host = host;
	c->run = run;
	c->fd = -1;
	c->timer = timer_new(host->base, timer_cb, c);
	timer_set_ms(c->timer, host->time_ms);
	return c;
}

void
copy_free(struct copy *c)
{
	if (c == NULL)
		return;
	peer_leave(c->chan);
	close_file(c);
	timer_free(c->timer);
	for (uint32_t i = 0; i < c->nfiles; i++)
		free(c->files[i].path);
	free(c->files);
	free(c);
}

uint32_t
copy_files(const struct copy *c)
{
	return c->ncopied;
}

const char *
copy_error(const struct copy *c)
{
	return c->error;
}

void
copy_attach(struct copy *c, struct peer *p)
{
	c->peer = p;
	if (c->state != COPY_IDLE)
		return;
	c->state = COPY_WALKING;
	c->nlisted = 0;
	for (uint32_t i = 0; i < c->nfiles; i++)
		c->files[i].listed = false;
	c->chan = peer_open_walk(p,
	    (struct frame_open_walk){.changed_only = true, .root = COPY_ROOT},
	    &walk_ops, c);
}

void
copy_detach(struct copy *c)
{
	c->peer = NULL;
	peer_leave(c->chan);
	c->chan = NULL;
	if (c->state == COPY_ENDED)
		return;
	drop_file(c);
	c->state = COPY_IDLE;
}

void
copy_taken(struct copy *c)
{
	for (uint32_t i = 0; i < c->nfiles; i++) {
		const struct file *f = &c->files[i];
		const struct frame_taken m = {.root = COPY_ROOT,
		    .path = {f->path, f->path_len},
		    .mark = f->mark};

		if (c->peer != NULL && f->copied)
			peer_taken(c->peer, &m);
	}
}

/* ---- the walk */

bool
copy_is_path(const uint8_t *p, size_t n)
{
	size_t from = 0;

	if (n == 0 || n > COPY_PATH_MAX || memchr(p, '\0', n) != NULL)
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
find_file(struct copy *c, const uint8_t *path, size_t n)
{
	for (uint32_t i = 0; i < c->nfiles; i++)
		if (c->files[i].path_len == n &&
		    memcmp(c->files[i].path, path, n) == 0)
			return &c->files[i];
	return NULL;
}

static void
add_file(struct copy *c, const struct frame_entry *m)
{
	struct file *known = NULL;

	/* Only after a restart can there be one of that name. */
	if (c->number > 0)
		known = find_file(c, m->path.p, m->path.n);
	if (known == NULL) {
		if (c->nfiles % 64 == 0)
			c->files = xreallocarray(
			    c->files, c->nfiles + 64, sizeof(*c->files));
		known = &c->files[c->nfiles++];
		memset(known, 0, sizeof(*known));
		known->path = xmemdup(m->path.p, m->path.n);
		known->path_len = m->path.n;
	}
	known->listed = true;
	known->size = m->size;
	known->mode = m->mode & 0777;
	known->mtime_ns = m->mtime_ns;
	memcpy(known->mark, m->mark, sizeof(known->mark));
}

static void
walk_done(struct copy *c)
{
	c->at = 0;
	next_file(c);
}

static int
on_entry(const struct frame_entry *m, void *arg, struct err *e)
{
	struct copy *c = arg;

	if (c->nfiles >= 2 * COPY_WALK_MAX)
		return err_set(e, ERR_PROTO, "ever new files in each walk");
	if (++c->nlisted > COPY_WALK_MAX) {
		close_chan(c);
		note(c, "artifact extraction: too many files");
		walk_done(c);
		return 0;
	}
	if (m->kind == 'f' && copy_is_path(m->path.p, m->path.n))
		add_file(c, m);
	else if (m->kind == 'f')
		note_file(c, "artifact extraction: no good path", m->path.p,
		    m->path.n);
	if (c->nlisted % TAKE_ENTRIES == 0)
		peer_take(c->chan, c->nlisted);
	return 0;
}

static void
on_walk_close(int code, const char *text, void *arg)
{
	struct copy *c = arg;

	(void)text; /* strerror's here is in our words */
	c->chan = NULL;
	if (code == E2BIG)
		note(c, "artifact extraction: too many files");
	else if (code != 0)
		note(c, "artifact extraction: cannot list %s: %s", COPY_ROOT,
		    strerror(code));
	walk_done(c);
}

static void
on_lost(void *arg)
{
	struct copy *c = arg;

	c->chan = NULL;
}

static const struct peer_chan_ops walk_ops = {
    .on_entry = on_entry, .on_close = on_walk_close, .on_lost = on_lost};

/* ---- one file after the other */

/* Bytes that may still come, all in all. */
static uint64_t
total_left(const struct copy *c)
{
	uint64_t max = c->host->limits->total_bytes;

	if (max == 0)
		return INT64_MAX;
	return c->total < max ? max - c->total : 0;
}

/* NULL, or why this file is not even asked for. */
static const char *
why_not(const struct copy *c, const struct file *f)
{
	if (f->size > c->host->limits->file_bytes)
		return "artifact extraction: file too large";
	if (f->size > total_left(c))
		return "artifact extraction: total size exceeded";
	if (c->ncopied >= c->host->limits->files)
		return "artifact extraction: too many files";
	return NULL;
}

static void
ask_front(struct copy *c, const struct file *f)
{
	const struct msg_artifact_open m = {.id = c->run,
	    .file = c->number++,
	    .size = f->size,
	    .mode = f->mode,
	    .mtime_ns = f->mtime_ns,
	    .path = {f->path, f->path_len}};

	c->state = COPY_ASKING;
	c->got = c->taken = 0;
	msg_send_artifact_open(*c->host->front, &m);
}

static void
next_file(struct copy *c)
{
	for (; c->at < c->nfiles; c->at++) {
		struct file *f = &c->files[c->at];
		const char *why;

		if (f->done || !f->listed)
			continue;
		why = why_not(c, f);
		if (why == NULL) {
			ask_front(c, f);
			return;
		}
		f->done = true;
		note_file(c, why, f->path, f->path_len);
	}
	end(c);
}

static void
skip_file(struct copy *c, const char *why)
{
	struct file *f = &c->files[c->at++];

	f->done = true;
	note_file(c, why, f->path, f->path_len);
	drop_file(c);
	next_file(c);
}

void
copy_on_fd(struct copy *c, uint32_t number, int fd, const char *refusal)
{
	const struct file *f;
	char why[ERR_TEXT_MAX];
	uint64_t left;
	struct stat st;

	/* An answer from before a restart. */
	if (c->state != COPY_ASKING || number != c->number - 1 ||
	    c->peer == NULL) {
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	if (fd < 0 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			(void)close(fd);
		(void)snprintf(why, sizeof(why), "artifact extraction: %.200s",
		    fd < 0 ? refusal : "no file to write to");
		skip_file(c, why);
		return;
	}
	f = &c->files[c->at];
	left = total_left(c);
	c->fd = fd;
	c->digest = digest_begin();
	c->budget = c->host->limits->file_bytes < left ?
	    c->host->limits->file_bytes :
	    left;
	c->state = COPY_READING;
	/* One byte more says that there is more. */
	c->chan = peer_open_read(c->peer,
	    (struct frame_open_read){
		.until = c->budget < INT64_MAX ? c->budget + 1 : INT64_MAX,
		.root = COPY_ROOT,
		.path = {f->path, f->path_len}},
	    &read_ops, c);
}

static int
write_piece(struct copy *c, const uint8_t *p, size_t n, struct err *e)
{
	if (room_watch_level(c->host->limits->room, c->fd, n) != ROOM_FREE)
		return err_set(e, ERR_LIMIT,
		    "the disk is full: files are left out while less than "
		    "DISK_RESERVE_MB is free");
	return fd_write_all(c->fd, p, n, e);
}

static int
on_data(const uint8_t *p, size_t n, void *arg, struct err *e)
{
	struct copy *c = arg;
	struct err why;

	(void)e;
	if (c->got + n > c->budget) {
		close_chan(c);
		skip_file(c,
		    c->budget < c->host->limits->file_bytes ?
			"artifact extraction: total size exceeded" :
			"artifact extraction: file too large");
		return 0;
	}
	if (write_piece(c, p, n, &why) != 0) {
		close_chan(c);
		drop_file(c);
		note(c, "artifact extraction: %s", why.msg);
		end(c); /* the next would not fit either */
		return 0;
	}
	digest_add(c->digest, p, n);
	c->got += n;
	if (c->got - c->taken >= TAKE_BYTES) {
		c->taken = c->got;
		peer_take(c->chan, c->taken);
	}
	return 0;
}

static void
file_done(struct copy *c)
{
	struct file *f = &c->files[c->at++];
	uint8_t sum[DIGEST_BYTES];

	digest_end(c->digest, sum);
	c->digest = NULL;
	close_file(c);
	f->done = f->copied = true;
	c->ncopied++;
	c->total += c->got;
	msg_send_artifact_done(*c->host->front,
	    &(struct msg_artifact_done){.id = c->run,
		.file = c->number - 1,
		.size = c->got,
		.sha256 = sum});
	next_file(c);
}

static void
on_read_close(int code, const char *text, void *arg)
{
	struct copy *c = arg;
	char why[128];

	(void)text;
	c->chan = NULL;
	if (code == 0) {
		file_done(c);
		return;
	}
	(void)snprintf(
	    why, sizeof(why), "artifact extraction: %s", strerror(code));
	skip_file(c, why);
}

static const struct peer_chan_ops read_ops = {
    .on_data = on_data, .on_close = on_read_close, .on_lost = on_lost};
