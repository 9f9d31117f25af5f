#include "supervisor/http/tls.h"

#include <stdio.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/child.h"
#include "common/fd.h"
#include "common/xmalloc.h"

#define CHAIN_MAX 16     /* certificates of ours */
#define AUTHORITIES 1000 /* of clients */
#define NAMES_SENT 50    /* of authorities, to clients */
#define CLIENT_DEPTH 4   /* of a client's chain */

static const char suites[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
/* Not const: OpenSSL's macro casts that away. */
static char groups[] = "X25519:P-256:P-384";
static const unsigned char ticket_context[] = "mcp-sandboxd";

struct tls {
	SSL_CTX *ctx;
	char warning[160]; /* "" when there is none */
};

void
tls_init(void)
{
	(void)OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

/* The newest reason; they are words of OpenSSL's own tables. */
static const char *
why(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	return reason != NULL ? reason : "no reason is known";
}

static int
tls_fail(struct err *e, const char *what)
{
	(void)err_set(e, ERR_INVAL, "%s: %s", what, why());
	ERR_clear_error();
	return ERR_INVAL;
}

/* Instead of a prompt on a terminal. */
static int
/* NOLINTNEXTLINE(readability-non-const-parameter): OpenSSL's pem_password_cb */
no_passphrase_cb(char *out, int size, int writing, void *arg)
{
	(void)out;
	(void)size;
	(void)writing;
	*(bool *)arg = true;
	return -1;
}

/* PEM_read_... found no further one: that is the end of the file. */
static bool
is_end_of_pem(void)
{
	unsigned long code = ERR_peek_last_error();
	bool is_end = ERR_GET_LIB(code) == ERR_LIB_PEM &&
	    ERR_GET_REASON(code) == PEM_R_NO_START_LINE;

	if (is_end)
		ERR_clear_error();
	return is_end;
}

static void
warn_of_dates(struct tls *t, const X509 *cert)
{
	int days = 0, seconds = 0;
	const char *text = NULL;

	if (X509_cmp_current_time(X509_get0_notBefore(cert)) > 0)
		text = "is not valid yet";
	else if (X509_cmp_current_time(X509_get0_notAfter(cert)) < 0)
		text = "has expired: clients will refuse it";
	else if (ASN1_TIME_diff(
		     &days, &seconds, NULL, X509_get0_notAfter(cert)) == 1 &&
	    days < TLS_WARN_DAYS)
		(void)snprintf(t->warning, sizeof(t->warning),
		    "the certificate of TLS_CERT_FILE expires in %d days",
		    days);
	if (text != NULL)
		(void)snprintf(t->warning, sizeof(t->warning),
		    "the certificate of TLS_CERT_FILE %s", text);
}

static int
take_certificates(struct tls *t, BIO *bio, struct err *e)
{
	X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	int n = 0;
	bool good;

	if (cert == NULL)
		return tls_fail(
		    e, "TLS_CERT_FILE: there is no certificate in PEM in it");
	good = SSL_CTX_use_certificate(t->ctx, cert) == 1;
	warn_of_dates(t, cert);
	X509_free(cert);
	if (!good)
		return tls_fail(e, "TLS_CERT_FILE: the certificate is refused");
	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		good = ++n < CHAIN_MAX &&
		    SSL_CTX_add1_chain_cert(t->ctx, cert) == 1;
		X509_free(cert);
		if (!good)
			return tls_fail(e,
			    "TLS_CERT_FILE: the chain is refused, or longer "
			    "than 16 certificates");
	}
	return is_end_of_pem() ?
	    0 :
	    tls_fail(e, "TLS_CERT_FILE: a certificate of the chain is damaged");
}

static int
take_key(struct tls *t, BIO *bio, struct err *e)
{
	bool asked = false;
	EVP_PKEY *key =
	    PEM_read_bio_PrivateKey(bio, NULL, no_passphrase_cb, &asked);
	bool good;

	if (key == NULL && asked) {
		ERR_clear_error();
		return err_set(e, ERR_INVAL,
		    "TLS_KEY_FILE: the key has a passphrase: want one without, "
		    "in a file that only the server's user may read");
	}
	if (key == NULL)
		return tls_fail(
		    e, "TLS_KEY_FILE: there is no private key in PEM in it");
	/* As OpenSSL would look at it by itself, but with an error to tell. */
	good = SSL_CTX_use_PrivateKey(t->ctx, key) == 1 &&
	    SSL_CTX_check_private_key(t->ctx) == 1;
	EVP_PKEY_free(key);
	return good ? 0 :
		      tls_fail(e,
			  "TLS_KEY_FILE is not the key of the certificate of "
			  "TLS_CERT_FILE");
}

static int
take_authorities(struct tls *t, BIO *bio, struct err *e)
{
	X509_STORE *store = SSL_CTX_get_cert_store(t->ctx);
	X509 *cert;
	int n = 0;
	bool good = true;

	while (
	    good && (cert = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		good = ++n <= AUTHORITIES &&
		    X509_STORE_add_cert(store, cert) == 1 &&
		    (n > NAMES_SENT ||
			SSL_CTX_add_client_CA(t->ctx, cert) == 1);
		X509_free(cert);
	}
	if (!good || n == 0 || !is_end_of_pem())
		return tls_fail(e,
		    "TLS_CLIENT_CA_FILE: want 1 to 1000 certificates in PEM");
	SSL_CTX_set_verify(
	    t->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_verify_depth(t->ctx, CLIENT_DEPTH);
	return 0;
}

/* RFC 7301: who offers protocols and ours is not among them is told so. */
static int
choose_protocol_cb(SSL *ssl, const unsigned char **out, unsigned char *out_len,
    const unsigned char *in, unsigned int in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in,
		in_len) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int
set_up(SSL_CTX *ctx, struct err *e)
{
	(void)SSL_CTX_set_options(ctx,
	    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
		SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
		SSL_OP_IGNORE_UNEXPECTED_EOF);
	/* Never SSL_MODE_ENABLE_PARTIAL_WRITE: libevent 2.1 goes on with its
	 * next piece after a write that took only a part. */
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	(void)SSL_CTX_set_num_tickets(ctx, 1);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol_cb, NULL);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_set_cipher_list(ctx, suites) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, groups) != 1 ||
	    SSL_CTX_set_session_id_context(
		ctx, ticket_context, sizeof(ticket_context) - 1) != 1)
		return tls_fail(e, "OpenSSL");
	return 0;
}

