/*
 * check.h - who may talk to us at all: Host and Origin
 *
 * A browser on this machine can be made to call us by any web page: by its
 * Origin, or under a name that the page's owner points at us (DNS rebinding).
 * So the Host must be one of ours, and an Origin, when there is one, too
 * (MCP 2025-11-25, transports, security warning).
 */
#ifndef FRONT_CHECK_H
#define FRONT_CHECK_H

#include "common/conf.h"
#include "common/err.h"
#include "common/netaddr.h"

struct check;
struct sockaddr;

struct check *check_new(const struct conf *conf); /* which is kept */
void check_free(struct check *c);
/* check_add_listener - an address (of family AF_INET or AF_INET6) we listen
 * on: Host may name it, or loopback, with this port */
void check_add_listener(struct check *c, const struct sockaddr *sa);

/* check_may_listen - there is neither tenant nor token, so whoever reaches the
 * address may use the server: ERR_POLICY unless that is this machine alone */
int check_may_listen(const struct netaddr *a, struct err *e) MUSTCHECK;
/* check_set_tls - a Host without a port means 443, and pages of ours come by
 * https */
void check_set_tls(struct check *c);

struct check_refusal {
	int status;
	const char *code;
	char text[256];
};
/* How a request came; what is not known is NULL. */
struct check_way {
	const struct sockaddr *local; /* for listeners on all addresses */
	const struct netaddr *peer;   /* on loopback, its names have any port */
};
/* check_request - 0, or -1 with why.  Host as in the request, or the
 * authority of its target */
int check_request(const struct check *c, const char *host, const char *origin,
    const struct check_way *way, struct check_refusal *why) MUSTCHECK;
/* check_varies - answers may differ by Origin */
bool check_varies(const struct check *c);

#endif
