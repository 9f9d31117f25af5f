#include "images/agent/files.h"

#include <errno.h>

#include "common/msg/frame_gen.h"
#include "common/xmalloc.h"
#include "images/agent/resolve.h"
#include "images/agent/walk.h"

#define DATA_HEAD_BYTES 64 /* more than a FILE_DATA has before its bytes */
#define GOES_ON (-1)

struct files_request {
	uint32_t id;
	bool active;
	struct walk *walk; /* NULL: a read */
	int fd;
	uint64_t first; /* offset it began at */
	uint64_t end;   /* offset it may not pass */
	uint64_t sent;
	uint64_t acked;
	uint32_t window;
	TAILQ_ENTRY(files_request) by_turn;
};

void
files_init(struct files *f, struct uplink *uplink)
{
	memset(f, 0, sizeof(*f));
	f->uplink = uplink;
	TAILQ_INIT(&f->requests);
	taken_init(&f->taken);
}

static struct files_request *
request_find(const struct files *f, uint32_t id)
{
	struct files_request *r;

	TAILQ_FOREACH (r, &f->requests, by_turn)
		if (r->id == id)
			return r;
	return NULL;
}

static void
request_free(struct files *f, struct files_request *r)
{
	TAILQ_REMOVE(&f->requests, r, by_turn);
	if (r->active)
		f->nactive--;
	else
		f->nkept--;
	walk_free(r->walk);
	if (r->fd != -1)
		(void)close(r->fd);
	free(r);
}

void
files_on_close(struct files *f)
{
	struct files_request *r;

	while ((r = TAILQ_FIRST(&f->requests)) != NULL)
		request_free(f, r);
}

static void
send_end(struct files *f, uint32_t id, int error, uint64_t size)
{
	size_t at;
	struct buf *b = uplink_begin(f->uplink, FRAME_FILE_END, &at);

	wire_put_u32(b, id);
	wire_put_i32(b, error);
	wire_put_u64(b, size);
	uplink_end(f->uplink, at);
	uplink_urgent(f->uplink);
}

static void
drop_oldest_walk(struct files *f)
{
	struct files_request *r;

	TAILQ_FOREACH (r, &f->requests, by_turn)
		if (!r->active)
			break;
	if (r != NULL)
		request_free(f, r);
}

/* A walk stays, idle, for WALK_TAKEN. */
static void
request_end(struct files *f, struct files_request *r, int error)
{
	send_end(f, r->id, error,
	    r->walk != NULL ? r->walk->sent : r->sent - r->first);
	if (r->walk == NULL) {
		request_free(f, r);
		return;
	}
	walk_close(r->walk);
	if (f->nkept >= FILES_WALKS_KEPT)
		drop_oldest_walk(f);
	r->active = false;
	f->nactive--;
	f->nkept++;
	TAILQ_REMOVE(&f->requests, r, by_turn);
	TAILQ_INSERT_TAIL(&f->requests, r, by_turn);
}

static size_t
read_allowed(const struct files_request *r)
{
	uint64_t limit = r->acked + r->window;
	uint64_t n;

	if (limit > r->end)
		limit = r->end;
	n = limit > r->sent ? limit - r->sent : 0;
	return n < FILES_READ_BYTES ? (size_t)n : FILES_READ_BYTES;
}

/* GOES_ON, or the errno to end with. */
static int
read_slice(struct files *f, struct files_request *r)
{
	size_t at, want = read_allowed(r);
	struct buf *b;
	uint8_t *p;
	ssize_t n;

	if (r->sent >= r->end)
		return 0;
	if (want == 0)
		return GOES_ON;
	b = uplink_begin(f->uplink, FRAME_FILE_DATA, &at);
	wire_put_u32(b, r->id);
	wire_put_u64(b, r->sent);
	p = buf_reserve(b, want);
	n = p == NULL ? -1 : pread(r->fd, p, want, (off_t)r->sent);
	if (n <= 0) {
		int error = n == -1 ? (p == NULL ? ENOBUFS : errno) : 0;

		uplink_cancel(f->uplink, at);
		return error == EINTR ? GOES_ON : error;
	}
	buf_commit(b, (size_t)n);
	uplink_end(f->uplink, at);
	r->sent += (uint64_t)n;
	return GOES_ON;
}

static bool
can_go_on(const struct files_request *r)
{
	return r->walk != NULL || read_allowed(r) > 0 || r->sent >= r->end;
}

/* One slice; true when r may go on at once. */
static bool
request_work(struct files *f, struct files_request *r)
{
	int rc;

	if (r->walk != NULL)
		rc = walk_slice(r->walk, r->id, f->uplink, &f->taken);
	else
		rc = read_slice(f, r);
	uplink_urgent(f->uplink);
	if (rc == GOES_ON)
		return can_go_on(r);
	request_end(f, r, rc); /* may free r */
	return false;
}

bool
files_work(struct files *f)
{
	uint32_t n = f->nactive + f->nkept;
	bool more = false;

	if (f->nactive == 0 || !uplink_is_up(f->uplink))
		return false;
	for (; n > 0 && uplink_has_room(f->uplink); n--) {
		struct files_request *r = TAILQ_FIRST(&f->requests);

		if (r == NULL)
			break;
		TAILQ_REMOVE(&f->requests, r, by_turn);
		TAILQ_INSERT_TAIL(&f->requests, r, by_turn);
		if (r->active && can_go_on(r))
			more = request_work(f, r) || more;
	}
	return more || n > 0;
}

