/*
 * child.h - the control channel as a child program (front, worker) sees it
 *
 * The supervisor starts children with the channel on descriptor 3 and nothing
 * else open above 2.  child_start says HELLO and collects the configuration;
 * then on_config runs (open what is needed; a failure is said as LAST_WORDS
 * and the process exits with its status), then READY is sent.  PING, LOG_LEVEL
 * and the end of the channel (exit 0: the supervisor is gone) are handled
 * inside.
 */
#ifndef COMMON_CHILD_H
#define COMMON_CHILD_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

#define CHILD_CTL_FD 3
#define CHILD_KEYS_INDEX 64    /* of MSG_ROLE_KEYS, behind all workers */
#define CHILD_COURIER_INDEX 65 /* of MSG_ROLE_COURIER */
#define CHILD_PEERS (CHILD_COURIER_INDEX + 1)
#define CHILD_ROLES (MSG_ROLE_COURIER + 1)
#define TLS_FILE_MAX (1 << 20) /* bytes of each file of TLS_... */

#define CHILD_NAME_MAX 24

struct event_base;
struct child;
/* child_name - "front", "worker/1", "keys", "courier": for log lines */
void child_name(enum msg_role role, uint32_t index, char out[CHILD_NAME_MAX]);

struct child_ops {
	/* First configuration, complete.  0, or an exit status (exit.h)
	 * with *e. */
	int (*on_config)(
	    struct child *c, const struct conf *conf, void *arg, struct err *e);
	/* A later one (SIGHUP); may be NULL. */
	void (*on_reload)(const struct conf *conf, void *arg);
	/* A sealed copy of one of the files of TLS_..., the callee's; and that
	 * all of them came, again after a reload: 0, or -1 when they are not
	 * good.  Those of the start come before on_config, and on_tls_end is
	 * not asked.  Both may be NULL. */
	void (*on_tls_file)(enum msg_tls_part part, int fd, void *arg);
	int (*on_tls_end)(void *arg);
	/* A word of TENANTS_FILE for a worker, before on_config; 0, or an error
	 * that ends the channel.  May be NULL. */
	int (*on_ceiling)(
	    const char *tenant, const char *word, void *arg, struct err *e);
	/* A sealed copy of SECRETS_KEY_FILE, the callee's; before on_config.
	 * NULL: it is closed. */
	void (*on_secrets_key)(int fd, void *arg);
	void (*on_listen)(int fd, const char *address, void *arg); /* front */
	/* A fresh job channel: for a worker to the front (index 0), for the
	 * front to worker index, or to an envoy.  fd is the callee's. */
	void (*on_peer)(uint32_t index, uint32_t generation, int fd, void *arg);
	void (*on_peer_gone)(
	    uint32_t index, uint32_t delay_ms, bool throttled, void *arg);
	/* That worker leaves pings unanswered, or answers again; may be
	 * NULL. */
	void (*on_peer_quiet)(uint32_t index, bool quiet, void *arg);
	/* How it stands with a program of the server; may be NULL. */
	void (*on_crew_member)(const struct msg_crew_member *m, void *arg);
	void (*on_drain)(uint32_t left_ms, void *arg); /* finish and exit 0 */
};
/* child_start - role and index for HELLO; ops and arg are kept.  The conf
 * given to callbacks is the child's own and stays valid. */
struct child *child_start(struct event_base *base, enum msg_role role,
    uint32_t index, const struct child_ops *ops, void *arg);
/* child_instance - what the sandboxes of this server bear; "" before
 * on_config, and when the supervisor said none */
const char *child_instance(const struct child *c);
/* child_counts - work done since start; sent every 5 s when changed and at once
 * after the first */
void child_counts(struct child *c, uint32_t done);
/* child_still_starting - from on_config, which takes long: at least every
 * minute, and the supervisor waits on */
void child_still_starting(struct child *c);
/* child_die - say why over the channel and exit */
NORETURN void child_die(struct child *c, int status, const char *fmt, ...)
    PRINTF(3, 4);

#endif
