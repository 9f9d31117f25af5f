#include "worker/http/certs.h"

#include <stdio.h>
#include <time.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/exit.h"
#include "common/log.h"

#define EXPIRES "Expire date:"

static void
set_text(CURL *curl, CURLoption option, const char *pem)
{
	struct curl_blob blob = {.flags = CURL_BLOB_COPY};

	if (pem == NULL)
		return;
	blob.data = (void *)(uintptr_t)pem;
	blob.len = strlen(pem);
	if (curl_easy_setopt(curl, option, &blob) != CURLE_OK)
		fatal(EXIT_MEMORY, "no memory for a certificate");
}

static void
set_texts(CURL *curl, const struct api_tls *pem)
{
	(void)curl_easy_setopt(curl, CURLOPT_CAINFO, NULL);
	set_text(curl, CURLOPT_CAINFO_BLOB, pem->ca);
	set_text(curl, CURLOPT_SSLCERT_BLOB, pem->cert);
	set_text(curl, CURLOPT_SSLKEY_BLOB, pem->key);
}

static void
set_files(CURL *curl, const struct api_tls *files)
{
	(void)curl_easy_setopt(curl, CURLOPT_CAINFO, files->ca);
	(void)curl_easy_setopt(curl, CURLOPT_SSLCERT, files->cert);
	(void)curl_easy_setopt(curl, CURLOPT_SSLKEY, files->key);
}

/* Else what a full connection did not take must be sent again from the same
 * memory, or the connection breaks. */
static CURLcode
ctx_cb(CURL *curl, void *ctx, void *arg)
{
	(void)curl;
	(void)arg;
	(void)SSL_CTX_set_mode(ctx,
	    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
		SSL_MODE_ENABLE_PARTIAL_WRITE);
	return CURLE_OK;
}

void
certs_set_options(CURL *curl, const struct api_tls *files)
{
	(void)curl_easy_setopt(
	    curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	(void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
	(void)curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	if (files->is_pem)
		set_texts(curl, files);
	else
		set_files(curl, files);
	/* Else curl keeps authorities for a day, and a session is taken up
	 * again without a look at any certificate. */
	(void)curl_easy_setopt(curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_SSL_SESSIONID_CACHE, 0L);
	(void)curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_SSL_CTX_FUNCTION, ctx_cb);
}

/* ---- what went wrong */

static enum api_failure_kind
judge_verification(long verify, const char *text)
{
	if (strstr(text, "subject name") != NULL)
		return API_TLS_MISNAMED;
	if (verify == X509_V_ERR_CERT_HAS_EXPIRED ||
	    verify == X509_V_ERR_CERT_NOT_YET_VALID)
		return API_TLS_EXPIRED;
	return API_TLS_UNTRUSTED;
}

/* A server that wants a certificate of ours, or another one, says so by an
 * alert, with TLS 1.3 after the handshake; or has hung up when curl looks whom
 * it is connected to. */
static bool
is_refusal(const char *text)
{
	static const char *const words[] = {"alert certificate required",
	    "alert bad certificate", "alert unknown ca",
	    "alert certificate expired", "alert certificate revoked",
	    "alert certificate unknown", "alert unsupported certificate",
	    "alert access denied", "alert handshake failure",
	    "getpeername() failed"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strstr(text, words[i]) != NULL)
			return true;
	return false;
}

enum api_failure_kind
certs_judge(CURLcode code, long verify, const char *text)
{
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return judge_verification(verify, text);
	if (code == CURLE_SSL_CERTPROBLEM || code == CURLE_SSL_CACERT_BADFILE)
		return API_TLS_FILE;
	if ((code == CURLE_SSL_CONNECT_ERROR || code == CURLE_RECV_ERROR ||
		code == CURLE_SEND_ERROR) &&
	    is_refusal(text))
		return API_TLS_REFUSED;
	if (code == CURLE_SSL_CONNECT_ERROR &&
	    (strstr(text, "wrong version number") != NULL ||
		strstr(text, "packet length too long") != NULL ||
		strstr(text, "http request") != NULL))
		return API_TLS_NONE;
	return API_BROKEN;
}

/* ---- until when */

static int64_t
seconds_ms(struct tm *tm)
{
	return (int64_t)timegm(tm) * 1000;
}

/* The first certificate is the server's: "Nov 28 20:30:00 2026 GMT". */
int64_t
certs_read_expiry(CURL *curl)
{
	struct curl_certinfo *info = NULL;
	struct tm tm = {0};

	if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info) != CURLE_OK ||
	    info == NULL || info->num_of_certs < 1)
		return 0;
	for (const struct curl_slist *s = info->certinfo[0]; s != NULL;
	     s = s->next)
		if (strncmp(s->data, EXPIRES, strlen(EXPIRES)) == 0 &&
		    strptime(s->data + strlen(EXPIRES), "%b %d %T %Y", &tm) !=
			NULL)
			return seconds_ms(&tm);
	return 0;
}

