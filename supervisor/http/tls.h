/*
 * tls.h - a certificate with its key, ready for connections
 *
 * TLS 1.2 and 1.3, suites with forward secrecy and authenticated encryption,
 * "http/1.1" by ALPN; no renegotiation, no compression, no session cache
 * (tickets are under a key that lives as long as this object).  OpenSSL's
 * configuration file is not read: what is spoken is said here.
 */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "common/base.h"
#include "common/err.h"

#define TLS_WARN_DAYS 14

struct tls;
struct ssl_st;

/* tls_init - before anything else of OpenSSL, once per process */
void tls_init(void);
/*
 * tls_load - from sealed memory files (fd.h) in PEM
 *
 *	certificate	the server's own first, then its chain
 *	key		without a passphrase
 *	client_ca	-1, or authorities: every client must show a
 *			certificate of one of them
 * The descriptors stay the caller's.  ERR_INVAL names the setting that is
 * wrong; no text has anything of the key in it.
 */
int tls_load(int certificate, int key, int client_ca, struct tls **out,
    struct err *e) MUSTCHECK;
void tls_free(struct tls *t); /* NULL is fine; connections keep theirs */
/* tls_warning - what is to be said of a certificate that is good: it is not
 * valid yet, not any more, or not for long; NULL: nothing */
const char *tls_warning(const struct tls *t);
/* tls_session - for a connection, as a server; NULL: out of memory */
struct ssl_st *tls_session(struct tls *t);

#endif
