/*
 * exec_stream SOCKET CONTAINER - cat in a container, over a stream
 *
 * Has the engine at SOCKET execute cat, asks it to switch that connection to
 * a raw stream, and copies its own input to it and what comes back to its
 * output, until as much has come as was sent.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/xmalloc.h"
#include "worker/docker/docker.h"
#include "worker/http/api.h"

#define ASK_MS 30000
#define HEAD 8 /* of each piece: which stream it is of, and its length */

static struct event_base *base;
static char exec_id[100];
static struct api_call *stream;

static void
fail(const char *what, const struct api_answer *a)
{
	(void)fprintf(stderr, "%s: %ld %s\n", what, a->status,
	    a->rc != 0 ? a->why->msg : a->body);
	exit(1);
}

static void
created_cb(const struct api_answer *a, void *arg)
{
	json_t *o = a->rc == 0 ? json_loads(a->body, 0, NULL) : NULL;
	const char *id = json_string_value(json_object_get(o, "Id"));

	(void)arg;
	if (a->status != 201 || id == NULL)
		fail("create", a);
	(void)snprintf(exec_id, sizeof(exec_id), "%s", id);
	json_decref(o);
	(void)event_base_loopbreak(base);
}

static void
started_cb(const struct api_answer *a, void *arg)
{
	(void)arg;
	if (a->stream == NULL)
		fail("start", a);
	stream = a->stream;
	(void)event_base_loopbreak(base);
}

static void
ask(struct api *h, const char *path, const char *body, const char *upgrade,
    void (*cb)(const struct api_answer *, void *))
{
	(void)api_start(h,
	    &(struct api_ask){.method = "POST",
		.path = path,
		.body = body,
		.body_len = strlen(body),
		.upgrade = upgrade,
		.timeout_ms = ASK_MS,
		.on_done = cb});
	(void)event_base_dispatch(base);
}

/* n bytes to p. */
static void
receive(void *p, size_t n)
{
	struct pollfd fd = {.fd = api_fd(stream), .events = POLLIN};

	for (size_t at = 0; at < n;) {
		ssize_t r = api_recv(stream, (char *)p + at, n - at);

		if (r > 0)
			at += (size_t)r;
		else if (r == 0 || errno != EAGAIN || poll(&fd, 1, ASK_MS) != 1)
			exit(2);
	}
}

/* Sends what it reads, and prints as much of what comes back. */
static void
copy(void)
{
	static char text[1 << 16], back[1 << 16];
	uint8_t head[HEAD];
	size_t n, sent = 0, got = 0, most;

	n = fread(text, 1, sizeof(text), stdin);
	while (got < n) {
		ssize_t r =
		    sent < n ? api_send(stream, text + sent, n - sent) : 0;

		if (r == -1 && errno != EAGAIN)
			exit(3);
		sent += r > 0 ? (size_t)r : 0;
		receive(head, sizeof(head));
		most = (size_t)head[4] << 24 | (size_t)head[5] << 16 |
		    (size_t)head[6] << 8 | head[7];
		if (most > sizeof(back))
			exit(4);
		receive(back, most);
		got += fwrite(back, 1, most, stdout);
	}
}

int
main(int argc, char **argv)
{
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *start = NULL;
	struct api *h;

	if (argc != 3)
		return 64;
	base = event_base_new();
	h = api_new(base, &docker_server);
	api_set_socket(h, argv[1]);
	path = xasprintf("/containers/%s/exec", argv[2]);
	ask(h, path,
	    "{\"AttachStdin\":true,\"AttachStdout\":true,\"Cmd\":[\"cat\"]}",
	    NULL, created_cb);
	start = xasprintf("/exec/%s/start", exec_id);
	ask(h, start, "{\"Detach\":false,\"Tty\":false}", "tcp", started_cb);
	copy();
	api_cancel(stream);
	api_free(h);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	return fflush(stdout) == 0 ? 0 : 1;
}
