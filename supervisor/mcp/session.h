/*
 * session.h - stateless sessions: the id itself says all, under an HMAC
 *
 * An id is base64url: version of the form, revision, time of issue, 18 random
 * bytes, what the client said it is and can, and an HMAC-SHA256 over these and
 * the principal: 80 characters, or up to 256 when the client said something.
 * The principal is not in the text: for anybody else the id is simply none
 * of ours, in the same time and with the same answer as a made-up one.
 */
#ifndef MCP_SESSION_H
#define MCP_SESSION_H

#include "common/base.h"
#include "common/call.h"
#include "common/principal.h"
#include "supervisor/mcp/era.h"

#define SESSION_TEXT_MAX 256
#define SESSION_ID_LEN 18 /* the random part */
#define SESSION_ENDED_MAX 32768
#define SESSION_NAME_LEN 32

struct text_signer;
struct session_keeper;

struct session {
	uint8_t id[SESSION_ID_LEN];
	const struct era_revision *rev;
	unsigned int client_can; /* what the client declared (can.h) */
	int64_t issued_s;
	char client[CALL_CLIENT_MAX + 1]; /* "": it did not say */
	/* What it is called in records: hex digits of a digest of its id, by
	 * which nobody can use it. */
	char name[SESSION_NAME_LEN + 1];
};

/* key is copied; ttl_s counts from the issue */
struct session_keeper *session_keeper_new(
    const uint8_t *key, size_t key_len, uint32_t ttl_s);
void session_keeper_free(struct session_keeper *k);
/* session_signer - the keeper's, for what else is under its key (signed_text.h)
 */
const struct text_signer *session_signer(const struct session_keeper *k);

/* What a client says in initialize. */
struct session_said {
	/* UTF-8 without control characters, at most CALL_CLIENT_MAX bytes; "":
	 * nothing */
	const char *client;
	unsigned int client_can; /* can.h; the first eight bits are kept */
};
void session_issue(struct session_keeper *k, const struct era_revision *rev,
    const struct principal *who, const struct session_said *said, int64_t now_s,
    char out[SESSION_TEXT_MAX + 1]);
/* session_open - 0 and *out filled; ERR_NOTFOUND for whatever is not a live
 * session of this principal */
int session_open(struct session_keeper *k, const char *text,
    const struct principal *who, int64_t now_s, struct session *out) MUSTCHECK;
/* session_of_request - that of a request without one (MCP 2026-07-28): its id
 * is like no other, and it has no name; client as for session_issue */
void session_of_request(struct session *out, const struct era_revision *rev,
    const char *client, unsigned int client_can);
/* session_has_ended - by session_end, since it was opened */
bool session_has_ended(const struct session_keeper *k, const struct session *s);
/* session_end - it is not found from now on.  At most SESSION_ENDED_MAX are
 * remembered; beyond that the one that ended first is forgotten. */
void session_end(
    struct session_keeper *k, const struct session *s, int64_t now_s);

#endif
