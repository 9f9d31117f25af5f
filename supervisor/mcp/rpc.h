/*
 * rpc.h - JSON-RPC 2.0 envelopes: one message in, one text out
 *
 * Ids and progress tokens are strings or integers of 64 bits (MCP 2025-11-25:
 * "string or integer").  Nobody here computes with them, so they are kept as
 * JSON text ("17", "\"a\""), as they are compared and sent back.
 */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define RPC_DEPTH_MAX 128     /* nested objects and arrays in a body */
#define RPC_VALUES_MAX 100000 /* values in a body */
#define RPC_STRING_MAX 256    /* bytes of a string id */
#define RPC_BATCH_MAX 100     /* messages in a batch */

enum rpc_kind {
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE,
	RPC_BATCH /* 1 to RPC_BATCH_MAX objects: root; rpc_read reads each */
};

struct rpc_message {
	enum rpc_kind kind;
	json_t *root;            /* owns what the borrowed ones point to */
	const char *method;      /* borrowed; NULL in a response */
	json_t *params;          /* borrowed; any type; NULL: none */
	json_t *removed;         /* what was taken out of params; or NULL */
	char *id;                /* JSON text; NULL: none */
	char *request_id;        /* params.requestId as JSON text, or NULL */
	const char *traceparent; /* params._meta.traceparent, or NULL */
	char *progress_token;    /* params._meta.progressToken, likewise */
};

/*
 * rpc_parse - read a body: one message, or several
 *
 * Returns 0, or MCP_PARSE_ERROR or MCP_INVALID_REQUEST with the text for the
 * client in *e.  out is always to be cleared; out->id is there after a
 * failure too when an id could be read.
 */
int rpc_parse(const void *body, size_t len, struct rpc_message *out,
    struct err *e) MUSTCHECK;
/* rpc_read - the same for a message of a batch; value gets a reference */
int rpc_read(json_t *value, struct rpc_message *out, struct err *e) MUSTCHECK;
void rpc_clear(struct rpc_message *m);

/* Texts to send, the caller's to free.  id, result, params: JSON text.
 * rpc_error leaves the id out when it is NULL (MCP 2025-11-25, schema); data
 * is only read and may be NULL. */
char *rpc_result(const char *id, const char *result);
char *rpc_error(
    const char *id, int code, const char *message, const json_t *data);
char *rpc_notification(const char *method, const char *params);

#endif
