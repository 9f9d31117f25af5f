#include "images/agent/keeper_job.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/msg/wire.h"

#define KEEPER_FDS_MAX 3 /* stdout, stderr, the file */

union control {
	char space[CMSG_SPACE(sizeof(int) * KEEPER_FDS_MAX)];
	struct cmsghdr align;
};

/* Sending. */

static int
packet_send(int socket, const struct buf *b, const int *fds, size_t nfds)
{
	struct iovec iov = {buf_data(b), buf_len(b)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	union control control;

	if (nfds > 0) {
		struct cmsghdr *cm = &control.align; /* the first */

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(cm), fds, sizeof(int) * nfds);
	}
	return sendmsg(socket, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 ? errno :
									 0;
}

/* With its NUL, so that the other side need not copy it. */
static void
put_string(struct buf *b, const char *s)
{
	wire_put_bytes(b, s, strlen(s) + 1);
}

static void
put_strings(struct buf *b, char *const *list)
{
	uint32_t n = 0;

	while (list[n] != NULL)
		n++;
	wire_put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		put_string(b, list[i]);
}

static void
job_encode(struct buf *b, const struct keeper_job *job)
{
	wire_put_u8(b, KEEPER_MSG_JOB);
	wire_put_u32(b, job->order);
	wire_put_u32(b, job->slot);
	wire_put_u8(b, (uint8_t)job->user);
	wire_put_u8(b, job->leave);
	put_string(b, job->program);
	put_string(b, job->search);
	put_string(b, job->cwd);
	put_strings(b, job->argv);
	put_strings(b, job->env);
}

/* The job as a file, and a packet that says so. */
static int
file_send(int socket, const struct buf *job, int *fds, size_t nfds)
{
	AUTO(buf_clear) struct buf b;
	AUTO(auto_close) int file = -1;
	struct err e;

	buf_init(&b, KEEPER_PACKET_MAX);
	file = fd_memfd_sealed("job", buf_data(job), buf_len(job), &e);
	if (file < 0)
		return ENOMEM;
	fds[nfds] = file;
	wire_put_u8(&b, KEEPER_MSG_FILE);
	return packet_send(socket, &b, fds, nfds + 1);
}

int
keeper_job_send(int socket, const struct keeper_job *job)
{
	/* keeps its memory from one job to the next, unless it was large */
	static struct buf b;
	int fds[KEEPER_FDS_MAX] = {job->out, job->err, -1};
	size_t nfds = job->err == -1 ? 1 : 2;
	int error;

	b.max = KEEPER_JOB_MAX;
	job_encode(&b, job);
	error = buf_len(&b) <= KEEPER_PACKET_MAX ?
	    packet_send(socket, &b, fds, nfds) :
	    file_send(socket, &b, fds, nfds);
	buf_consume(&b, buf_len(&b));
	if (b.cap > KEEPER_PACKET_MAX)
		buf_shrink(&b);
	return error;
}

/* Receiving. */

static const char *
get_string(struct wire_in *in)
{
	size_t n;
	const uint8_t *p = wire_get_bytes(in, KEEPER_JOB_MAX, &n);

	if (p == NULL || n == 0 || p[n - 1] != '\0') {
		in->bad = "string";
		return "";
	}
	return (const char *)p;
}

static void
get_strings(struct wire_in *in, char **list, uint32_t max)
{
	uint32_t n = wire_get_u32(in);

	if (n >= max) {
		in->bad = "list";
		n = 0;
	}
	/* exec does not write to them, whatever its prototype says. */
	for (uint32_t i = 0; i < n; i++)
		list[i] = (char *)(uintptr_t)get_string(in);
	list[n] = NULL;
}

static int
job_decode(struct keeper_in *in, struct wire_in *w, struct err *e)
{
	struct keeper_job *job = &in->job;

	job->order = wire_get_u32(w);
	job->slot = wire_get_u32(w);
	job->user = wire_get_u8(w) == RUNSPEC_USER_ROOT ? RUNSPEC_USER_ROOT :
							  RUNSPEC_USER_SANDBOX;
	job->leave = wire_get_u8(w);
	job->program = get_string(w);
	job->search = get_string(w);
	job->cwd = get_string(w);
	get_strings(w, in->argv, ARRAY_LEN(in->argv));
	get_strings(w, in->env, ARRAY_LEN(in->env));
	job->argv = in->argv;
	job->env = in->env;
	return wire_get_end(w, e);
}

/* The descriptors that came along; how many. */
static size_t
take_fds(struct msghdr *mh, int fds[KEEPER_FDS_MAX])
{
	struct cmsghdr *cm = CMSG_FIRSTHDR(mh);
	size_t n;

	if (cm == NULL || cm->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (n > KEEPER_FDS_MAX)
		n = KEEPER_FDS_MAX;
	memcpy(fds, CMSG_DATA(cm), n * sizeof(int));
	return n;
}

/* The packet, or for a large job the file, behind its type. */
static int
open_message(struct keeper_in *in, size_t n, const int *file, struct wire_in *w,
    struct err *e)
{
	size_t size;
	uint8_t type;

	wire_in_init(w, in->packet, n);
	type = wire_get_u8(w);
	if (type == KEEPER_MSG_FILE) {
		if (fd_read_sealed(
			*file, KEEPER_JOB_MAX, &in->file, &size, e) != 0)
			return e->code;
		wire_in_init(w, in->file, size);
		type = wire_get_u8(w);
	}
	if (type != KEEPER_MSG_JOB)
		return err_set(e, ERR_PROTO, "message %u", type);
	return 0;
}

int
keeper_receive(int socket, struct keeper_in *in, struct err *e)
{
	struct iovec iov = {in->packet, sizeof(in->packet)};
	union control control;
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.space,
	    .msg_controllen = sizeof(control.space)};
	int fds[KEEPER_FDS_MAX] = {-1, -1, -1};
	AUTO(auto_close) int file = -1;
	struct wire_in w;
	size_t nfds;
	ssize_t n;

	n = recvmsg(socket, &mh, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return err_set(
		    e, ERR_SYS, "keeper: %s", n == 0 ? "end" : strerror(errno));
	nfds = take_fds(&mh, fds);
	if (in->packet[0] == KEEPER_MSG_FILE && nfds > 0)
		file = fds[--nfds];
	memset(&in->job, 0, sizeof(in->job));
	in->file = NULL;
	in->job.out = nfds > 0 ? fds[0] : -1;
	in->job.err = nfds > 1 ? fds[1] : -1;
	if (open_message(in, (size_t)n, &file, &w, e) != 0)
		return e->code;
	return job_decode(in, &w, e);
}

void
keeper_in_clear(struct keeper_in *in)
{
	if (in->job.out != -1)
		(void)close(in->job.out);
	if (in->job.err != -1)
		(void)close(in->job.err);
	in->job.out = in->job.err = -1;
	free(in->file);
	in->file = NULL;
}
