/*
 * http_out.c - what waits to be sent: how much, and where
 *
 * Bytes in memory are counted as the buffers of connections say, over all
 * connections.  Answers too large for that go into a file without a name and
 * from there out by sendfile(2): a slow client then costs a descriptor and an
 * offset.  Nothing is synced, and nothing is left behind.  Several answers may
 * be one file.  Where there is no file to be had (a full disk, too few
 * descriptors) the answer stays in memory, as a short one does.  Bytes in files
 * are counted as long as anybody has the file; that count outlives the server:
 * libevent frees what a connection had a turn later.
 *
 * Over TLS there is no sendfile(2): a file goes out in pieces, each read when
 * the one before it has been taken.  What is written behind a file waits here,
 * and so does the end of the answer.
 *
 * That end is delayed in any case: libevent 2.1's TLS tells that all was
 * written by a callback later in the same turn.  If the last bytes were given
 * to it in between, evhttp would take the callback for theirs and close the
 * connection, or stop writing, before they are sent.  So evhttp is told of the
 * end in a turn of its own: when nothing was added since the turn before and
 * bytes still wait, or when nothing waits for a whole turn.
 */
#include "supervisor/http/http_int.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/xmalloc.h"

#define WAITING_FAIR (16u << 10) /* of an answer when memory is short */
#define WAITING_SMALL (1u << 10) /* an error is always sent */
#define WAITING_NO_FILE 4 /* times waiting_memory, where there are no files */
#define PIECE_BYTES 65536
#define PIECE_SHORT 8192 /* when much waits in memory */

static const struct timeval at_once = {0, 0};

/* The server has a reference, and each file. */
struct http_waiting {
	unsigned int refs;
	uint64_t files; /* bytes */
};

/* Bytes of a file in a connection's output, as offsets in all it sends. */
struct http_part {
	uint64_t begin, end;
	STAILQ_ENTRY(http_part) link;
};

struct http_large {
	struct http_waiting *waiting;
	unsigned int refs;
	int fd;
	uint64_t n;
};

struct out_file {
	int fd;
	uint64_t offset, left;
	struct http_large *large; /* whose fd it is, a reference; or NULL */
};

struct http_pump_item {
	TAILQ_ENTRY(http_pump_item) link;
	struct out_file file; /* or, without a descriptor: */
	struct evbuffer *bytes;
};

static void pump_writable_cb(struct evhttp_connection *evcon, void *arg);

/* ---- how much waits */

static void
waiting_unref(struct http_waiting *w)
{
	if (--w->refs == 0)
		free(w);
}

void
http_out_open(struct http_server *s)
{
	const char *dir = s->limits.large_dir;

	s->large_fd =
	    dir == NULL ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->waiting = xcalloc(1, sizeof(*s->waiting));
	s->waiting->refs = 1;
}

void
http_out_close(struct http_server *s)
{
	if (s->large_fd != -1)
		(void)close(s->large_fd);
	waiting_unref(s->waiting);
}

uint64_t
http_out_in_files(const struct http_server *s)
{
	return s->waiting->files;
}

bool
http_out_is_much(const struct http_server *s)
{
	return s->memory_bytes >= s->limits.waiting_memory;
}

enum http_room
http_out_room(const struct http_server *s, size_t n)
{
	const struct http_limits *l = &s->limits;
	bool much = s->memory_bytes + n > l->waiting_memory;

	if (n > HTTP_MEMORY_MAX || (much && n > WAITING_FAIR)) {
		if (s->large_fd != -1)
			return s->waiting->files + n > l->waiting_files ?
			    HTTP_ROOM_NONE :
			    HTTP_ROOM_FILE;
		return s->memory_bytes + n >
			WAITING_NO_FILE * (uint64_t)l->waiting_memory ?
		    HTTP_ROOM_NONE :
		    HTTP_ROOM_MEMORY;
	}
	return n > WAITING_SMALL &&
		s->memory_bytes + n > 2 * (uint64_t)l->waiting_memory ?
	    HTTP_ROOM_NONE :
	    HTTP_ROOM_MEMORY;
}

/* n bytes of a file are about to be added to its output. */
static void
add_part(struct http_conn *c, uint64_t n)
{
	struct http_part *p = xcalloc(1, sizeof(*p));

	p->begin =
	    c->drained + evbuffer_get_length(bufferevent_get_output(c->bev));
	p->end = p->begin + n;
	STAILQ_INSERT_TAIL(&c->parts, p, link);
}

