/* Connections that are switched to a raw stream, TCP and TLS. */
#include "common/clock.h"
#include "tests/unit/worker/api_ground.h"
#include "tests/unit/worker/tls_ground.h"
#include "worker/http/certs.h"

/* ---- a connection that is switched to a raw stream */

#define SWITCHED                                                               \
	"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

struct switching {
	struct result r;
	struct api_call *stream;
	char to[64]; /* what it switched to */
};

static void
switched_cb(const struct api_answer *a, void *arg)
{
	struct switching *s = arg;

	const char *to = api_header(a, "upgrade");

	s->stream = a->stream;
	(void)snprintf(s->to, sizeof(s->to), "%s", to != NULL ? to : "");
	done_cb(a, &s->r);
}

static struct api_call *
ask_switch(struct fixture *f, struct switching *s, uint32_t timeout_ms)
{
	struct api_ask ask = {.method = "POST",
	    .path = "/exec/x/start",
	    .body = "{\"Tty\":false}",
	    .body_len = 13,
	    .upgrade = "tcp",
	    .timeout_ms = timeout_ms,
	    .max_body = 100,
	    .on_done = switched_cb,
	    .arg = s};

	memset(s, 0, sizeof(*s));
	f->engine.answer = answer_and_close;
	return api_start(f->api, &ask);
}

