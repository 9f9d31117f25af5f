/* A program in a Pod, by an API server that the test is. */
struct fixture;
#define TEST_STATE struct fixture *f

#include <openssl/evp.h>

#include "tests/unit/worker/tls_ground.h"
#include "tests/unit/worker/websocket_frames.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/pod_exec.h"

#define V5 "v5.channel.k8s.io"
#define EXIT_7                                                                 \
	"{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command "       \
	"terminated with exit code 7\",\"reason\":\"NonZeroExitCode\","        \
	"\"details\":{\"causes\":[{\"reason\":\"ExitCode\","                   \
	"\"message\":\"7\"}]}}"

struct fixture {
	struct event_base *base;
	struct fake_engine server;
	struct identity identity;
	struct cluster *cluster;
	struct pod_execs execs;
	struct buf heard; /* from the client, after the switch */
	/* What the asker was told. */
	struct backend_exec *exec;
	bool joined, ended;
	int rc, fd;
	char why[ERR_TEXT_MAX];
};

static struct fixture *ground;

static void
joined_cb(int rc, int fd, const struct err *why, void *arg)
{
	struct fixture *f = arg;

	assert_false(f->joined);
	f->joined = true;
	f->rc = rc;
	f->fd = fd;
	if (rc != 0)
		(void)snprintf(f->why, sizeof(f->why), "%s", why->msg);
}

static void
ended_cb(const char *why, void *arg)
{
	struct fixture *f = arg;

	assert_true(f->joined);
	assert_false(f->ended);
	f->ended = true;
	(void)snprintf(f->why, sizeof(f->why), "%s", why);
}

static const struct backend_exec_user user = {joined_cb, ended_cb};

static void
start_program(struct fixture *f)
{
	static const char *const command[] = {
	    "/.mcp-sandboxd/agent", "bridge", "a b&c", NULL};

	f->joined = f->ended = false;
	f->why[0] = '\0';
	f->exec = pod_exec_start(&f->execs, "pod-1", command, &user, f);
	assert_false(f->joined);
}

/* ---- the server */

/* Sec-WebSocket-Accept, for the key of the last request. */
static void
answer_key(const struct fake_engine *s, char out[64])
{
	char key[200] = "";
	unsigned char digest[20];
	const char *at = strstr(s->head, "Sec-WebSocket-Key: ");

	assert_non_null(at);
	assert_int_equal(sscanf(at, "Sec-WebSocket-Key: %100s", key), 1);
	(void)strcat(key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
	assert_int_equal(
	    EVP_Digest(key, strlen(key), digest, NULL, EVP_sha1(), NULL), 1);
	(void)EVP_EncodeBlock((unsigned char *)out, digest, sizeof(digest));
}

static const char *
switch_to(const struct fake_engine *s, const char *protocol)
{
	static char text[400];
	char accept[64];

	answer_key(s, accept);
	(void)snprintf(text, sizeof(text),
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
	    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"
	    "Sec-WebSocket-Protocol: %s\r\n\r\n",
	    accept, protocol);
	return text;
}

static const char *
answer_v5(struct fake_engine *s, const char *method, const char *path)
{
	(void)method;
	(void)path;
	return switch_to(s, V5);
}

static const char *
answer_v4(struct fake_engine *s, const char *method, const char *path)
{
	(void)method;
	(void)path;
	return switch_to(s, "v4.channel.k8s.io");
}

static const char *said;

static const char *
answer_said(struct fake_engine *s, const char *method, const char *path)
{
	(void)s;
	(void)method;
	(void)path;
	return said;
}

static void
heard_cb(struct bufferevent *bev, void *arg)
{
	uint8_t bytes[4096];
	size_t n;

	(void)arg;
	while ((n = bufferevent_read(bev, bytes, sizeof(bytes))) > 0)
		assert_int_equal(buf_append(&ground->heard, bytes, n), 0);
}

static void
gone_cb(struct bufferevent *bev, short what, void *arg)
{
	if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) != 0)
		fake_engine_drop(arg, bev);
}

/* Until the program's streams are joined; from then on the server hears
 * frames. */
static void
join(struct fixture *f)
{
	start_program(f);
	fixture_loop(f->base, &f->joined);
	assert_string_equal(f->why, "");
	assert_int_equal(f->server.nconns, 1);
	bufferevent_setcb(
	    f->server.conns[0], heard_cb, NULL, gone_cb, &f->server);
}

