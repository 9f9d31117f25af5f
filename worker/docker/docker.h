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
#include "worker/policy.h"

/* What an image below localhost/ is built from, unless told otherwise. */
#ifndef PKGDATADIR
#define PKGDATADIR "/usr/local/share/mcp-sandboxd"
#endif
#define DOCKER_INSTALLED_FILE PKGDATADIR "/images/sandbox/Dockerfile"

struct api_server;
struct event_base;

struct docker_settings {
	const char *host;       /* DOCKER_HOST, "" */
	const char *instance;   /* a label for people */
	const char *id;         /* the label by which ours are known */
	const char *dockerfile; /* to build policy->image from; NULL or
				 * empty: what is installed, for an image
				 * below localhost/; no such file: pulled */
	bool auto_build;        /* false: a missing image is an error */
	const struct policy *policy;
};

/* docker_server - what a client of the engine's API is made with */
extern const struct api_server docker_server;

/* docker_usual_sockets - paths of where an engine usually listens, in the
 * order in which they are tried; the caller frees each */
#define DOCKER_USUAL_SOCKETS 4
void docker_usual_sockets(char *out[DOCKER_USUAL_SOCKETS]);

/* docker_new - settings' strings are copied, policy and watch are kept.
 * ERR_INVAL for a host that is no unix:// URL. */
int docker_new(struct event_base *base, const struct docker_settings *s,
    const struct backend_watch *watch, void *arg, struct backend **out,
    struct err *e) MUSTCHECK;

/* docker_look_image - whether the engine has it, which is neither built nor
 * pulled.  ERR_WRONG_STATE: it has not, and why says how its first use will
 * make it; ERR_NOTFOUND: it has not, and nothing will; ERR_BACKEND: the engine
 * did not say.  Only while it is up. */
void docker_look_image(
    struct backend *b, const char *ref, backend_done_cb cb, void *arg);

#endif
