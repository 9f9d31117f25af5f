/*
 * http_large.c - answers too large to wait in memory for their reader
 *
 * They go into a file without a name and from there out by sendfile(2): a slow
 * client then costs a descriptor and an offset.  Nothing is synced, and
 * nothing is left behind.  Several answers may be one file.  Where there is no
 * file to be had (a full disk, too few descriptors) the answer stays in
 * memory, as a short one does.
 */
#include "supervisor/http/http_int.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/xmalloc.h"

struct http_large {
	struct http_waiting *waiting;
	unsigned int refs;
	int fd;
	uint64_t n;
};

void
http_large_open(struct http_server *s)
{
	const char *dir = s->limits.large_dir;

	s->large_fd =
	    dir == NULL ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->waiting = http_waiting_new();
}

void
http_large_close(struct http_server *s)
{
	if (s->large_fd != -1)
		(void)close(s->large_fd);
	http_waiting_unref(s->waiting);
}

/* ---- a file */

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
	http_waiting_unref(l->waiting);
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

/* ---- sending */

static void
sent_cb(const struct evbuffer_file_segment *seg, int flags, void *arg)
{
	(void)seg;
	(void)flags;
	http_large_unref(arg);
}

static void
release_large(void *arg)
{
	http_large_unref(arg);
}

/* Into the connection's own buffer: there it goes by sendfile(2), in evhttp's
 * it would be mapped.  0, or -1: seg is freed all the same. */
static int
send_segment(struct http_conn *c, struct evbuffer_file_segment *seg, uint64_t n)
{
	int rc;

	if (seg == NULL)
		return -1;
	http_waiting_add_file(c, n);
	rc = evbuffer_add_file_segment(
	    bufferevent_get_output(c->bev), seg, 0, (ev_off_t)n);
	evbuffer_file_segment_free(seg);
	return rc;
}

void
http_large_send(
    struct http_conn *c, struct evhttp_request *req, struct http_large *l)
{
	struct evbuffer_file_segment *seg;

	if (c->ssl != NULL) {
		l->refs++;
		http_pump_add(c, req,
		    &(struct http_pump_file){.fd = l->fd,
			.left = l->n,
			.release = release_large,
			.arg = l});
		return;
	}
	seg = evbuffer_file_segment_new(l->fd, 0, (ev_off_t)l->n, 0);
	if (seg != NULL) {
		l->refs++;
		evbuffer_file_segment_add_cleanup_cb(seg, sent_cb, l);
	}
	if (send_segment(c, seg, l->n) != 0)
		http_conn_refuse_later(c, -1); /* shorter than it says */
}

void
http_large_send_file(struct http_conn *c, struct evhttp_request *req, int fd,
    uint64_t offset, uint64_t n)
{
	struct evbuffer_file_segment *seg;

	if (c->ssl != NULL) {
		http_pump_add(c, req,
		    &(struct http_pump_file){
			.fd = fd, .offset = offset, .left = n});
		return;
	}
	seg = evbuffer_file_segment_new(
	    fd, (ev_off_t)offset, (ev_off_t)n, EVBUF_FS_CLOSE_ON_FREE);
	if (seg == NULL)
		(void)close(fd);
	if (send_segment(c, seg, n) != 0)
		http_conn_refuse_later(c, -1);
}