/* May a new request have this id?  *full: not now, there are too many. */
static int
request_check(struct files *f, uint32_t id, bool *full, struct err *e)
{
	struct files_request *r = request_find(f, id);

	*full = f->nactive >= FILES_ACTIVE_MAX;
	if (r == NULL)
		return 0;
	if (r->active)
		return err_set(e, ERR_PROTO, "request %u is in use", id);
	request_free(f, r);
	return 0;
}

static struct files_request *
request_add(struct files *f, uint32_t id)
{
	struct files_request *r = xcalloc(1, sizeof(*r));

	r->id = id;
	r->fd = -1;
	r->active = true;
	f->nactive++;
	TAILQ_INSERT_TAIL(&f->requests, r, by_turn);
	return r;
}

int
files_on_walk(struct files *f, struct wire_in *in, struct err *e)
{
	AUTO(auto_free) char *root = NULL;
	uint32_t id = wire_get_u32(in);
	uint8_t changed_only = wire_get_u8(in);
	uint32_t max = wire_get_u32(in);
	struct walk *w;
	bool full;

	root = wire_get_str(in, FRAME_PATH_MAX);
	if (wire_get_end(in, e) != 0 || request_check(f, id, &full, e) != 0)
		return ERR_PROTO;
	if (changed_only > 1)
		return err_set(
		    e, ERR_PROTO, "walk: changed_only %u", changed_only);
	if (full) {
		send_end(f, id, EAGAIN, 0);
		return 0;
	}
	w = walk_new(root, changed_only != 0, max);
	root = NULL;
	if (w == NULL)
		send_end(f, id, errno, 0);
	else
		request_add(f, id)->walk = w;
	return 0;
}

/* A path as bytes from the worker; NULL for one with a NUL or too long. */
static char *
get_path(struct wire_in *in)
{
	size_t n;
	const uint8_t *p = wire_get_bytes(in, FRAME_PATH_MAX, &n);

	if (p == NULL || memchr(p, '\0', n) != NULL)
		return NULL;
	return xstrndup((const char *)p, n);
}

int
files_on_walk_taken(struct files *f, struct wire_in *in, struct err *e)
{
	AUTO(auto_free) char *path = NULL;
	uint32_t id = wire_get_u32(in);
	const struct walk_file *file;
	struct files_request *r;

	path = get_path(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	r = request_find(f, id);
	if (path == NULL || r == NULL || r->walk == NULL)
		return 0; /* no walk of ours: it is copied once more */
	file = walk_find(r->walk, path);
	if (file != NULL)
		taken_put(&f->taken, r->walk->root, path, &file->mark);
	return 0;
}

/* The file to read, or -1 with errno. */
static int
open_below(const char *root, const char *path)
{
	AUTO(auto_close) int dir = -1;

	if (path == NULL) {
		errno = EINVAL;
		return -1;
	}
	dir = resolve_root(root);
	if (dir == -1)
		return -1;
	return resolve_regular(dir, path);
}

int
files_on_read(struct files *f, struct wire_in *in, struct err *e)
{
	AUTO(auto_free) char *root = NULL;
	AUTO(auto_free) char *path = NULL;
	uint32_t id = wire_get_u32(in);
	uint64_t offset = wire_get_u64(in);
	uint64_t max = wire_get_u64(in);
	uint32_t window = wire_get_u32(in);
	struct files_request *r;
	bool full;
	int fd;

	root = wire_get_str(in, FRAME_PATH_MAX);
	path = get_path(in);
	if (wire_get_end(in, e) != 0 || request_check(f, id, &full, e) != 0)
		return ERR_PROTO;
	if (offset > INT64_MAX)
		return err_set(
		    e, ERR_PROTO, "read at %llu", (unsigned long long)offset);
	if (full) {
		send_end(f, id, EAGAIN, 0);
		return 0;
	}
	fd = open_below(root, path);
	if (fd == -1) {
		send_end(f, id, errno, 0);
		return 0;
	}
	r = request_add(f, id);
	r->fd = fd;
	r->first = r->sent = r->acked = offset;
	r->end = max < INT64_MAX - offset ? offset + max : INT64_MAX;
	r->window = window;
	return 0;
}

int
files_on_read_ack(struct files *f, struct wire_in *in, struct err *e)
{
	uint32_t id = wire_get_u32(in);
	uint64_t offset = wire_get_u64(in);
	struct files_request *r;

	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	r = request_find(f, id);
	if (r == NULL || r->walk != NULL)
		return 0; /* crossed with its end */
	if (offset > r->sent)
		return err_set(e, ERR_PROTO,
		    "acknowledged byte %llu of a file, sent %llu",
		    (unsigned long long)offset, (unsigned long long)r->sent);
	if (offset > r->acked)
		r->acked = offset;
	return 0;
}

int
files_on_abort(struct files *f, struct wire_in *in, struct err *e)
{
	uint32_t id = wire_get_u32(in);
	struct files_request *r;

	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	r = request_find(f, id);
	if (r == NULL)
		return 0;
	if (r->active)
		request_end(f, r, ECANCELED);
	else
		request_free(f, r);
	return 0;
}