/* Bytes of files still to be sent; parts that were sent are freed. */
static uint64_t
file_bytes(struct http_conn *c, size_t length)
{
	struct http_part *p;
	uint64_t sum = 0;

	while ((p = STAILQ_FIRST(&c->parts)) != NULL &&
	    (length == 0 || p->end <= c->drained)) {
		STAILQ_REMOVE_HEAD(&c->parts, link);
		free(p);
	}
	STAILQ_FOREACH (p, &c->parts, link)
		sum += p->end - (p->begin > c->drained ? p->begin : c->drained);
	return sum;
}

void
http_out_count(struct http_conn *c, size_t length)
{
	struct http_server *s = c->server;
	uint64_t files = file_bytes(c, length);
	uint64_t now = length > files ? length - files : 0;

	s->memory_bytes += now;
	s->memory_bytes -= c->memory_bytes;
	c->memory_bytes = now;
}

/* ---- a file for answers */

struct http_large *
http_large_new(const struct http_server *s, int fd, uint64_t n)
{
	struct http_large *l = xcalloc(1, sizeof(*l));

	l->waiting = s->waiting;
	l->waiting->refs++;
	l->waiting->files += n;
	l->refs = 1;
	l->fd = fd;
	l->n = n;
	return l;
}

void
http_large_unref(struct http_large *l)
{
	if (l == NULL || --l->refs > 0)
		return;
	l->waiting->files -= l->n;
	waiting_unref(l->waiting);
	(void)close(l->fd);
	free(l);
}

uint64_t
http_large_size(const struct http_large *l)
{
	return l->n;
}