static void
server_sends(struct fixture *f, struct buf *b)
{
	assert_int_equal(
	    bufferevent_write(f->server.conns[0], buf_data(b), buf_len(b)), 0);
	buf_clear(b);
}

static void
server_says(struct fixture *f, int channel, const char *text)
{
	struct buf b = {0};

	frames_put_message(&b, channel, text, strlen(text));
	server_sends(f, &b);
}

static void
server_closes(struct fixture *f)
{
	struct buf b = {0};

	frames_put_close(&b, 1000);
	server_sends(f, &b);
}

static void
server_hears(struct fixture *f, size_t n)
{
	while (buf_len(&f->heard) < n)
		fixture_settle(f->base);
}

static void
all_are_gone(struct fixture *f)
{
	while (!TAILQ_EMPTY(&f->execs.all))
		fixture_settle(f->base);
}

static void
expect_asker_gets(struct fixture *f, const char *text)
{
	size_t n = strlen(text), at = 0;
	char got[100];
	ssize_t r;

	while (at < n) {
		r = recv(f->fd, got + at, n - at, 0);
		assert_true(r > 0 || (r == -1 && errno == EAGAIN));
		at += r > 0 ? (size_t)r : 0;
		fixture_settle(f->base);
	}
	assert_memory_equal(got, text, n);
}

/* ---- the ground */

static void
write_kubeconfig(const char *path, const char *url, const char *ca_path)
{
	FILE *out = fopen(path, "we");

	(void)fprintf(out,
	    "{apiVersion: v1, kind: Config, current-context: x, clusters: "
	    "[{name: c, cluster: {server: 'https%s', certificate-authority: "
	    "'%s'}}], users: [{name: u, user: {token: 'secret-1'}}], "
	    "contexts: [{name: x, context: {cluster: c, user: u}}]}\n",
	    url + 3, ca_path);
	(void)fclose(out);
}

static int
setup(void **state)
{
	static struct fixture f;
	char url[64], path[64];
	struct err e;

	memset(&f, 0, sizeof(f));
	ground = &f;
	f.fd = -1;
	f.base = event_base_new();
	fake_engine_init(&f.server, f.base);
	identity_make(&f.identity, "IP:127.0.0.1");
	tls_setup(&f.server, &f.identity, NULL, url);
	f.server.answer = answer_v5;
	(void)snprintf(
	    path, sizeof(path), "/tmp/test-pod-exec-%ld", (long)getpid());
	write_kubeconfig(path, url, f.identity.cert_path);
	if (cluster_open(f.base, &(struct cluster_setup){.kubeconfig = path},
		&f.cluster, &e) != 0)
		fail_msg("%s", e.msg);
	(void)unlink(path);
	pod_execs_init(&f.execs, f.base, f.cluster, "boxes", "sandbox");
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	pod_execs_clear(&f->execs);
	cluster_free(f->cluster);
	if (f->fd != -1)
		(void)close(f->fd);
	buf_clear(&f->heard);
	fake_engine_clear(&f->server);
	tls_clear(&f->server);
	identity_clear(&f->identity);
	fixture_settle(f->base);
	event_base_free(f->base);
	return 0;
}

/* ---- a program's life */

TEST(a_programs_streams_are_one_socket)
{
	join(f);
	assert_string_equal(f->server.last,
	    "GET /api/v1/namespaces/boxes/pods/pod-1/exec?stdin=true&"
	    "stdout=true&stderr=true&container=sandbox&command="
	    "%2F.mcp-sandboxd%2Fagent&command=bridge&command=a%20b%26c");
	assert_non_null(strstr(f->server.head,
	    "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io"));
	assert_non_null(
	    strstr(f->server.head, "Sec-WebSocket-Version: 13\r\n"));
	assert_non_null(
	    strstr(f->server.head, "Authorization: Bearer secret-1"));
	server_says(f, 1, "");
	server_says(f, 1, "hello");
	expect_asker_gets(f, "hello");
	assert_int_equal(send(f->fd, "down", 4, 0), 4);
	server_hears(f, 11);
	frames_expect(&f->heard, FRAMES_FINAL | FRAMES_BINARY, "\0down", 5);
	server_says(f, 1, "last");
	server_says(f, 3, EXIT_7);
	server_closes(f);
	fixture_loop(f->base, &f->ended);
	assert_string_equal(f->why, "the program ended with 7");
	expect_asker_gets(f, "last");
	server_hears(f, 8);
	frames_expect_close(&f->heard, 1000);
	assert_int_equal(buf_len(&f->heard), 0);
	fake_engine_drop(&f->server, f->server.conns[0]);
	all_are_gone(f);
}

