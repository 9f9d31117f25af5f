/*
 * Above, one task's artifacts, from the box to the front's files; at the end,
 * those of a box's tasks, one task after the other (copies_).
 *
 *	IDLE		no link
 *	WALKING		the agent lists what changed below the root
 *	ASKING		the front is asked for a file to write one to
 *	READING		its bytes come, within credit
 *	ENDED		on_end was called
 *
 * The walk has credit for one batch of names at a time.  When it is used up, or
 * the walk over, ASKING and READING go on in turn until no file of the batch is
 * left; then it is WALKING again.  So no more names than a batch are here,
 * however many there are.
 *
 * A lost link takes all but ENDED back to IDLE; the next walk lists anew, and
 * files that are done are known by digests of their names.  What is wrong with
 * one file is a note, and the next one's turn.
 */
#include "worker/copy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/msg/msg_gen.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/copy_clock.h"
#include "worker/room_watch.h"

/* Taken so far before the agent is told. */
#define TAKE_BYTES (FRAME_WINDOW_BYTES / 4)
#define BATCH_MAX PEER_WALK_WINDOW
#define NAME_DIGEST_BYTES 16
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
};

/* Of a file that was copied, or given up for good. */
struct done_name {
	uint8_t digest[NAME_DIGEST_BYTES];
};

struct copy {
	const struct copy_host *host;
	uint64_t run;
	enum copy_state state;
	struct peer *peer;
	uint64_t end_ms; /* not later, whoever is late */
	struct timer *timer;
	struct peer_chan *walk; /* NULL: none, or it is over */
	struct peer_chan *read; /* of the file under way */
	bool walked;            /* at least begun */
	uint32_t nlisted;       /* entries of the walk */
	struct file *batch;     /* of BATCH_MAX; NULL: not yet */
	uint32_t nbatch;
	uint32_t at; /* in it, the file under way */
	struct done_name *done;
	uint32_t ndone;
	uint32_t nsorted; /* of these, sorted: from before this walk */
	uint32_t number;  /* of ARTIFACT_OPEN, counts up over restarts */
	uint32_t ncopied;
	uint64_t total; /* bytes of copied files */

	int fd;             /* the front's, -1: none */
	EVP_MD_CTX *digest; /* NULL: no file */
	uint64_t got;
	uint64_t taken;  /* of got, as the agent was told */
	uint64_t budget; /* the file may have */

	char error[COPY_ERROR_MAX];
	uint32_t nerrors;
};

static const struct peer_chan_ops walk_ops, read_ops;
static void next_file(struct copy *c);

/* Whom the copy waits for: the front while it is asked, else the agent. */
static void
set_state(struct copy *c, enum copy_state to)
{
	c->state = to;
	if (to == COPY_ASKING || to == COPY_ENDED)
		copy_clock_stand(c->host->clock);
	else
		copy_clock_go(c->host->clock);
}

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
	if (n + strlen(text) + 85 < sizeof(c->error))
		(void)snprintf(c->error + n, sizeof(c->error) - n,
		    "%sartifact extraction: %s", n > 0 ? "; " : "", text);
	else if (n > 0 && c->error[n - 1] != '.')
		(void)snprintf(c->error + n, sizeof(c->error) - n,
		    "; and more that are left out ...");
}

static void
note_file(struct copy *c, const char *what, const uint8_t *path, size_t n)
{
	char shown[TEXT_PATH_MAX];

	text_clean(shown, sizeof(shown), path, n);
	note(c, "%.200s: %s", what, shown);
}

/* ---- the end */

static void
close_file(struct copy *c)
{
	if (c->fd >= 0)
		(void)close(c->fd);
	c->fd = -1;
	EVP_MD_CTX_free(c->digest);
	c->digest = NULL;
}

static void
close_read(struct copy *c)
{
	peer_close(c->read);
	c->read = NULL;
}

static void
close_walk(struct copy *c)
{
	peer_close(c->walk);
	c->walk = NULL;
}

static void
drop_batch(struct copy *c)
{
	for (uint32_t i = 0; i < c->nbatch; i++)
		free(c->batch[i].path);
	c->nbatch = 0;
	c->at = 0;
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
	set_state(c, COPY_ENDED);
	drop_batch(c);
	timer_stop(c->timer);
	c->host->on_end(c, c->host->arg);
}

static void
copy_stop(struct copy *c, const char *why)
{
	if (c->state == COPY_ENDED)
		return;
	close_walk(c);
	close_read(c);
	drop_file(c);
	note(c, "%s", why);
	end(c);
}

