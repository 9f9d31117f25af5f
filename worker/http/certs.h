/*
 * certs.h - TLS of api.h: files of ours, and what can be wrong with either side
 */
#ifndef WORKER_HTTP_CERTS_H
#define WORKER_HTTP_CERTS_H

#include <curl/curl.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/http/api.h"

/* certs_set_options - verification of authority and name, by these files alone,
 * which curl reads for each connection: another certificate in a file's place
 * holds from then on.  PEM itself is copied. */
void certs_set_options(CURL *curl, const struct api_tls *files);
/* certs_judge - what a failure is: a kind that begins with API_TLS_, or
 * API_BROKEN when it is none of TLS.  verify: CURLINFO_SSL_VERIFYRESULT; text:
 * of curl's error buffer */
enum api_failure_kind certs_judge(CURLcode code, long verify, const char *text);
/* certs_read_expiry - of the server's certificate, as curl saw it in the newest
 * connection of this handle, in milliseconds; 0: it saw none */
int64_t certs_read_expiry(CURL *curl);
/* Until when they are good; 0: not known, or none. */
struct certs_look {
	int64_t ca_expires_ms, own_expires_ms;
};
/* certs_look_at - ERR_SYS: a file cannot be opened, errno is in the text;
 * ERR_INVAL: it is not what it should be, or the key is another's.  PEM itself
 * is never in the text. */
int certs_look_at(const struct api_tls *files, struct certs_look *out,
    struct err *e) MUSTCHECK;

#endif
