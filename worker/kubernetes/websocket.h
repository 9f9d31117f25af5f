/*
 * websocket.h - the client's side of a WebSocket (RFC 6455), without its socket
 *
 * Bytes that came are given to websocket_take, and bytes that are to go are
 * appended to a buffer of the caller's: all frames in full, so that nothing
 * stands between two of them.  A message goes as one masked frame: the API
 * server takes every frame for a message.  Nothing may be put before the server
 * has switched: it loses what comes with the request.
 *
 * PING is answered, CLOSE too; fragments are joined.
 */
#ifndef WORKER_KUBERNETES_WEBSOCKET_H
#define WORKER_KUBERNETES_WEBSOCKET_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

/* Of one message, in either direction, and all of its fragments. */
#define WEBSOCKET_MESSAGE_MAX (1u << 20)
#define WEBSOCKET_NORMAL_CLOSURE 1000
#define WEBSOCKET_KEY_LEN 24

struct websocket;

/* Binary messages as they come: a message's bytes in as many pieces as they
 * arrive in.  None may free the websocket. */
struct websocket_user {
	void (*on_begin)(void *arg);
	void (*on_bytes)(const uint8_t *p, size_t n, void *arg);
	void (*on_end)(void *arg);
};

/* websocket_make_key - for Sec-WebSocket-Key, another each time */
void websocket_make_key(char key[WEBSOCKET_KEY_LEN + 1]);
/* websocket_is_answer - accept, the value of Sec-WebSocket-Accept, is the
 * answer to that key; NULL is none */
bool websocket_is_answer(const char *key, const char *accept);

/* websocket_new - user is kept by pointer */
struct websocket *websocket_new(const struct websocket_user *user, void *arg);
void websocket_free(struct websocket *w);

/*
 * websocket_take - n bytes came; what they are to be answered with is appended
 * to back
 *
 * 0; or ERR_PROTO: they break the protocol, and back ends with a CLOSE that
 * says so; or ERR_LIMIT: back has no room.  After an error, and after the
 * server's CLOSE, what comes is not looked at.
 */
int websocket_take(struct websocket *w, const uint8_t *p, size_t n,
    struct buf *back, struct err *e) MUSTCHECK;
/* websocket_is_closed - the server's CLOSE came */
bool websocket_is_closed(const struct websocket *w);

/* websocket_put - a message of n bytes, at most WEBSOCKET_MESSAGE_MAX; nothing
 * after a CLOSE of either side.  to must have the room. */
void websocket_put(
    struct websocket *w, const uint8_t *p, size_t n, struct buf *to);
/* websocket_close - CLOSE with that code; nothing after the first one */
void websocket_close(struct websocket *w, uint16_t code, struct buf *to);

#endif
