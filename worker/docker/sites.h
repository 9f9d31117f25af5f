/*
 * sites.h - where an engine may be, by the settings
 */
#ifndef WORKER_DOCKER_SITES_H
#define WORKER_DOCKER_SITES_H

#include "common/base.h"
#include "common/engine_host.h"
#include "common/err.h"
#include "worker/http/api.h"
#include "worker/http/certs.h"

#define SITES_MAX ENGINE_HOST_USUAL_MAX
#define SITE_WHY_MAX 200

struct conf;

/* One that may be tried. */
struct site {
	char
	    *where; /* a socket's path, or tcp://...: for api.h and for texts */
	char why[SITE_WHY_MAX]; /* it was passed over; "": it was not */
};
struct sites {
	struct site all[SITES_MAX]; /* in the order in which they are tried */
	size_t n;
	bool is_chosen_here; /* DOCKER_HOST names none */
	bool is_tcp;         /* the only one */
	uint16_t port;       /* of it; 0: none */
	bool is_loopback;    /* it is this machine's */
	/* DOCKER_TLS_VERIFY: files of DOCKER_CERT_PATH; NULL: no TLS, or no
	 * certificate of ours. */
	char *directory;
	char *ca, *cert, *key;
	/* The directory was not there at the start, and Landlock is. */
	bool is_awaited;
};

/* sites_init - ERR_INVAL: which setting is wrong */
int sites_init(
    struct sites *s, const struct conf *conf, struct err *e) MUSTCHECK;
void sites_clear(struct sites *s);
/* sites_is_there - a Unix socket is; else why says what was found */
bool sites_is_there(struct site *s);
/* sites_use_tcp - calls of api go there from now on (api_set_address) */
int sites_use_tcp(
    const struct sites *s, struct api *api, struct err *e) MUSTCHECK;
/* sites_check_files - whether the files of DOCKER_CERT_PATH are good now, and
 * until when; without TLS they are.  ERR_BACKEND names file and user. */
int sites_check_files(
    const struct sites *s, struct certs_look *out, struct err *e) MUSTCHECK;
/* sites_came_late - the directory and its ca.pem are there, and it was not when
 * this process was fenced in (common/fence.h), which can never read in it */
bool sites_came_late(const struct sites *s);
/* sites_say_passed - those that were passed over, in size bytes; "": none */
void sites_say_passed(const struct sites *s, char *out, size_t size);

#endif