static void
set_timer(struct copy *c)
{
	uint64_t now_ms = clock_mono_ms();
	uint64_t left_ms = c->end_ms > now_ms ? c->end_ms - now_ms : 0;

	timer_set_ms(c->timer,
	    left_ms < COPY_CLOCK_LOOK_MS ? left_ms : COPY_CLOCK_LOOK_MS);
}

static void
timer_cb(void *arg)
{
	struct copy *c = arg;
	struct ipc_chan *front = *c->host->front;

	/* What the agent says is not read meanwhile. */
	if (front != NULL && ipc_chan_is_full(front))
		copy_clock_skip(c->host->clock);
	if (clock_mono_ms() >= c->end_ms)
		copy_stop(c, "it took too long, the rest is left out");
	else if (copy_clock_is_late(c->host->clock))
		copy_stop(c,
		    "the sandbox took too long to give its files, the rest is "
		    "left out");
	else
		set_timer(c);
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
	c->end_ms = clock_mono_ms() + host->time_ms;
	set_timer(c);
	copy_clock_go(host->clock); /* for its agent */
	return c;
}

void
copy_free(struct copy *c)
{
	if (c == NULL)
		return;
	peer_leave(c->walk);
	peer_leave(c->read);
	close_file(c);
	timer_free(c->timer);
	drop_batch(c);
	free(c->batch);
	free(c->done);
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

static int
compare_names(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct done_name));
}

void
copy_attach(struct copy *c, struct peer *p)
{
	c->peer = p;
	if (c->state != COPY_IDLE)
		return;
	/* What an earlier worker has copied and never said to be stored. */
	if (!c->walked)
		peer_taken_stored(p, false);
	c->walked = true;
	c->nsorted = c->ndone;
	if (c->nsorted > 0)
		qsort(c->done, c->nsorted, sizeof(*c->done), compare_names);
	set_state(c, COPY_WALKING);
	c->nlisted = 0;
	c->walk = peer_open_walk(p,
	    (struct frame_open_walk){.changed_only = true, .root = COPY_ROOT},
	    &walk_ops, c);
}

void
copy_detach(struct copy *c)
{
	c->peer = NULL;
	peer_leave(c->walk);
	peer_leave(c->read);
	c->walk = c->read = NULL;
	if (c->state == COPY_ENDED)
		return;
	drop_file(c);
	drop_batch(c);
	set_state(c, COPY_IDLE);
}

void
copy_taken(struct copy *c)
{
	if (c->peer != NULL && c->ncopied > 0)
		peer_taken_stored(c->peer, true);
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

static struct done_name
name_digest(const uint8_t *path, size_t n)
{
	uint8_t sum[SHA256_DIGEST_LENGTH];
	struct done_name name;

	(void)SHA256(path, n, sum);
	memcpy(name.digest, sum, sizeof(name.digest));
	return name;
}

static bool
is_done(const struct copy *c, const struct frame_entry *m)
{
	struct done_name name;

	if (c->nsorted == 0)
		return false;
	name = name_digest(m->path.p, m->path.n);
	return bsearch(&name, c->done, c->nsorted, sizeof(name),
		   compare_names) != NULL;
}

static void
set_done(struct copy *c, const struct file *f)
{
	if (c->ndone % 64 == 0)
		c->done =
		    xreallocarray(c->done, c->ndone + 64, sizeof(*c->done));
	c->done[c->ndone++] = name_digest(f->path, f->path_len);
}

static void
add_file(struct copy *c, const struct frame_entry *m)
{
	struct file *f;

	if (is_done(c, m))
		return;
	if (c->batch == NULL)
		c->batch = xcalloc(BATCH_MAX, sizeof(*c->batch));
	f = &c->batch[c->nbatch++];
	f->path = xmemdup(m->path.p, m->path.n);
	f->path_len = m->path.n;
	f->size = m->size;
	f->mode = m->mode & 0777;
	f->mtime_ns = m->mtime_ns;
	memcpy(f->mark, m->mark, sizeof(f->mark));
}

static uint32_t
walk_max(const struct copy *c)
{
	uint32_t files = c->host->limits->files;

	return files > COPY_WALK_MAX ? files : COPY_WALK_MAX;
}

static void
note_long_walk(struct copy *c)
{
	note(c, "too many files to look at: the rest is left out");
}

static int
on_entry(const struct frame_entry *m, void *arg, struct err *e)
{
	struct copy *c = arg;

	if (c->ndone >= 2 * walk_max(c))
		return err_set(e, ERR_PROTO, "ever new files in each walk");
	if (++c->nlisted > walk_max(c)) {
		close_walk(c);
		note_long_walk(c);
		next_file(c);
		return 0;
	}
	if (m->kind == 'f' && copy_is_path(m->path.p, m->path.n))
		add_file(c, m);
	else if (m->kind == 'f')
		note_file(c, "no good path", m->path.p, m->path.n);
	if (c->nlisted % BATCH_MAX == 0) /* its credit is used up */
		next_file(c);
	return 0;
}

static void
on_walk_close(int code, const char *text, void *arg)
{
	struct copy *c = arg;

	(void)text; /* strerror's here is in our words */
	c->walk = NULL;
	copy_clock_earn_piece(c->host->clock);
	if (code == E2BIG)
		note_long_walk(c);
	else if (code != 0)
		note(c, "cannot list %s: %s", COPY_ROOT, strerror(code));
	if (c->state == COPY_WALKING)
		next_file(c);
}

static void
on_walk_lost(void *arg)
{
	struct copy *c = arg;

	c->walk = NULL;
}

static const struct peer_chan_ops walk_ops = {
    .on_entry = on_entry, .on_close = on_walk_close, .on_lost = on_walk_lost};

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
		return "file too large";
	if (f->size > total_left(c))
		return "total size exceeded";
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

	set_state(c, COPY_ASKING);
	c->got = c->taken = 0;
	msg_send_artifact_open(*c->host->front, &m);
}

