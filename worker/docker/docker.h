/*
 * docker.h - a backend over the Docker engine's API (Podman's speaks it too)
 *
 * Finds the engine, keeps asking whether it is there (every 5 s, every 2 s
 * while it is not), follows its events, and turns backend.h's wishes into
 * requests.
 */
#ifndef WORKER_DOCKER_DOCKER_H
#define WORKER_DOCKER_DOCKER_H

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"

/* What an image below localhost/ is built from, unless told otherwise. */
#ifndef PKGDATADIR
#define PKGDATADIR "/usr/local/share/mcp-sandboxd"
#endif
#define DOCKER_INSTALLED_FILE PKGDATADIR "/images/sandbox/Dockerfile"

struct api_server;
struct backend_start;
struct conf;

/* docker_server - what a client of the engine's API is made with */
extern const struct api_server docker_server;

/* docker_open - as backends.h says.  ERR_INVAL for a host that is no unix://
 * URL. */
int docker_open(const struct conf *conf, const struct backend_start *start,
    struct backend **out, struct err *e) MUSTCHECK;
/* docker_ask_facts - the first of the configured sockets that answers */
int docker_ask_facts(const struct conf *conf, struct backend_facts *out,
    struct err *e) MUSTCHECK;
/* docker_read_facts - from the answers to /version and /info; only what is of
 * the right type */
void docker_read_facts(const char *version, const char *info, int64_t now_ms,
    struct backend_facts *out);

#endif
