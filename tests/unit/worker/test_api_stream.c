/* Connections that are switched to a raw stream, TCP and TLS. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "common/clock.h"
#include "tests/unit/worker/api_ground.h"

/* ---- a connection that is switched to a raw stream */

#define SWITCHED                                                               \
	"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"

struct switching {
	struct result r;
	struct api_call *stream;
};

static void
switched_cb(const struct api_answer *a, void *arg)
{
	struct switching *s = arg;

	s->stream = a->stream;
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
	    "http://127.0.0.1:2375"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (api_set_address(f->api, bad[i], NULL, &e) != ERR_INVAL)
			fail_msg("%s", bad[i]);
	assert_int_equal(
	    api_set_address(f->api, "tcp://[::1]:2375", NULL, &e), 0);
}

static void
tcp_setup(struct fixture *f, char url[64])
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t n = sizeof(sa);

	fake_engine_clear(&f->engine);
	f->engine.fd =
	    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
	    bind(f->engine.fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(
	    getsockname(f->engine.fd, (struct sockaddr *)&sa, &n), 0);
	(void)snprintf(url, 64, "tcp://127.0.0.1:%d", ntohs(sa.sin_port));
	fake_engine_accept(&f->engine);
}

TEST(a_server_at_a_tcp_address_is_asked)
{
	struct result r;
	struct err e;
	char url[64];

	tcp_setup(f, url);
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

	tcp_setup(f, url);
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

	tcp_setup(f, url);
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

/* A key and a certificate for one address, signed by itself, as files. */
struct identity {
	X509 *cert;
	EVP_PKEY *key;
	char cert_path[64], key_path[64];
};

static void
identity_write(struct identity *id)
{
	static int number;
	FILE *f;

	(void)snprintf(id->cert_path, sizeof(id->cert_path),
	    "/tmp/test-api-%ld-%d.crt", (long)getpid(), ++number);
	(void)snprintf(id->key_path, sizeof(id->key_path),
	    "/tmp/test-api-%ld-%d.key", (long)getpid(), number);
	f = fopen(id->cert_path, "we");
	assert_int_equal(PEM_write_X509(f, id->cert), 1);
	(void)fclose(f);
	f = fopen(id->key_path, "we");
	assert_int_equal(
	    PEM_write_PrivateKey(f, id->key, NULL, NULL, 0, NULL, NULL), 1);
	(void)fclose(f);
}

static void
identity_make(struct identity *id, const char *names)
{
	X509 *x = X509_new();
	X509_EXTENSION *ext =
	    X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);

	id->key = EVP_EC_gen("P-256");
	id->cert = x;
	(void)X509_set_version(x, 2);
	(void)ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	(void)X509_gmtime_adj(X509_getm_notBefore(x), -60);
	(void)X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	(void)X509_set_pubkey(x, id->key);
	(void)X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN",
	    MBSTRING_ASC, (const unsigned char *)names, -1, -1, 0);
	(void)X509_set_issuer_name(x, X509_get_subject_name(x));
	(void)X509_add_ext(x, ext, -1);
	X509_EXTENSION_free(ext);
	assert_true(X509_sign(x, id->key, EVP_sha256()) > 0);
	identity_write(id);
}

static void
identity_clear(struct identity *id)
{
	(void)unlink(id->cert_path);
	(void)unlink(id->key_path);
	X509_free(id->cert);
	EVP_PKEY_free(id->key);
}

/* An engine at an address, with that identity; it wants to see client's. */
static void
tls_setup(struct fixture *f, const struct identity *id,
    const struct identity *client, char url[64])
{
	SSL_CTX *tls = SSL_CTX_new(TLS_server_method());

	assert_int_equal(SSL_CTX_use_certificate(tls, id->cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(tls, id->key), 1);
	if (client != NULL) {
		SSL_CTX_set_verify(tls,
		    SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		assert_int_equal(
		    SSL_CTX_load_verify_locations(tls, client->cert_path, NULL),
		    1);
	}
	tcp_setup(f, url);
	f->engine.tls = tls;
	f->engine.answer = answer_hello;
}

static void
tls_clear(struct fixture *f)
{
	SSL_CTX_free(f->engine.tls);
	f->engine.tls = NULL;
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
	tls_setup(f, &good, NULL, url);
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
	tls_clear(f);
	tls_setup(f, &elsewhere, NULL, url);
	assert_int_equal(api_set_address(f->api, url,
			     &(struct api_tls){.ca = elsewhere.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_int_equal(f->engine.asked, 1);
	tls_clear(f);
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
	tls_setup(f, &named, NULL, url);
	(void)snprintf(at, sizeof(at), "tcp://localhost%s", strrchr(url, ':'));
	assert_int_equal(api_set_address(f->api, at,
			     &(struct api_tls){.ca = named.cert_path}, &e),
	    0);
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	assert_true(api_peer_expires_ms(f->api) > clock_wall_ms());
	tls_clear(f);
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
	tls_setup(f, &theirs, &ours, url);
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
	tls_clear(f);
	identity_clear(&theirs);
	identity_clear(&ours);
}

TEST_MAIN(setup, teardown)
