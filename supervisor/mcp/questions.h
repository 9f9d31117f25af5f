/*
 * questions.h - what a client is asked, until it has answered
 *
 * Until 2025-11-25 a question is a JSON-RPC request of ours on the event stream
 * of the request that it is asked for.  Its response is a POST of its own in
 * the same session, and is known by both: another session's answer to an id
 * that it guessed is nobody's.  A set is all questions of one request: it has
 * its answers when the last one came.
 *
 *	question_set_new --- question_set_send
 *	       |
 *	    waits ---------> on_answers     each has a result
 *	       |
 *	       +-----------> on_refusal     one has an error, is no result, is
 *	                                    too large, or the time is over
 *
 * Whoever made a set frees it, at the latest when one of these is called.
 */
#ifndef MCP_QUESTIONS_H
#define MCP_QUESTIONS_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/mcp/exchange.h"
#include "supervisor/mcp/offer.h"

#define QUESTIONS_MAX 16 /* in a set */
#define QUESTION_TIME_S 600
#define QUESTION_ANSWERS_MAX (4u << 20) /* bytes of a set */

struct question_book; /* those of a server that wait */
struct question_set;

struct question_ops {
	void (*on_answers)(void *arg, json_t *answers); /* taken over */
	void (*on_refusal)(void *arg, const char *why); /* for the model */
};

struct question_book *question_book_new(void);
void question_book_free(struct question_book *b); /* it is empty */
/* question_book_answer - response: a JSON-RPC response, of bytes in all, in
 * this session.  One that nobody waits for is ignored. */
void question_book_answer(struct question_book *b,
    const uint8_t session[SESSION_ID_LEN], const json_t *response,
    size_t bytes);
void question_book_tick(struct question_book *b, uint64_t mono_ms);

/*
 * questions_check - may a client that can this be asked so?
 *
 * ERR_INVAL: they are not as mcp_call_ask says.  ERR_POLICY: the client has
 * not declared *lacks.
 */
int questions_check(const json_t *questions, unsigned int client_can,
    enum mcp_can *lacks, struct err *e) MUSTCHECK;

/* question_set_new - questions are checked, and there is one at least */
struct question_set *question_set_new(struct question_book *b,
    const uint8_t session[SESSION_ID_LEN], const json_t *questions,
    const struct question_ops *ops, void *arg);
void question_set_free(struct question_set *s); /* NULL is fine */
/* question_set_send - x, which has an event stream, may have ended then, and
 * whoever waits for it been told */
void question_set_send(const struct question_set *s, struct mcp_exchange *x);
/* question_set_withdraw - the client need not answer what it did not; likewise
 */
void question_set_withdraw(
    const struct question_set *s, struct mcp_exchange *x);

#endif
