/*
 * pod_exec_client KUBECONFIG POD CONTAINER COMMAND... - a program in a Pod
 *
 * Its input is the program's and the program's output is its own.  When its
 * input ends it hangs up.  The last line of its standard error is JSON:
 * {"rc", "why"}, rc being "" for a program whose streams were joined; and why
 * it is over.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/pod_exec.h"

static struct event_base *base;
static struct cluster *cluster;
static struct pod_execs execs;
static struct event *on_input, *on_output, *on_room;
static struct buf pending; /* of our input */
static int program = -1;

static void
say(const char *rc, const char *why)
{
	json_t *what = json_pack("{s:s, s:s}", "rc", rc, "why", why);
	AUTO(auto_free) char *text = js_dump(what);

	json_decref(what);
	(void)fprintf(stderr, "%s\n", text);
}

static void
must(bool is_so, const char *what)
{
	if (is_so)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void
write_all(const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t r = write(STDOUT_FILENO, p, n);

		must(r > 0, "standard output");
		p += r;
		n -= (size_t)r;
	}
}

static void
output_cb(evutil_socket_t fd, short what, void *arg)
{
	uint8_t bytes[65536];
	ssize_t n;

	(void)fd;
	(void)what;
	(void)arg;
	while ((n = recv(program, bytes, sizeof(bytes), 0)) > 0)
		write_all(bytes, (size_t)n);
	if (n == 0 || errno != EAGAIN)
		(void)event_del(on_output);
}

/* The next input is read when this has gone. */
static void
room_cb(evutil_socket_t fd, short what, void *arg)
{
	ssize_t n =
	    send(program, buf_data(&pending), buf_len(&pending), MSG_NOSIGNAL);

	(void)fd;
	(void)what;
	(void)arg;
	if (n > 0)
		buf_consume(&pending, (size_t)n);
	else if (errno != EAGAIN)
		return; /* it has ended, or will soon be told to have */
	(void)event_add(buf_len(&pending) > 0 ? on_room : on_input, NULL);
}

static void
input_cb(evutil_socket_t fd, short what, void *arg)
{
	uint8_t bytes[65536];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	(void)fd;
	(void)what;
	(void)arg;
	must(n >= 0, "standard input");
	if (n == 0) {
		(void)event_del(on_output);
		(void)close(program);
		program = -1;
		return;
	}
	must(buf_append(&pending, bytes, (size_t)n) == 0, "memory");
	(void)event_add(on_room, NULL);
}

static void
joined_cb(int rc, int fd, const struct err *why, void *arg)
{
	(void)arg;
	if (rc != 0) {
		say(err_name(rc), why->msg);
		return;
	}
	program = fd;
	on_input = event_new(base, STDIN_FILENO, EV_READ, input_cb, NULL);
	on_output = event_new(base, fd, EV_READ | EV_PERSIST, output_cb, NULL);
	on_room = event_new(base, fd, EV_WRITE, room_cb, NULL);
	(void)event_add(on_input, NULL);
	(void)event_add(on_output, NULL);
}

static void
ended_cb(const char *why, void *arg)
{
	(void)arg;
	if (program != -1)
		output_cb(program, EV_READ, NULL); /* what is still there */
	event_free(on_input);
	event_free(on_output);
	event_free(on_room);
	say("", why);
}

int
main(int argc, char **argv)
{
	static const struct backend_exec_user user = {joined_cb, ended_cb};
	struct cluster_setup setup = {.kubeconfig = argc > 1 ? argv[1] : NULL};
	struct err e;

	if (argc < 5) {
		(void)fprintf(stderr,
		    "usage: pod_exec_client KUBECONFIG POD CONTAINER "
		    "COMMAND...\n");
		return 2;
	}
	base = event_base_new();
	if (cluster_open(base, &setup, &cluster, &e) != 0) {
		(void)fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	pod_execs_init(
	    &execs, base, cluster, cluster_namespace(cluster), argv[3]);
	(void)pod_exec_start(&execs, argv[2],
	    (const char *const *)(uintptr_t)(argv + 4), &user, NULL);
	while (!TAILQ_EMPTY(&execs.all))
		(void)event_base_loop(base, EVLOOP_ONCE);
	cluster_free(cluster);
	buf_clear(&pending);
	if (program != -1)
		(void)close(program);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	return 0;
}
