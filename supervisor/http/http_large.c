/*
 * http_large.c - answers too large to wait in memory for their reader
 *
 * They go into a file without a name and from there out by sendfile(2): a slow
 * client then costs a descriptor and an offset.  Nothing is synced, and
 * nothing is left behind.  Where there is no file to be had (a full disk, too
 * few descriptors) the answer stays in memory, as a short one does.
 */
#include "supervisor/http/http_int.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"

void
http_large_open(struct http_server *s)
{
	const char *dir = s->limits.large_dir;

	s->large_fd =
	    dir == NULL ? -1 : open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void
http_large_close(struct http_server *s)
{
	if (s->large_fd != -1)
		(void)close(s->large_fd);
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

int
http_large_file(
    const struct http_server *s, const struct evbuffer_iovec *pieces, int n)
{
	int fd;

	if (s->large_fd == -1)
		return -1;
	fd = openat(s->large_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd != -1 && write_pieces(fd, pieces, n) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void
http_large_send(struct http_conn *c, int fd, uint64_t offset, uint64_t n)
{
	/* Into the connection's own buffer: there it goes by sendfile(2), in
	 * evhttp's it would be mapped. */
	if (evbuffer_add_file(bufferevent_get_output(c->bev), fd,
		(ev_off_t)offset, (ev_off_t)n) == 0)
		return;
	(void)close(fd);
	http_conn_refuse_later(c, -1); /* shorter than it says */
}
