/*
 * weburl.h - the URLs that others give us to send to
 *
 * Narrower than RFC 3986, so that no two readers see two hosts in one: http or
 * https in small letters, a host of letters, digits, "-", "_" and "." or an
 * IPv6 address in brackets, perhaps a port, a path and a query of printable
 * ASCII.  No user, no password, no fragment.  Of ports 80, 443 and those from
 * 1024 on: what listens below is for something else than HTTP.
 *
 * Which address the host has nobody knows before the connection is made:
 * outside.h judges it then.
 */
#ifndef COMMON_WEBURL_H
#define COMMON_WEBURL_H

#include "common/base.h"
#include "common/err.h"

#define WEBURL_MAX 2048
#define WEBURL_HOST_MAX 253

struct weburl {
	bool is_https;
	char host[WEBURL_HOST_MAX + 1]; /* small letters; without brackets */
	uint32_t port;
};

/* weburl_parse - ERR_INVAL says what is wrong with it */
int weburl_parse(const char *text, struct weburl *out, struct err *e) MUSTCHECK;

#endif