TEST(a_ping_of_the_server_is_answered)
{
	struct buf b = {0};

	join(f);
	frames_put(&b, FRAMES_FINAL | FRAMES_PING, "hi", 2);
	server_sends(f, &b);
	server_hears(f, 8);
	frames_expect(&f->heard, FRAMES_FINAL | FRAMES_PONG, "hi", 2);
}

/* What the server says after the first, empty message, and what the asker is
 * told then. */
TEST(an_end_says_what_is_known_of_it)
{
	static const struct {
		int channel;
		const char *text, *why;
	} rows[] = {
	    {3, "{\"status\":\"Success\"}", "the program ended with 0"},
	    {3,
		"{\"status\":\"Failure\",\"reason\":\"InternalError\","
		"\"message\":\"stat /no: no such file\"}",
		"the program did not start: stat /no: no such file"},
	    {3, "{\"status\":\"Failure\",\"message\":\"odd\"}",
		"nobody knows how the program ended: odd"},
	    {1, "", "the API server ended the stream"},
	    {7, "x", "the exec's stream has a message of no known channel"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		join(f);
		server_says(f, 1, "");
		server_says(f, rows[i].channel, rows[i].text);
		server_closes(f);
		fixture_loop(f->base, &f->ended);
		assert_string_equal(f->why, rows[i].why);
		(void)close(f->fd);
		f->fd = -1;
		fake_engine_drop(&f->server, f->server.conns[0]);
		all_are_gone(f);
	}
}

TEST(a_connection_that_is_lost_says_nothing_of_the_program)
{
	join(f);
	server_says(f, 1, "half");
	expect_asker_gets(f, "half");
	fake_engine_drop(&f->server, f->server.conns[0]);
	fixture_loop(f->base, &f->ended);
	assert_non_null(strstr(f->why, "the connection to the API server "));
	assert_true(TAILQ_EMPTY(&f->execs.all));
}

TEST(errors_of_the_program_are_no_data)
{
	join(f);
	server_says(f, 2, "a complaint");
	server_says(f, 1, "data");
	expect_asker_gets(f, "data");
}

/* ---- hanging up */

static void
expect_half_close_and_close(struct fixture *f)
{
	server_hears(f, 16);
	frames_expect(&f->heard, FRAMES_FINAL | FRAMES_BINARY, "\377\0", 2);
	frames_expect_close(&f->heard, 1000);
	assert_int_equal(buf_len(&f->heard), 0);
}

TEST(an_asker_that_hangs_up_ends_the_programs_input)
{
	join(f);
	(void)close(f->fd);
	f->fd = -1;
	fixture_loop(f->base, &f->ended);
	assert_string_equal(f->why, "the worker hung up");
	expect_half_close_and_close(f);
	server_says(f, 1, "nobody listens");
	fixture_settle(f->base);
	assert_int_equal(f->server.nconns, 1);
	fake_engine_drop(&f->server, f->server.conns[0]);
	all_are_gone(f);
}

TEST(one_that_is_cancelled_ends_the_programs_input_and_says_nothing)
{
	char c;

	join(f);
	pod_exec_cancel(f->exec);
	assert_int_equal(recv(f->fd, &c, 1, 0), 0);
	expect_half_close_and_close(f);
	fake_engine_drop(&f->server, f->server.conns[0]);
	all_are_gone(f);
	assert_false(f->ended);
}

TEST(v4_has_no_word_for_the_end_of_input)
{
	f->server.answer = answer_v4;
	join(f);
	pod_exec_cancel(f->exec);
	server_hears(f, 8);
	frames_expect_close(&f->heard, 1000);
	assert_int_equal(buf_len(&f->heard), 0);
}

TEST(one_that_is_cancelled_before_its_answer_hears_of_none)
{
	said = NULL;
	f->server.answer = answer_said;
	start_program(f);
	while (f->server.asked == 0)
		fixture_settle(f->base);
	pod_exec_cancel(f->exec);
	assert_true(TAILQ_EMPTY(&f->execs.all));
	while (f->server.nconns > 0)
		fixture_settle(f->base);
	assert_false(f->joined);
}

TEST(at_the_end_who_waits_is_told_and_streams_are_closed)
{
	join(f);
	f->server.answer = answer_said;
	said = NULL;
	f->joined = false;
	(void)pod_exec_start(
	    &f->execs, "pod-2", (const char *const[]){NULL}, &user, f);
	while (f->server.asked < 2)
		fixture_settle(f->base);
	pod_execs_clear(&f->execs);
	assert_false(f->joined);
	cluster_free(f->cluster);
	f->cluster = NULL;
	assert_true(f->joined);
	assert_false(f->ended);
	assert_int_equal(f->rc, ERR_WRONG_STATE);
	f->fd = -1;
	assert_true(TAILQ_EMPTY(&f->execs.all));
}

/* ---- refusals */

#define REFUSAL(status, type, length, body)                                    \
	"HTTP/1.1 " status "\r\nContent-Type: " type                           \
	"\r\nContent-Length: " length "\r\n\r\n" body
#define JSON "application/json"
#define PLAIN "text/plain; charset=utf-8"
#define STATUS(message, reason, code)                                          \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"          \
	"\"status\":\"Failure\",\"message\":\"" message                        \
	"\",\"reason\":\"" reason "\",\"details\":{\"name\":\"pod-1\","        \
	"\"kind\":\"pods\"},\"code\":" code "}"

TEST(a_refusal_says_whether_the_pod_is_to_blame)
{
	static const struct {
		const char *said;
		int rc;
		const char *why;
	} rows[] = {
	    {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", ERR_BACKEND,
		"older than Kubernetes 1.29"},
	    {REFUSAL("403 Forbidden", JSON, "230",
		 STATUS("pods \\\"pod-1\\\" is forbidden: User \\\"u\\\" "
			"cannot create resource \\\"pods/exec\\\"",
		     "Forbidden", "403")),
		ERR_BACKEND, "cannot create resource \"pods/exec\""},
	    {REFUSAL("404 Not Found", JSON, "177",
		 STATUS("pods \\\"pod-1\\\" not found", "NotFound", "404")),
		ERR_NOTFOUND, "pods \"pod-1\" not found"},
	    {REFUSAL("400 Bad Request", JSON, "194",
		 STATUS("pod pod-1 does not have a host assigned", "BadRequest",
		     "400")),
		ERR_NOTFOUND, "does not have a host assigned"},
	    {REFUSAL("500 Internal Server Error", PLAIN, "31",
		 "container not found (\"sandbox\")"),
		ERR_NOTFOUND, "does not run: container not found (\"sandbox"},
	    {REFUSAL("500 Internal Server Error", PLAIN, "7", "timeout"),
		ERR_BACKEND, "timeout"},
	    {REFUSAL("200 OK", PLAIN, "2", "ok"), ERR_BACKEND,
		"does not hand the connection over"},
	    {"HTTP/1.1 101 X\r\nSec-WebSocket-Protocol: " V5
	     "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		ERR_BACKEND, "another WebSocket"},
	};

	f->server.answer = answer_said;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		said = rows[i].said;
		start_program(f);
		fixture_loop(f->base, &f->joined);
		if (f->rc != rows[i].rc || strstr(f->why, rows[i].why) == NULL)
			fail_msg("%zu: %d %s", i, f->rc, f->why);
		assert_int_equal(f->fd, -1);
		assert_true(TAILQ_EMPTY(&f->execs.all));
	}
}

static const char *
answer_other_protocol(
    struct fake_engine *s, const char *method, const char *path)
{
	(void)method;
	(void)path;
	return switch_to(s, "v4.base64.channel.k8s.io");
}

TEST(a_protocol_that_was_not_asked_for_is_refused)
{
	f->server.answer = answer_other_protocol;
	start_program(f);
	fixture_loop(f->base, &f->joined);
	assert_int_equal(f->rc, ERR_BACKEND);
	while (f->server.nconns > 0)
		fixture_settle(f->base);
}

TEST_MAIN(setup, teardown)
