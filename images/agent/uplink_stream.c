#include "images/agent/uplink_stream.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "images/agent/bridges.h"

#define UPLINK_SNDBUF_BYTES (1 << 20)

static int
unix_open(struct uplink_stream *k, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int size = UPLINK_SNDBUF_BYTES;

	if (strlen(k->address) >= sizeof(sa.sun_path))
		return err_set(e, ERR_INVAL, "%s: longer than %zu bytes",
		    k->address, sizeof(sa.sun_path) - 1);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", k->address);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return err_set(e, ERR_SYS, "socket: %s", strerror(errno));
	/* Less than asked is fine; the peer's reading sets the pace. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) == -1)
		return err_set(
		    e, ERR_SYS, "connect %s: %s", k->address, strerror(errno));
	k->fd = fd;
	fd = -1;
	return 0;
}

static ssize_t
unix_read(struct uplink_stream *k, void *p, size_t n)
{
	return recv(k->fd, p, n, 0);
}

static ssize_t
unix_write(struct uplink_stream *k, const struct iovec *iov, int niov)
{
	struct msghdr m = {0};

	/* sendmsg changes neither the array nor what it points to */
	memcpy(&m.msg_iov, &iov, sizeof(iov));
	m.msg_iovlen = (size_t)niov;
	return sendmsg(k->fd, &m, MSG_NOSIGNAL);
}

static void
unix_close(struct uplink_stream *k)
{
	if (k->fd != -1)
		(void)close(k->fd);
	k->fd = -1;
}

static void
bridge_close(struct uplink_stream *k)
{
	if (k->fd != -1)
		bridges_hang_up(k->fd);
	k->fd = -1;
}

const struct uplink_carrier uplink_unix = {
    unix_open, unix_read, unix_write, unix_close};

/* A Unix socket, too: only its way here is another one. */
const struct uplink_carrier uplink_bridge = {
    NULL, unix_read, unix_write, bridge_close};
