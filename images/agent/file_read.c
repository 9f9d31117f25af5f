/*
 * file_read.c - the channel kind "read": a regular file's bytes
 *
 * From one offset to another, or to where the file ends when it is reached.
 */
#include "images/agent/files.h"

#include <errno.h>

#include "common/xmalloc.h"
#include "images/agent/resolve.h"

#define FILE_READ_SLICE 131072u

struct file_read {
	struct file_job job;
	int fd;
	uint64_t until; /* offset it may not pass */
	struct credit credit;
};

static size_t
read_allowed(const struct file_read *r)
{
	uint64_t n = credit_left(&r->credit);

	if (n > r->until - r->credit.sent)
		n = r->until - r->credit.sent;
	return n < FILE_READ_SLICE ? (size_t)n : FILE_READ_SLICE;
}

static bool
can_go_on(const struct file_job *j)
{
	const struct file_read *r = (const struct file_read *)j;

	return read_allowed(r) > 0 || r->credit.sent == r->until;
}

/* The frame's head, then the bytes straight behind it. */
static int
slice(struct file_job *j)
{
	struct file_read *r = (struct file_read *)j;
	struct buf *b = &j->files->mux->uplink->out;
	struct frame_data m = {
	    .chan = j->chan.number, .offset = r->credit.sent};
	static uint8_t bytes[FILE_READ_SLICE];
	size_t want = read_allowed(r);
	ssize_t n;

	if (want == 0)
		return 0; /* at its end */
	n = pread(r->fd, bytes, want, (off_t)r->credit.sent);
	if (n == -1)
		return errno == EINTR ? FILES_GOES_ON : errno;
	if (n == 0)
		return 0;
	m.bytes.p = bytes;
	m.bytes.n = (size_t)n;
	uplink_put(j->files->mux->uplink, frame_put_data(b, &m));
	r->credit.sent += (uint64_t)n;
	return FILES_GOES_ON;
}

static void
job_free(struct file_job *j)
{
	struct file_read *r = (struct file_read *)j;

	(void)close(r->fd);
	free(r);
}

static const struct file_job_ops job_ops = {can_go_on, slice, job_free};

static int
on_credit(struct chan *c, const struct frame_credit *m, struct err *e)
{
	struct file_read *r = (struct file_read *)files_job_of(c);

	if (m->stream != 0)
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	return credit_grant(&r->credit, m->taken, m->limit, e);
}

static const struct chan_ops chan_ops = {
    .on_credit = on_credit, .on_gone = files_on_gone};

/* The file to read, or -1 with errno. */
static int
open_below(const char *root, const struct span *bytes)
{
	AUTO(auto_free) char *path = files_path(bytes);
	AUTO(auto_close) int dir = -1;

	if (path == NULL)
		return -1;
	dir = resolve_root(root);
	if (dir == -1)
		return -1;
	return resolve_regular(dir, path);
}

int
file_read_on_open(
    struct files *f, const struct frame_open_read *m, struct err *e)
{
	struct file_read *r;
	int fd, rc = files_claim(f, m->chan, e);

	if (rc <= 0)
		return rc;
	fd = open_below(m->root, &m->path);
	if (fd == -1) {
		mux_refuse(f->mux, m->chan, errno, strerror(errno));
		return 0;
	}
	r = xcalloc(1, sizeof(*r));
	r->fd = fd;
	r->until = m->until > m->from ? m->until : m->from;
	credit_open(&r->credit, m->from, m->limit);
	files_add(f, &r->job, m->chan, &chan_ops, &job_ops);
	return 0;
}
