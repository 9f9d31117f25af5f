/*
 * bridge_door.h - the carrier over programs that the backend starts in boxes
 *
 * Where box and worker share no directory: "agent bridge" is started in the
 * box (backend_ops.exec), once for each connection and never for a command, and
 * joins its standard streams to the agent's own socket.  Each connection is a
 * fresh stream, so that nothing has to be taken up in its middle.
 *
 * The agent lets in who comes from outside of the box and says the box's
 * secret first (frame KNOCK).  The secret is made of the box's UUID and a key
 * that all workers of a DATA_DIR share, so that none has to be remembered.
 * When a connection ends it is made again, at once and then ever more rarely.
 */
#ifndef WORKER_LINK_BRIDGE_DOOR_H
#define WORKER_LINK_BRIDGE_DOOR_H

#include "common/base.h"
#include "worker/link/carrier.h"

#define BRIDGE_KEY_BYTES 32
#define BRIDGE_SECRET_BYTES 32
/* Two unanswered, and the stream is given up: in 12 s at most, before a run
 * that ended meanwhile counts as late (RUN_GRACE_MS / 2). */
#define BRIDGE_HEARTBEAT_MS 4000
#define BRIDGE_GREET_MS 4000
#define BRIDGE_BACKOFF_FIRST_MS 20
#define BRIDGE_BACKOFF_MAX_MS 2000

struct event_base;

/* bridge_carrier_new - backend is kept, the key copied */
struct carrier *bridge_carrier_new(struct event_base *base,
    struct backend *backend, const uint8_t key[BRIDGE_KEY_BYTES]);
/* bridge_secret - of that box */
void bridge_secret(const uint8_t key[BRIDGE_KEY_BYTES], const struct uuid *box,
    uint8_t out[BRIDGE_SECRET_BYTES]);

#endif