int
http_large_file(const struct http_server *s)
{
	return s->large_fd == -1 ?
	    -1 :
	    openat(s->large_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int
write_pieces(int fd, const struct evbuffer_iovec *pieces, int n)
{
	struct err e;

	for (int i = 0; i < n; i++)
		if (fd_write_all(
			fd, pieces[i].iov_base, pieces[i].iov_len, &e) != 0)
			return e.code;
	return 0;
}

struct http_large *
http_large_write(
    const struct http_server *s, const struct evbuffer_iovec *pieces, int n)
{
	int fd = http_large_file(s);
	uint64_t bytes = 0;

	if (fd == -1)
		return NULL;
	if (write_pieces(fd, pieces, n) != 0) {
		(void)close(fd);
		return NULL;
	}
	for (int i = 0; i < n; i++)
		bytes += pieces[i].iov_len;
	return http_large_new(s, fd, bytes);
}

/* ---- files into the connection's output */

static void
file_done(const struct out_file *f)
{
	if (f->large != NULL)
		http_large_unref(f->large);
	else if (f->fd != -1)
		(void)close(f->fd);
}

static void
sent_cb(const struct evbuffer_file_segment *seg, int flags, void *arg)
{
	(void)seg;
	(void)flags;
	http_large_unref(arg);
}

/* In the connection's own buffer: from evhttp's it would be mapped. */
static void
send_segment(struct http_conn *c, const struct out_file *f)
{
	struct evbuffer_file_segment *seg = evbuffer_file_segment_new(f->fd,
	    (ev_off_t)f->offset, (ev_off_t)f->left,
	    f->large == NULL ? EVBUF_FS_CLOSE_ON_FREE : 0);
	int rc = -1;

	if (seg == NULL) {
		file_done(f);
	} else {
		if (f->large != NULL)
			evbuffer_file_segment_add_cleanup_cb(
			    seg, sent_cb, f->large);
		add_part(c, f->left);
		rc = evbuffer_add_file_segment(
		    bufferevent_get_output(c->bev), seg, 0, (ev_off_t)f->left);
		evbuffer_file_segment_free(seg);
	}
	if (rc != 0)
		http_refuse_later(c, -1); /* shorter than it says */
}

/* ---- over TLS, and streams: one thing after the other */

static void
item_free(struct http_conn *c, struct http_pump_item *i)
{
	TAILQ_REMOVE(&c->pump, i, link);
	c->pump_bytes -= i->file.left;
	file_done(&i->file);
	if (i->bytes != NULL)
		evbuffer_free(i->bytes);
	free(i);
}

static struct http_pump_item *
item_new(struct http_conn *c, const struct out_file *file)
{
	struct http_pump_item *i = xcalloc(1, sizeof(*i));

	i->file = *file;
	c->pump_bytes += file->left;
	TAILQ_INSERT_TAIL(&c->pump, i, link);
	return i;
}

/* The next bytes of a file; -1: it is shorter than it was, or the disk fails.
 */
static int
item_read(struct http_conn *c, struct out_file *i, struct evbuffer *out)
{
	size_t want = http_out_is_much(c->server) ? PIECE_SHORT : PIECE_BYTES;
	struct evbuffer_iovec piece;
	struct err e;

	if (want > i->left)
		want = (size_t)i->left;
	if (evbuffer_reserve_space(out, (ev_ssize_t)want, &piece, 1) != 1)
		return -1;
	piece.iov_len = want;
	if (fd_pread_all(i->fd, piece.iov_base, want, i->offset, &e) !=
		(ssize_t)want ||
	    evbuffer_commit_space(out, &piece, 1) != 0)
		return -1;
	i->offset += want;
	i->left -= want;
	c->pump_bytes -= want;
	return 0;
}

static void
pump_send(struct http_conn *c)
{
	struct http_pump_item *i = TAILQ_FIRST(&c->pump);
	struct evbuffer *piece = evbuffer_new();
	bool done;

	if (i->bytes != NULL) {
		(void)evbuffer_add_buffer(piece, i->bytes);
		done = true;
	} else if (item_read(c, &i->file, piece) != 0) {
		evbuffer_free(piece);
		http_refuse_later(c, -1); /* an answer with a hole is none */
		return;
	} else {
		done = i->file.left == 0;
	}
	if (done)
		item_free(c, i);
	evhttp_send_reply_chunk_with_cb(
	    c->pump_req, piece, pump_writable_cb, c);
	evbuffer_free(piece);
}

static void
pump_arm_end(struct http_conn *c)
{
	c->pump_was_empty = false;
	(void)evtimer_add(&c->pump_timer, &at_once);
}

static void
pump_end_cb(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *c = arg;
	struct evhttp_request *req = c->pump_req;
	bool empty = evbuffer_get_length(bufferevent_get_output(c->bev)) == 0;

	(void)fd;
	(void)what;
	if (empty && !c->pump_was_empty) {
		c->pump_was_empty = true;
		(void)evtimer_add(&c->pump_timer, &at_once);
		return;
	}
	c->pump_req = NULL;
	c->pump_ends = false;
	evhttp_send_reply_end(req);
}

static void
pump_writable_cb(struct evhttp_connection *evcon, void *arg)
{
	struct http_conn *c = arg;

	(void)evcon;
	if (c->pump_req == NULL)
		return;
	if (!TAILQ_EMPTY(&c->pump)) {
		pump_send(c);
		if (TAILQ_EMPTY(&c->pump) && c->pump_ends)
			pump_arm_end(c);
	} else if (c->x != NULL && c->x->on_writable != NULL) {
		c->x->on_writable(c->x->arg);
	}
}

void
http_out_init(struct http_conn *c)
{
	STAILQ_INIT(&c->parts);
	TAILQ_INIT(&c->pump);
	(void)evtimer_assign(&c->pump_timer, c->server->base, pump_end_cb, c);
}

static void
send_file(struct http_conn *c, struct evhttp_request *req,
    const struct out_file *file)
{
	bool idle = TAILQ_EMPTY(&c->pump);

	if (c->ssl == NULL) {
		send_segment(c, file);
		return;
	}
	(void)item_new(c, file);
	c->pump_req = req;
	if (idle)
		pump_send(c);
}

void
http_out_large(
    struct http_conn *c, struct evhttp_request *req, struct http_large *l)
{
	l->refs++;
	send_file(c, req, &(struct out_file){l->fd, 0, l->n, l});
}

void
http_out_file(struct http_conn *c, struct evhttp_request *req, int fd,
    uint64_t offset, uint64_t n)
{
	send_file(c, req, &(struct out_file){fd, offset, n, NULL});
}

void
http_out_bytes(
    struct http_conn *c, struct evhttp_request *req, struct evbuffer *data)
{
	const struct out_file none = {
	    .fd = -1, .left = evbuffer_get_length(data)};
	struct http_pump_item *i;

	c->pump_req = req;
	if (TAILQ_EMPTY(&c->pump)) {
		evhttp_send_reply_chunk_with_cb(req, data, pump_writable_cb, c);
		return;
	}
	i = item_new(c, &none);
	i->bytes = evbuffer_new();
	(void)evbuffer_add_buffer(i->bytes, data);
}

void
http_out_end(struct http_conn *c, struct evhttp_request *req)
{
	if (c->ssl == NULL) {
		c->pump_req = NULL;
		evhttp_send_reply_end(req);
		return;
	}
	c->pump_req = req;
	c->pump_ends = true;
	if (TAILQ_EMPTY(&c->pump))
		pump_arm_end(c);
}

/* evhttp frees the request, unless it handed it out. */
void
http_out_clear(struct http_conn *c)
{
	struct http_pump_item *i;

	(void)event_del(&c->pump_timer);
	while ((i = TAILQ_FIRST(&c->pump)) != NULL)
		item_free(c, i);
	if (c->pump_ends && c->pump_req != NULL &&
	    evhttp_request_get_connection(c->pump_req) == NULL)
		evhttp_request_free(c->pump_req);
	c->pump_req = NULL;
	c->pump_ends = false;
}
