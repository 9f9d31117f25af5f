/* tls_ground.h - the fake engine at a TCP address, with TLS or without */
#ifndef TESTS_WORKER_TLS_GROUND_H
#define TESTS_WORKER_TLS_GROUND_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/unit/worker/fake_engine.h"

static inline void
tcp_setup(struct fake_engine *f, char url[64])
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t n = sizeof(sa);

	fake_engine_clear(f);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(
	    bind(f->fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(getsockname(f->fd, (struct sockaddr *)&sa, &n), 0);
	(void)snprintf(url, 64, "tcp://127.0.0.1:%d", ntohs(sa.sin_port));
	fake_engine_accept(f);
}

/* A key and a certificate for one address, signed by itself, as files. */
struct identity {
	X509 *cert;
	EVP_PKEY *key;
	char cert_path[64], key_path[64];
};

static inline void
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

static inline void
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

static inline void
identity_clear(struct identity *id)
{
	(void)unlink(id->cert_path);
	(void)unlink(id->key_path);
	X509_free(id->cert);
	EVP_PKEY_free(id->key);
}

/* An engine at an address, with that identity; it wants to see client's. */
static inline void
tls_setup(struct fake_engine *f, const struct identity *id,
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
	f->tls = tls;
}

static inline void
tls_clear(struct fake_engine *f)
{
	SSL_CTX_free(f->tls);
	f->tls = NULL;
}

#endif
