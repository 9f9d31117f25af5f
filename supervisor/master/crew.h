/*
 * crew.h - the front, the workers, the envoys: who is started, paired,
 *restarted
 *
 *	- A job channel joins the front and each worker once both are READY;
 *	  each has a generation number that is never used again.
 *	- A dead worker leaves the front alone: it is told PEER_GONE.
 *	- A dead front takes the workers with it: they see the end of their
 *	  channels, exit 0 and are started anew.  That is no death.
 *	- Deaths are judged by restart.h, per child and per role.
 *	- What asks for an issuer's keys, and the courier, where there are such,
 *	  are as a worker.
 *	- Exit 77 or 78 of the front or of all workers ends the crew with the
 *	  same status; so does that of an envoy which has not been ready yet.
 */
#ifndef MASTER_CREW_H
#define MASTER_CREW_H

#include <sys/types.h>

#include "common/base.h"
#include "common/conf.h"
#include "supervisor/master/prepare.h"
#include "supervisor/master/tuning.h"

#define CREW_WORKERS_MAX 64

enum crew_health {
	CREW_WELL,
	CREW_DEGRADED
};
struct crew_ops {
	void (*on_ready)(void *arg); /* all are READY, the first time */
	/* A role is throttled, or was the last one and is no longer. */
	void (*on_health)(enum crew_health health, void *arg);
	/* After crew_stop, crew_kill or a refusal: nobody is left.  status
	 * is the exit status for the supervisor. */
	void (*on_end)(int status, void *arg);
};

struct crew;
struct event_base;
/* crew_new - 1..CREW_WORKERS_MAX workers; all is kept by pointer.  Of what is
 * given only the files of TLS change, by crew_offer_tls. */
struct crew *crew_new(struct event_base *base, const struct tuning *tuning,
    struct prepared *given, uint32_t workers, const struct crew_ops *ops,
    void *arg);
void crew_free(struct crew *c); /* kills who is left */

/* crew_configure - what children are told from now on; kept by pointer until
 * the next.  Running children are told again. */
void crew_configure(struct crew *c, const struct conf *conf);
void crew_set_log_level(struct crew *c, unsigned int level);
/* crew_offer_tls - files that were read anew, the crew's from now on: the
 * front has the say whether they are good, and then every later front gets
 * them */
void crew_offer_tls(struct crew *c, struct tlsfiles *offer);
void crew_start(struct crew *c); /* the front first */
void crew_reap(struct crew *c);  /* SIGCHLD came */
/* crew_stop - the front drains for at most left_ms, then the workers leave */
void crew_stop(struct crew *c, uint32_t left_ms);
void crew_kill(struct crew *c); /* at once */

#endif