/* What take wants of a sealed file of PEM. */
static int
load_file(struct tls *t, int fd, const char *name,
    int (*take)(struct tls *t, BIO *bio, struct err *e), struct err *e)
{
	uint8_t *mem = NULL;
	BIO *bio;
	size_t n;
	int rc;

	if (fd_read_sealed(fd, TLS_FILE_MAX, &mem, &n, e) != 0)
		return err_wrap(e, "%s", name);
	bio = BIO_new_mem_buf(mem, (int)n);
	rc = bio == NULL ? tls_fail(e, name) : take(t, bio, e);
	BIO_free(bio);
	explicit_bzero(mem, n);
	free(mem);
	return rc;
}

int
tls_load(
    int certificate, int key, int client_ca, struct tls **out, struct err *e)
{
	struct tls *t = xcalloc(1, sizeof(*t));
	int rc;

	ERR_clear_error();
	t->ctx = SSL_CTX_new(TLS_server_method());
	rc = t->ctx == NULL ? tls_fail(e, "OpenSSL") : set_up(t->ctx, e);
	if (rc == 0)
		rc = load_file(
		    t, certificate, "TLS_CERT_FILE", take_certificates, e);
	if (rc == 0)
		rc = load_file(t, key, "TLS_KEY_FILE", take_key, e);
	if (rc == 0 && client_ca != -1)
		rc = load_file(
		    t, client_ca, "TLS_CLIENT_CA_FILE", take_authorities, e);
	if (rc != 0) {
		tls_free(t);
		/* What is wrong in a file does not mend itself. */
		return err_set(e, ERR_INVAL, "%s", e->msg);
	}
	*out = t;
	return 0;
}

void
tls_free(struct tls *t)
{
	if (t == NULL)
		return;
	SSL_CTX_free(t->ctx);
	free(t);
}

const char *
tls_warning(const struct tls *t)
{
	return t->warning[0] != '\0' ? t->warning : NULL;
}

struct ssl_st *
tls_session(struct tls *t)
{
	SSL *ssl = SSL_new(t->ctx);

	if (ssl != NULL)
		SSL_set_accept_state(ssl);
	return ssl;
}