static void
end_of_places(struct copy *c)
{
	close_walk(c);
	note(c,
	    "too many files: the rest is left out, %u of "
	    "a run are kept (ARTIFACTS_MAX_EXTRACT_FILES)",
	    c->host->limits->files);
	end(c);
}

static void
next_file(struct copy *c)
{
	if (c->at < c->nbatch && c->ncopied >= c->host->limits->files) {
		end_of_places(c);
		return;
	}
	for (; c->at < c->nbatch; c->at++) {
		const struct file *f = &c->batch[c->at];
		const char *why = why_not(c, f);

		if (why == NULL) {
			ask_front(c, f);
			return;
		}
		set_done(c, f);
		note_file(c, why, f->path, f->path_len);
	}
	drop_batch(c);
	if (c->walk == NULL) {
		end(c);
		return;
	}
	set_state(c, COPY_WALKING);
	peer_take(c->walk, c->nlisted);
}

static void
skip_file(struct copy *c, const char *why)
{
	const struct file *f = &c->batch[c->at++];

	set_done(c, f);
	note_file(c, why, f->path, f->path_len);
	drop_file(c);
	next_file(c);
}

void
copy_on_fd(struct copy *c, uint32_t number, int fd, const char *refusal)
{
	const struct file *f;
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
		skip_file(c, fd < 0 ? refusal : "no file to write to");
		return;
	}
	f = &c->batch[c->at];
	left = total_left(c);
	c->fd = fd;
	c->digest = EVP_MD_CTX_new();
	if (c->digest == NULL ||
	    EVP_DigestInit_ex(c->digest, EVP_sha256(), NULL) != 1)
		fatal(EXIT_MEMORY, "no SHA-256");
	c->budget = c->host->limits->file_bytes < left ?
	    c->host->limits->file_bytes :
	    left;
	set_state(c, COPY_READING);
	/* One byte more says that there is more. */
	c->read = peer_open_read(c->peer,
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
		close_read(c);
		skip_file(c,
		    c->budget < c->host->limits->file_bytes ?
			"total size exceeded" :
			"file too large");
		return 0;
	}
	if (write_piece(c, p, n, &why) != 0) {
		close_read(c);
		drop_file(c);
		note(c, "%s", why.msg);
		close_walk(c);
		end(c); /* the next would not fit either */
		return 0;
	}
	copy_clock_earn_bytes(c->host->clock, n);
	if (EVP_DigestUpdate(c->digest, p, n) != 1)
		fatal(EXIT_MEMORY, "SHA-256 failed");
	c->got += n;
	if (c->got - c->taken >= TAKE_BYTES) {
		c->taken = c->got;
		peer_take(c->read, c->taken);
	}
	return 0;
}

static void
file_done(struct copy *c)
{
	const struct file *f = &c->batch[c->at++];
	const struct frame_taken taken = {
	    .root = COPY_ROOT, .path = {f->path, f->path_len}, .mark = f->mark};
	uint8_t sum[SHA256_DIGEST_LENGTH];

	if (EVP_DigestFinal_ex(c->digest, sum, NULL) != 1)
		fatal(EXIT_MEMORY, "SHA-256 failed");
	close_file(c);
	set_done(c, f);
	peer_taken(c->peer, &taken);
	copy_clock_earn_piece(c->host->clock);
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

	(void)text;
	c->read = NULL;
	if (code == 0)
		file_done(c);
	else
		skip_file(c, strerror(code));
}

static void
on_read_lost(void *arg)
{
	struct copy *c = arg;

	c->read = NULL;
}

