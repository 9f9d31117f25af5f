/*
 * engine_host.h - DOCKER_HOST, and where an engine is without it
 *
 * unix:///PATH, or tcp://HOST:PORT with a name, an IPv4 address or an IPv6
 * address in brackets.
 */
#ifndef COMMON_ENGINE_HOST_H
#define COMMON_ENGINE_HOST_H

#include "common/base.h"
#include "common/err.h"

#define ENGINE_HOST_PATH_MAX 107 /* of sockaddr_un */
#define ENGINE_HOST_NAME_MAX 253
#define ENGINE_HOST_USUAL_MAX 4

enum engine_host_kind {
	ENGINE_HOST_UNIX,
	ENGINE_HOST_TCP
};

struct engine_host {
	enum engine_host_kind kind;
	char path[ENGINE_HOST_PATH_MAX + 1]; /* of a Unix socket */
	/* Of TCP: a name in small letters, or an address without brackets. */
	char name[ENGINE_HOST_NAME_MAX + 1];
	uint16_t port;
	bool is_ipv6;     /* the name is such an address */
	bool is_loopback; /* the name stands for this machine alone */
};

/* engine_host_parse - ERR_INVAL says what is wrong with it */
int engine_host_parse(
    const char *text, struct engine_host *out, struct err *e) MUSTCHECK;
/*
 * engine_host_usual - paths of sockets where an engine usually listens, in the
 * order of the compatible server: Podman's and Docker's without root, then
 * with.  Returns how many; the caller frees each.
 *
 * The first two are of the calling user: below XDG_RUNTIME_DIR, or where that
 * usually is.
 */
size_t engine_host_usual(char *out[ENGINE_HOST_USUAL_MAX]);

#endif