// NOLINTBEGIN(readability-non-const-parameter): OpenSSL's type
static int
no_password(char *to, int size, int rwflag, void *arg)
{
	(void)to;
	(void)size;
	(void)rwflag;
	(void)arg;
	return -1;
}
// NOLINTEND(readability-non-const-parameter)

static void
auto_x509(X509 **x)
{
	X509_free(*x);
}

static void
auto_key(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

/* One of api_tls: what it is called in texts, and what it has. */
struct pem {
	const char *name;
	const char *value; /* a path, or PEM itself */
	bool is_path;
};

static struct pem
pem_of(const struct api_tls *files, const char *value, const char *what)
{
	return (struct pem){.name = files->is_pem ? what : value,
	    .value = value,
	    .is_path = !files->is_pem};
}

static FILE *
pem_open(const struct pem *pem, struct err *e)
{
	FILE *f = pem->is_path ?
	    fopen(pem->value, "re") :
	    fmemopen((void *)(uintptr_t)pem->value, strlen(pem->value), "r");

	if (f == NULL)
		(void)err_errno(e, "%s", pem->name);
	return f;
}

/* ERR_SYS: it cannot be opened; ERR_INVAL: there is none in it. */
static int
read_certificate(const struct pem *pem, X509 **out, struct err *e)
{
	FILE *f = pem_open(pem, e);

	if (f == NULL)
		return ERR_SYS;
	*out = PEM_read_X509(f, NULL, no_password, NULL);
	(void)fclose(f);
	if (*out == NULL)
		return err_set(e, ERR_INVAL, "%s: it has no certificate in PEM",
		    pem->name);
	return 0;
}

static int
read_key(const struct pem *pem, EVP_PKEY **out, struct err *e)
{
	FILE *f = pem_open(pem, e);

	if (f == NULL)
		return ERR_SYS;
	*out = PEM_read_PrivateKey(f, NULL, no_password, NULL);
	(void)fclose(f);
	if (*out == NULL)
		return err_set(e, ERR_INVAL,
		    "%s: it has no private key in PEM without a password",
		    pem->name);
	return 0;
}

static int64_t
expiry_of(const X509 *x)
{
	struct tm tm = {0};

	return ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) == 1 ?
	    seconds_ms(&tm) :
	    0;
}

static int
look_at_own(const struct api_tls *files, struct certs_look *out, struct err *e)
{
	const struct pem cert = pem_of(files, files->cert, "the certificate");
	const struct pem secret = pem_of(files, files->key, "the key");
	AUTO(auto_x509) X509 *own = NULL;
	AUTO(auto_key) EVP_PKEY *key = NULL;
	int rc = read_certificate(&cert, &own, e);

	if (rc == 0)
		rc = read_key(&secret, &key, e);
	if (rc != 0)
		return rc;
	if (X509_check_private_key(own, key) != 1)
		return err_set(e, ERR_INVAL,
		    "%s is not the key of the certificate %s", secret.name,
		    cert.name);
	out->own_expires_ms = expiry_of(own);
	return 0;
}

int
certs_look_at(
    const struct api_tls *files, struct certs_look *out, struct err *e)
{
	const struct pem authority =
	    pem_of(files, files->ca, "the authority's certificate");
	AUTO(auto_x509) X509 *ca = NULL;
	int rc = read_certificate(&authority, &ca, e);

	memset(out, 0, sizeof(*out));
	if (rc != 0)
		return rc;
	out->ca_expires_ms = expiry_of(ca);
	return files->cert == NULL ? 0 : look_at_own(files, out, e);
}