/* n bytes of it, as they come; each piece is what one turn brought. */
static void
expect_bytes(struct fixture *f, struct api_call *c, const char *text)
{
	char got[100];
	size_t n = 0;

	while (n < strlen(text)) {
		ssize_t r = api_recv(c, got + n, strlen(text) - n);

		if (r == -1 && errno == EAGAIN)
			fixture_settle(f->base);
		else
			assert_in_range(r, 1, 100);
		n += r > 0 ? (size_t)r : 0;
	}
	assert_memory_equal(got, text, n);
	assert_int_equal(api_recv(c, got, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

TEST(a_switched_connection_is_a_stream_both_ways)
{
	struct switching s;
	struct evbuffer *in;

	said = "HTTP/1.1 100 Continue\r\n\r\n" SWITCHED "early";
	(void)ask_switch(f, &s, 1000);
	f->engine.answer = answer_said;
	fixture_loop(f->base, &s.r.done);
	assert_int_equal(s.r.rc, 0);
	assert_int_equal(s.r.status, 101);
	assert_non_null(s.stream);
	assert_string_equal(s.to, "tcp");
	assert_true(api_fd(s.stream) >= 0);
	assert_string_equal(f->engine.last, "POST /exec/x/start");
	expect_bytes(f, s.stream, "early");
	(void)bufferevent_write(f->engine.conns[0], "late", 4);
	expect_bytes(f, s.stream, "late");
	assert_int_equal(api_send(s.stream, "down", 4), 4);
	in = bufferevent_get_input(f->engine.conns[0]);
	while (evbuffer_get_length(in) < 4)
		fixture_settle(f->base);
	assert_memory_equal(evbuffer_pullup(in, 4), "down", 4);
	api_cancel(s.stream);
	while (f->engine.nconns > 0) /* it sees the end */
		fixture_settle(f->base);
}

TEST(a_stream_ends_as_a_socket_does)
{
	struct switching s;
	ssize_t n;
	char c;

	said = SWITCHED;
	(void)ask_switch(f, &s, 1000);
	fixture_loop(f->base, &s.r.done);
	while ((n = api_recv(s.stream, &c, 1)) == -1 && errno == EAGAIN)
		fixture_settle(f->base);
	assert_int_equal(n, 0);
	api_cancel(s.stream);
}

TEST(a_server_that_does_not_switch_says_why)
{
	struct switching s;

	said = "HTTP/1.1 409 Conflict\r\ncontent-length:  5\r\n\r\nhello";
	(void)ask_switch(f, &s, 1000);
	f->engine.answer = answer_said;
	fixture_loop(f->base, &s.r.done);
	assert_int_equal(s.r.rc, 0);
	assert_int_equal(s.r.status, 409);
	assert_string_equal(s.r.body, "hello");
	assert_null(s.stream);
}

TEST(what_is_no_switch_is_an_error)
{
	static const struct {
		const char *said;
		int rc;
	} bad[] = {
	    {"", ERR_BACKEND},
	    {"rubbish\r\n\r\n", ERR_BACKEND},
	    {"HTTP/1.1 1010 X\r\n\r\n", ERR_BACKEND},
	    {"HTTP/2 101 X\r\n\r\n", ERR_BACKEND},
	    {"HTTP/1.1 101 X\r\nUpg", ERR_BACKEND},
	    {"HTTP/1.1 400 X\r\nContent-Length: 9\r\n\r\nhello", ERR_BACKEND},
	    {"HTTP/1.1 400 X\r\nContent-Length: 99999999999\r\n\r\nhello",
		ERR_BACKEND},
	    {"HTTP/1.1 400 X\r\nContent-Length: 101\r\n\r\nhello", ERR_LIMIT},
	};
	struct switching s;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		said = bad[i].said;
		(void)ask_switch(f, &s, 1000);
		fixture_loop(f->base, &s.r.done);
		if (s.r.rc != bad[i].rc || s.stream != NULL)
			fail_msg("%s: %d %s", said, s.r.rc, s.r.why);
	}
}

TEST(headers_of_a_switch_have_their_bound)
{
	struct switching s;

	(void)ask_switch(f, &s, 10000);
	f->engine.answer = answer_headers;
	fixture_loop(f->base, &s.r.done);
	assert_int_equal(s.r.rc, ERR_LIMIT);
	(void)ask_switch(f, &s, 10000);
	f->engine.answer = answer_interim;
	fixture_loop(f->base, &s.r.done);
	assert_int_equal(s.r.rc, ERR_LIMIT);
}

TEST(a_switch_has_its_time_and_no_more)
{
	struct switching s;

	(void)ask_switch(f, &s, 50);
	f->engine.answer = answer_never;
	fixture_loop(f->base, &s.r.done);
	assert_non_null(strstr(s.r.why, "within 50 ms"));
}

TEST(a_switch_may_be_cancelled)
{
	struct switching s;
	struct api_call *c = ask_switch(f, &s, 1000);

	f->engine.answer = answer_never;
	while (f->engine.asked == 0)
		fixture_settle(f->base);
	api_cancel(c);
	while (f->engine.nconns > 0)
		fixture_settle(f->base);
	assert_false(s.r.done);
}

/* ---- TCP and TLS */

TEST(an_address_is_one)
{
	static const char *const bad[] = {"", "unix:///x", "tcp://", "tcp://x",
	    "tcp://127.0.0.1:2375/x", "tcp://u@127.0.0.1:2375",
	    "tcp://127.0.0.1:99999", "tcp://127.0.0.1:2375 ",
	    "http://127.0.0.1:2375", "https://127.0.0.1:6443",
	    "https://u@127.0.0.1:6443", "https://127.0.0.1:6443?x"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (api_set_address(f->api, bad[i], NULL, &e) != ERR_INVAL)
			fail_msg("%s", bad[i]);
	assert_int_equal(
	    api_set_address(f->api, "tcp://[::1]:2375", NULL, &e), 0);
}

TEST(a_server_at_a_tcp_address_is_asked)
{
	struct result r;
	struct err e;
	char url[64];

	tcp_setup(&f->engine, url);
	assert_int_equal(api_set_address(f->api, url, NULL, &e), 0);
	f->engine.answer = answer_hello;
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	ask_once(f, &r);
	assert_int_equal(f->engine.nconns, 1);
	fake_engine_clear(&f->engine);
	ask_once(f, &r);
	assert_non_null(strstr(r.why, "no Docker engine at tcp://127.0.0.1:"));
	fake_engine_listen(&f->engine);
}

TEST(a_servers_name_is_looked_up)
{
	char url[64], named[64];
	struct result r;
	struct err e;

	tcp_setup(&f->engine, url);
	(void)snprintf(
	    named, sizeof(named), "tcp://localhost%s", strrchr(url, ':'));
	assert_int_equal(api_set_address(f->api, named, NULL, &e), 0);
	f->engine.answer = answer_hello;
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	assert_int_equal(
	    api_set_address(f->api, "tcp://no.such.invalid:1", NULL, &e), 0);
	ask_once(f, &r);
	assert_non_null(strstr(r.why, "the name no.such.invalid has no"));
	fake_engine_clear(&f->engine);
	fake_engine_listen(&f->engine);
}

/* Each takes a connection of its own, as none may be sent twice. */
TEST(many_posts_at_once_have_a_connection_each)
{
	struct result r[20];
	struct err e;
	char url[64];

	tcp_setup(&f->engine, url);
	assert_int_equal(api_set_address(f->api, url, NULL, &e), 0);
	f->engine.answer = answer_hello;
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		start(f, &r[i],
		    (struct api_ask){.method = "POST",
			.path = "/x",
			.timeout_ms = 5000,
			.max_body = 100});
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		fixture_loop(f->base, &r[i].done);
		assert_string_equal(r[i].body, "hello");
	}
	fake_engine_clear(&f->engine);
	fake_engine_listen(&f->engine);
}

TEST(a_server_is_asked_over_tls_when_it_is_the_right_one)
{
	struct identity good, bad, elsewhere;
	struct result r;
	struct err e;
	char url[64];

	identity_make(&good, "IP:127.0.0.1");
	identity_make(&bad, "IP:127.0.0.1");
	identity_make(&elsewhere, "IP:127.0.0.2,DNS:localhost");
	tls_setup(&f->engine, &good, NULL, url);
	f->engine.answer = answer_hello;
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = bad.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_int_equal(f->engine.asked, 0);
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = good.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	tls_clear(&f->engine);
	tls_setup(&f->engine, &elsewhere, NULL, url);
	f->engine.answer = answer_hello;
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = elsewhere.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_int_equal(f->engine.asked, 1);
	tls_clear(&f->engine);
	identity_clear(&good);
	identity_clear(&bad);
	identity_clear(&elsewhere);
}

TEST(a_name_is_held_against_the_certificate)
{
	struct identity named;
	struct result r;
	struct err e;
	char url[64], at[64];

	identity_make(&named, "DNS:localhost");
	tls_setup(&f->engine, &named, NULL, url);
	f->engine.answer = answer_hello;
	(void)snprintf(at, sizeof(at), "tcp://localhost%s", strrchr(url, ':'));
	assert_int_equal(api_set_address(f->api, at,
			     &(struct api_tls){.ca = named.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	assert_true(api_peer_expires_ms(f->api) > clock_wall_ms());
	tls_clear(&f->engine);
	identity_clear(&named);
}

TEST(a_stream_over_tls_begins_with_a_certificate_of_ours)
{
	struct identity theirs, ours;
	struct api_tls tls;
	struct switching s;
	struct result r;
	struct err e;
	char url[64];

	identity_make(&theirs, "IP:127.0.0.1");
	identity_make(&ours, "DNS:worker");
	tls = (struct api_tls){.ca = theirs.cert_path};
	tls_setup(&f->engine, &theirs, &ours, url);
	f->engine.answer = answer_hello;
	assert_int_equal(api_set_address(f->api, url, &tls, &e), 0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	tls.cert = ours.cert_path;
	tls.key = ours.key_path;
	assert_int_equal(api_set_address(f->api, url, &tls, &e), 0);
	said = SWITCHED "early";
	(void)ask_switch(f, &s, 1000);
	f->engine.answer = answer_said;
	fixture_loop(f->base, &s.r.done);
	assert_int_equal(s.r.status, 101);
	expect_bytes(f, s.stream, "early");
	(void)bufferevent_write(f->engine.conns[0], "late", 4);
	expect_bytes(f, s.stream, "late");
	api_cancel(s.stream);
	tls_clear(&f->engine);
	identity_clear(&theirs);
	identity_clear(&ours);
}

/* The text of a file; the caller frees. */
static char *
read_pem(const char *path)
{
	char text[8192];
	FILE *file = fopen(path, "re");
	size_t n = fread(text, 1, sizeof(text) - 1, file);

	(void)fclose(file);
	return xstrndup(text, n);
}

TEST(an_https_server_is_asked_by_pem_below_its_prefix)
{
	AUTO(auto_free) char *ca = NULL, *cert = NULL, *key = NULL;
	struct identity theirs, ours;
	struct api_tls tls = {.is_pem = true, .name = "cluster.example"};
	char tcp[64], url[128];
	struct certs_look look;
	struct result r;
	struct err e;

	identity_make(&theirs, "DNS:cluster.example");
	identity_make(&ours, "DNS:worker");
	tls.ca = ca = read_pem(theirs.cert_path);
	tls.cert = cert = read_pem(ours.cert_path);
	tls.key = key = read_pem(ours.key_path);
	tls_setup(&f->engine, &theirs, &ours, tcp);
	f->engine.answer = answer_hello;
	(void)snprintf(url, sizeof(url), "https%s/k8s/c-1/", tcp + 3);
	assert_int_equal(api_set_address(f->api, url, &tls, &e), 0);
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	assert_string_equal(f->engine.last, "GET /k8s/c-1/x");
	assert_non_null(strstr(f->engine.head, "Host: 127.0.0.1:"));
	assert_int_equal(certs_look_at(&tls, &look, &e), 0);
	assert_true(look.own_expires_ms > clock_wall_ms());
	tls.name = NULL;
	assert_int_equal(api_set_address(f->api, url, &tls, &e), 0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	tls_clear(&f->engine);
	identity_clear(&theirs);
	identity_clear(&ours);
}

TEST(other_certificates_hold_from_the_next_connection_on)
{
	struct identity good, bad;
	struct result r;
	struct err e;
	char url[64];

	identity_make(&good, "IP:127.0.0.1");
	identity_make(&bad, "IP:127.0.0.1");
	tls_setup(&f->engine, &good, NULL, url);
	f->engine.answer = answer_hello;
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = bad.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	api_renew_tls(f->api, &(struct api_tls){.ca = good.cert_path});
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	tls_clear(&f->engine);
	identity_clear(&good);
	identity_clear(&bad);
}

/* Sends from p until the other side takes no more; how many it took. */
static size_t
send_until_full(struct api_call *c, const uint8_t *p, size_t n)
{
	size_t total = 0;
	ssize_t r;

	while ((r = api_send(c, p, n)) > 0)
		total += (size_t)r;
	assert_int_equal(r, -1);
	assert_int_equal(errno, EAGAIN);
	return total;
}

TEST(a_stream_over_tls_takes_bytes_again_from_elsewhere)
{
	static uint8_t one[65536], other[sizeof(one)];
	struct identity theirs;
	struct switching s;
	struct err e;
	char url[64];
	ssize_t r = -1;

	identity_make(&theirs, "IP:127.0.0.1");
	tls_setup(&f->engine, &theirs, NULL, url);
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = theirs.cert_path}, &e),
	    0);
	said = SWITCHED;
	(void)ask_switch(f, &s, 1000);
	f->engine.answer = answer_said;
	fixture_loop(f->base, &s.r.done);
	(void)bufferevent_disable(f->engine.conns[0], EV_READ);
	assert_true(send_until_full(s.stream, one, sizeof(one)) > 0);
	(void)bufferevent_enable(f->engine.conns[0], EV_READ);
	while (r == -1) {
		fixture_settle(f->base);
		r = api_send(s.stream, other, sizeof(other));
		assert_true(r > 0 || errno == EAGAIN);
	}
	api_cancel(s.stream);
	tls_clear(&f->engine);
	identity_clear(&theirs);
}

TEST_MAIN(setup, teardown)