static const struct peer_chan_ops read_ops = {
    .on_data = on_data, .on_close = on_read_close, .on_lost = on_read_lost};

/* ---- one task after the other */

TAILQ_HEAD(copy_queue, copy_job);

struct copies {
	struct copy_host host;
	struct copy_clock clock; /* since somebody waits */
	struct copy_queue queue;
	struct peer *peer;    /* NULL: away */
	struct copy *copy;    /* under way, or ended and kept; NULL: none */
	struct copy_job *job; /* whose it is */
	bool ended;
	uint64_t began_us;
	struct timer *release;
};

static struct copy_job *
take_first(struct copies *cs)
{
	struct copy_job *job = TAILQ_FIRST(&cs->queue);

	if (job == NULL)
		return NULL;
	TAILQ_REMOVE(&cs->queue, job, link);
	job->waits = false;
	return job;
}

static void
start_next(struct copies *cs)
{
	struct copy_job *job = cs->copy == NULL ? take_first(cs) : NULL;

	if (job == NULL)
		return;
	cs->job = job;
	cs->ended = false;
	cs->began_us = clock_mono_us();
	cs->copy = copy_new(&cs->host, job->task);
	if (cs->peer != NULL)
		copy_attach(cs->copy, cs->peer);
}

static void
release(struct copies *cs)
{
	copy_taken(cs->copy);
	copy_free(cs->copy);
	cs->copy = NULL;
	cs->job = NULL;
	timer_stop(cs->release);
}

static void
release_cb(void *arg)
{
	struct copies *cs = arg;

	release(cs);
	start_next(cs);
}

/* What an agent did not give for one run it would not give for the next.  What
 * is left out stays in the sandbox: a later run's copy lists it. */
static void
end_waiting(struct copies *cs)
{
	struct copy_job *job;

	while ((job = take_first(cs)) != NULL)
		job->done(job,
		    "artifact extraction: the sandbox took too long to give "
		    "the files of an earlier run, these are left out");
}

static void
end_cb(struct copy *c, void *arg)
{
	struct copies *cs = arg;

	cs->ended = true;
	(void)metric_observe(
	    FAMILY_ARTIFACT_COPY_SECONDS, 0, clock_mono_us() - cs->began_us);
	cs->job->done(cs->job, copy_error(c));
	if (copy_clock_is_late(&cs->clock))
		end_waiting(cs);
	/* Freed later in any case: it is in use up the stack. */
	timer_set_ms(cs->release, copy_files(c) > 0 ? COPIES_COMMIT_MS : 0);
}

struct copies *
copies_new(struct event_base *base, struct ipc_chan **front,
    const struct copy_limits *limits)
{
	struct copies *cs = xcalloc(1, sizeof(*cs));

	TAILQ_INIT(&cs->queue);
	cs->host = (struct copy_host){.base = base,
	    .front = front,
	    .limits = limits,
	    .time_ms = COPY_TIME_MS,
	    .clock = &cs->clock,
	    .on_end = end_cb,
	    .arg = cs};
	cs->release = timer_new(base, release_cb, cs);
	return cs;
}

void
copies_free(struct copies *cs)
{
	while (take_first(cs) != NULL)
		;
	if (cs->copy != NULL)
		copies_drop(cs, cs->job);
	timer_free(cs->release);
	free(cs);
}

void
copies_add(struct copies *cs, struct copy_job *job)
{
	if (TAILQ_EMPTY(&cs->queue) && (cs->copy == NULL || cs->ended))
		copy_clock_init(&cs->clock, cs->host.limits->late_ms);
	job->waits = true;
	TAILQ_INSERT_TAIL(&cs->queue, job, link);
	start_next(cs);
}

void
copies_drop(struct copies *cs, struct copy_job *job)
{
	if (job->waits)
		TAILQ_REMOVE(&cs->queue, job, link);
	job->waits = false;
	if (cs->job != job)
		return;
	copies_stop(cs, "the run was dropped");
	release(cs);
	start_next(cs);
}

void
copies_stop(struct copies *cs, const char *why)
{
	if (cs->copy != NULL && !cs->ended)
		copy_stop(cs->copy, why);
}

void
copies_attach(struct copies *cs, struct peer *p)
{
	cs->peer = p;
	if (cs->copy != NULL)
		copy_attach(cs->copy, p);
}

void
copies_detach(struct copies *cs)
{
	cs->peer = NULL;
	if (cs->copy != NULL)
		copy_detach(cs->copy);
}

void
copies_on_fd(struct copies *cs, const struct copy_job *job, uint32_t file,
    int fd, const char *refusal)
{
	if (cs->job == job)
		copy_on_fd(cs->copy, file, fd, refusal);
	else if (fd >= 0)
		(void)close(fd);
}
