#include "worker/http/certs.h"

#include <openssl/x509.h>

#include "tests/unit/test.h"

TEST(each_trouble_has_a_kind)
{
	static const struct {
		CURLcode code;
		long verify;
		const char *text;
		enum api_failure_kind want;
	} known[] = {{CURLE_PEER_FAILED_VERIFICATION,
			 X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
			 "SSL certificate problem: unable to get local issuer "
			 "certificate",
			 API_TLS_UNTRUSTED},
	    {CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_HAS_EXPIRED,
		"SSL certificate problem: certificate has expired",
		API_TLS_EXPIRED},
	    {CURLE_PEER_FAILED_VERIFICATION, X509_V_ERR_CERT_NOT_YET_VALID,
		"SSL certificate problem", API_TLS_EXPIRED},
	    {CURLE_PEER_FAILED_VERIFICATION, X509_V_OK,
		"SSL: no alternative certificate subject name matches target "
		"host name 'x'",
		API_TLS_MISNAMED},
	    {CURLE_SSL_CONNECT_ERROR, X509_V_OK,
		"error:0A00010B:SSL routines::wrong version number",
		API_TLS_NONE},
	    {CURLE_SSL_CONNECT_ERROR, X509_V_OK,
		"error:0A000412:SSL routines::sslv3 alert bad certificate",
		API_TLS_REFUSED},
	    {CURLE_RECV_ERROR, X509_V_OK,
		"OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert "
		"certificate required, errno 0",
		API_TLS_REFUSED},
	    {CURLE_SSL_CERTPROBLEM, X509_V_OK, "unable to set private key",
		API_TLS_FILE},
	    {CURLE_SSL_CACERT_BADFILE, X509_V_OK, "error adding trust anchors",
		API_TLS_FILE},
	    {CURLE_RECV_ERROR, X509_V_OK, "Connection reset by peer",
		API_BROKEN}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (certs_judge(known[i].code, known[i].verify,
			known[i].text) != known[i].want)
			fail_msg("%s", known[i].text);
}

TEST(a_file_that_is_not_there_is_named)
{
	const struct api_tls files = {.ca = "/no/such/ca.pem"};
	struct certs_look look;
	struct err e;

	assert_int_equal(certs_look_at(&files, &look, &e), ERR_SYS);
	assert_non_null(strstr(e.msg, "/no/such/ca.pem"));
}

TEST(a_file_without_a_certificate_is_named)
{
	const struct api_tls files = {.ca = "/dev/null"};
	struct certs_look look;
	struct err e;

	assert_int_equal(certs_look_at(&files, &look, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "no certificate in PEM"));
}

TEST_MAIN(NULL, NULL)
