#include "worker/link/peer.h"

#include "common/log.h"
#include "common/xmalloc.h"

/* Room that large frames leave to small ones. */
#define SMALL_BYTES (256u << 10)

enum peer_state {
	PEER_DOWN = 1,
	PEER_NEW = 2,      /* connected, HELLO comes */
	PEER_GREETING = 4, /* its runs come */
	PEER_UP = 8
};

struct peer {
	struct link *link;
	const struct peer_ops *ops;
	void *arg;
	enum peer_state state;
	struct peer_hello hello;
	uint32_t announced; /* runs that HELLO promised */
};

/* ---- greeting */

static void
send_welcome(struct peer *p)
{
	struct buf *out = link_out(p->link);
	size_t at = frame_begin(out, FRAME_WELCOME);

	wire_put_u32(out, FRAME_VERSION);
	frame_end(out, at);
	link_send(p->link);
}

static int
on_hello(struct peer *p, struct wire_in *in, struct err *e)
{
	struct uuid boot;
	uint32_t version = wire_get_u32(in), runs;

	wire_get_uuid(in, &boot);
	runs = wire_get_u32(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (version != FRAME_VERSION)
		return err_set(e, ERR_PROTO, "agent of version %u, want %d",
		    version, FRAME_VERSION);
	if (runs > PEER_RUNS_MAX)
		return err_set(e, ERR_PROTO, "HELLO with %u runs", runs);
	free(p->hello.runs);
	p->hello.runs = NULL;
	p->hello.nruns = 0;
	p->hello.boot = boot;
	p->announced = runs;
	p->state = PEER_GREETING;
	send_welcome(p);
	return 0;
}

static int
on_hello_run(struct peer *p, struct wire_in *in, struct err *e)
{
	struct peer_hello *h = &p->hello;
	struct peer_run r;
	uint8_t ended;

	wire_get_uuid(in, &r.uuid);
	ended = wire_get_u8(in);
	r.from = wire_get_u64(in);
	r.length = wire_get_u64(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (h->nruns >= p->announced || ended > 1 || r.from > r.length ||
	    r.length > INT64_MAX)
		return err_set(e, ERR_PROTO, "a run that cannot be");
	r.ended = ended == 1;
	if (h->nruns % 16 == 0)
		h->runs =
		    xreallocarray(h->runs, h->nruns + 16, sizeof(*h->runs));
	h->runs[h->nruns++] = r;
	return 0;
}

static int
on_hello_end(struct peer *p, struct wire_in *in, struct err *e)
{
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (p->hello.nruns != p->announced)
		return err_set(e, ERR_PROTO, "HELLO of %u runs, %u came",
		    p->announced, p->hello.nruns);
	p->state = PEER_UP;
	return p->ops->on_hello(&p->hello, p->arg, e);
}

/* ---- runs */

static int
on_run_known(struct peer *p, struct wire_in *in, struct err *e)
{
	struct uuid run;
	uint64_t length;
	uint8_t fresh;

	wire_get_uuid(in, &run);
	fresh = wire_get_u8(in);
	length = wire_get_u64(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (fresh > 1 || length > INT64_MAX)
		return err_set(e, ERR_PROTO, "fresh %u", fresh);
	return p->ops->on_run_known(&run, fresh == 1, length, p->arg, e);
}

static int
on_run_refused(struct peer *p, struct wire_in *in, struct err *e)
{
	AUTO(auto_free) char *why = NULL;
	struct uuid run;

	wire_get_uuid(in, &run);
	why = wire_get_str(in, PEER_WHY_MAX);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	return p->ops->on_run_refused(&run, why, p->arg, e);
}

static int
on_run_log(struct peer *p, struct wire_in *in, struct err *e)
{
	struct uuid run;
	uint64_t offset;
	const uint8_t *bytes;
	size_t n;

	wire_get_uuid(in, &run);
	offset = wire_get_u64(in);
	bytes = wire_get_rest(in, &n);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (n == 0 || n > FRAME_LOG_MAX || offset > INT64_MAX - n)
		return err_set(e, ERR_PROTO, "%zu bytes of a log", n);
	return p->ops->on_run_log(&run, offset, bytes, n, p->arg, e);
}

/* ---- files */

static int
on_file_entry(struct peer *p, struct wire_in *in, struct err *e)
{
	struct peer_entry f;
	uint32_t request = wire_get_u32(in);

	f.kind = wire_get_u8(in);
	f.mode = wire_get_u32(in);
	f.size = wire_get_u64(in);
	f.mtime_ns = wire_get_i64(in);
	f.path = wire_get_bytes(in, FRAME_PATH_MAX, &f.path_len);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (f.kind == 0 || strchr("fdl?", f.kind) == NULL)
		return err_set(e, ERR_PROTO, "file of kind %u", f.kind);
	return p->ops->on_file_entry(request, &f, p->arg, e);
}

static int
on_file_data(struct peer *p, struct wire_in *in, struct err *e)
{
	uint32_t request = wire_get_u32(in);
	uint64_t offset = wire_get_u64(in);
	const uint8_t *bytes;
	size_t n;

	bytes = wire_get_rest(in, &n);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (n == 0 || offset > INT64_MAX - n)
		return err_set(e, ERR_PROTO, "%zu bytes of a file", n);
	return p->ops->on_file_data(request, offset, bytes, n, p->arg, e);
}

static int
on_file_end(struct peer *p, struct wire_in *in, struct err *e)
{
	uint32_t request = wire_get_u32(in);
	int32_t error = wire_get_i32(in);
	uint64_t size = wire_get_u64(in);

	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (error < 0 || error > 4095)
		return err_set(e, ERR_PROTO, "errno %d", error);
	return p->ops->on_file_end(request, error, size, p->arg, e);
}

static int
on_pong(struct peer *p, struct wire_in *in, struct err *e)
{
	(void)p;
	(void)wire_get_u64(in);
	return wire_get_end(in, e);
}

/* ---- the stream */

static const struct {
	enum frame_type type;
	unsigned int states;
	int (*on)(struct peer *p, struct wire_in *in, struct err *e);
} peer_routes[] = {
    {FRAME_HELLO, PEER_NEW, on_hello},
    {FRAME_HELLO_RUN, PEER_GREETING, on_hello_run},
    {FRAME_HELLO_END, PEER_GREETING, on_hello_end},
    {FRAME_RUN_KNOWN, PEER_UP, on_run_known},
    {FRAME_RUN_REFUSED, PEER_UP, on_run_refused},
    {FRAME_RUN_LOG, PEER_UP, on_run_log},
    {FRAME_FILE_ENTRY, PEER_UP, on_file_entry},
    {FRAME_FILE_DATA, PEER_UP, on_file_data},
    {FRAME_FILE_END, PEER_UP, on_file_end},
    {FRAME_PONG, PEER_UP, on_pong},
};

static int
frame_cb(struct link *l, struct frame *f, void *arg, struct err *e)
{
	struct peer *p = arg;
	int rc;

	(void)l;
	for (size_t i = 0; i < ARRAY_LEN(peer_routes); i++) {
		if (peer_routes[i].type != f->type ||
		    (peer_routes[i].states & (unsigned int)p->state) == 0)
			continue;
		rc = peer_routes[i].on(p, &f->in, e);
		/* p may be gone now */
		return rc < 0 ? err_wrap(e, "%s", frame_type_name(f->type)) : 0;
	}
	return err_set(
	    e, ERR_PROTO, "%s is not permitted now", frame_type_name(f->type));
}

static void
open_cb(struct link *l, void *arg)
{
	struct peer *p = arg;

	(void)l;
	p->state = PEER_NEW;
}

static void
close_cb(struct link *l, const struct err *why, void *arg)
{
	struct peer *p = arg;

	(void)l;
	p->state = PEER_DOWN;
	p->ops->on_down(why, p->arg);
}

static void
turn_cb(struct link *l, void *arg)
{
	struct peer *p = arg;

	(void)l;
	p->ops->on_turn(p->arg);
}

static void
drain_cb(struct link *l, void *arg)
{
	struct peer *p = arg;

	(void)l;
	p->ops->on_drain(p->arg);
}

static const struct link_user peer_user = {
    open_cb, frame_cb, turn_cb, close_cb, drain_cb};

struct peer *
peer_new(struct link *link, const struct peer_ops *ops, void *arg)
{
	struct peer *p = xcalloc(1, sizeof(*p));

	p->link = link;
	p->ops = ops;
	p->arg = arg;
	p->state = PEER_DOWN;
	link_set_user(link, &peer_user, p);
	return p;
}

void
peer_free(struct peer *p)
{
	if (p == NULL)
		return;
	link_free(p->link);
	free(p->hello.runs);
	free(p);
}

struct link *
peer_link(struct peer *p)
{
	return p->link;
}

bool
peer_is_up(const struct peer *p)
{
	return p != NULL && p->state == PEER_UP;
}

bool
peer_has_room(const struct peer *p, size_t n)
{
	return link_room(p->link) >= n + SMALL_BYTES;
}

/* ---- sending */

/* A place for a frame with n bytes of fields, or NULL. */
static struct buf *
begin(struct peer *p, enum frame_type type, size_t n, size_t *at)
{
	static struct log_limit limit;
	struct buf *b = link_out(p->link);

	if (p->state != PEER_UP)
		return NULL;
	if (buf_room(b) < FRAME_HEADER_BYTES + n) {
		/* The agent reads nothing: its own sandbox waits.  What could
		 * not be said is said anew on the next stream. */
		log_warn_limited(
		    &limit, "link: an agent does not read: closed");
		link_hang_up(p->link);
		return NULL;
	}
	*at = frame_begin(b, type);
	return b;
}

static void
end(struct peer *p, size_t at)
{
	frame_end(link_out(p->link), at);
	link_send(p->link);
}

void
peer_run_start(struct peer *p, const struct uuid *run, uint64_t have,
    const void *spec, size_t n)
{
	size_t at;
	struct buf *b = begin(p, FRAME_RUN_START, n + 32, &at);

	if (b == NULL)
		return;
	wire_put_uuid(b, run);
	wire_put_u64(b, have);
	wire_put_u64(b, FRAME_WINDOW_BYTES);
	if (n > 0 && buf_append(b, spec, n) != 0)
		fatal(70, "peer: no room for a spec");
	end(p, at);
}

void
peer_run_ack(struct peer *p, const struct uuid *run, uint64_t offset)
{
	size_t at;
	struct buf *b = begin(p, FRAME_RUN_ACK, 24, &at);

	if (b == NULL)
		return;
	wire_put_uuid(b, run);
	wire_put_u64(b, offset);
	end(p, at);
}

void
peer_run_cancel(
    struct peer *p, const struct uuid *run, enum runlog_reason reason)
{
	size_t at;
	struct buf *b = begin(p, FRAME_RUN_CANCEL, 17, &at);

	if (b == NULL)
		return;
	wire_put_uuid(b, run);
	wire_put_u8(b, (uint8_t)reason);
	end(p, at);
}

void
peer_run_forget(struct peer *p, const struct uuid *run)
{
	size_t at;
	struct buf *b = begin(p, FRAME_RUN_FORGET, 16, &at);

	if (b == NULL)
		return;
	wire_put_uuid(b, run);
	end(p, at);
}

void
peer_walk(struct peer *p, uint32_t request, const char *root)
{
	size_t at;
	struct buf *b = begin(p, FRAME_WALK, 16 + strlen(root), &at);

	if (b == NULL)
		return;
	wire_put_u32(b, request);
	wire_put_u8(b, 1); /* changed ones only */
	wire_put_u32(b, FRAME_WALK_MAX);
	wire_put_str(b, root);
	end(p, at);
}

void
peer_walk_taken(struct peer *p, uint32_t request, const void *path, size_t n)
{
	size_t at;
	struct buf *b = begin(p, FRAME_WALK_TAKEN, 8 + n, &at);

	if (b == NULL)
		return;
	wire_put_u32(b, request);
	wire_put_bytes(b, path, n);
	end(p, at);
}

void
peer_read(struct peer *p, uint32_t request, uint64_t max, const char *root,
    const void *path, size_t n)
{
	size_t at;
	struct buf *b = begin(p, FRAME_READ, 32 + strlen(root) + n, &at);

	if (b == NULL)
		return;
	wire_put_u32(b, request);
	wire_put_u64(b, 0);
	wire_put_u64(b, max);
	wire_put_u32(b, FRAME_WINDOW_BYTES);
	wire_put_str(b, root);
	wire_put_bytes(b, path, n);
	end(p, at);
}

void
peer_read_ack(struct peer *p, uint32_t request, uint64_t offset)
{
	size_t at;
	struct buf *b = begin(p, FRAME_READ_ACK, 12, &at);

	if (b == NULL)
		return;
	wire_put_u32(b, request);
	wire_put_u64(b, offset);
	end(p, at);
}

void
peer_abort(struct peer *p, uint32_t request)
{
	size_t at;
	struct buf *b = begin(p, FRAME_ABORT, 4, &at);

	if (b == NULL)
		return;
	wire_put_u32(b, request);
	end(p, at);
}
