/*
 * server_address.h - where an HTTP server is
 */
#ifndef WORKER_HTTP_SERVER_ADDRESS_H
#define WORKER_HTTP_SERVER_ADDRESS_H

#include "common/base.h"
#include "common/err.h"

#define SERVER_ADDRESS_NAME_MAX 253
#define SERVER_ADDRESS_PREFIX_MAX 1024

struct server_address {
	bool is_https;
	char name[SERVER_ADDRESS_NAME_MAX +
	    1]; /* or an address without brackets */
	uint16_t port;
	bool is_loopback; /* the name stands for this machine alone */
	char prefix[SERVER_ADDRESS_PREFIX_MAX +
	    1]; /* of each path: "" or "/..." */
};

/* server_address_parse - "tcp://HOST:PORT" (engine_host.h) or
 * "https://HOST[:PORT][/PREFIX]" (weburl.h); ERR_INVAL says what is wrong */
int server_address_parse(
    const char *url, struct server_address *out, struct err *e) MUSTCHECK;
/* server_address_authority - HOST:PORT as a URL has it, with this name instead;
 * NULL: its own.  The caller frees. */
char *server_address_authority(
    const struct server_address *at, const char *name);
/* server_address_url - the same with a scheme, without the prefix */
char *server_address_url(
    const struct server_address *at, bool has_tls, const char *name);

#endif
