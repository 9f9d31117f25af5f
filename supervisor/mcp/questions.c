/*
 * questions.c - questions on their way to a client, and its answers back
 *
 * A book finds a question by its id, and walks its sets from the oldest on for
 * those whose time is over.  What a set's owner does when it is told may free
 * any set: after a callback nothing of the set is touched.
 */
#include "supervisor/mcp/questions.h"

#include <sys/queue.h>

#include "common/clock.h"
#include "common/hashmap.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/random.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/rpc.h"

#define PREFIX_LEN 16 /* random bytes, of each server once */

struct question {
	struct hash_entry by_id; /* while it is open */
	struct question_set *set;
	char *id, *key;
	json_t *asked;  /* {"method", "params"} */
	json_t *answer; /* NULL: it is open */
};

struct question_set {
	TAILQ_ENTRY(question_set) link; /* the book's, oldest first */
	struct question_book *book;
	uint8_t session[SESSION_ID_LEN];
	uint64_t until_ms;
	size_t bytes; /* of the answers */
	size_t n, open;
	struct question all[QUESTIONS_MAX];
	const struct question_ops *ops;
	void *arg;
};
TAILQ_HEAD(question_sets, question_set);

struct question_book {
	struct question_sets sets;
	struct hashmap by_id;
	char prefix[2 * PREFIX_LEN + 1];
	uint64_t last;
};

struct question_book *
question_book_new(void)
{
	struct question_book *b = xcalloc(1, sizeof(*b));
	uint8_t bytes[PREFIX_LEN];

	TAILQ_INIT(&b->sets);
	random_fill(bytes, sizeof(bytes));
	hex_encode(bytes, sizeof(bytes), b->prefix);
	return b;
}

void
question_book_free(struct question_book *b)
{
	if (b == NULL)
		return;
	hashmap_clear(&b->by_id);
	free(b);
}

/* ---- what may be asked */

static const struct question_kind {
	const char *method;
	enum mcp_can needs;
} kinds[] = {
    {"elicitation/create", MCP_CAN_ELICIT},
    {"sampling/createMessage", MCP_CAN_SAMPLE},
    {"roots/list", MCP_CAN_LIST_ROOTS},
};

/* false: it is none that a client is asked. */
static bool
needs_of(const json_t *question, enum mcp_can *needs)
{
	const json_t *params = json_object_get(question, "params");
	const char *method = js_text(question, "method");

	if (params != NULL && !json_is_object(params))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(kinds[i].method, method) != 0)
			continue;
		*needs = kinds[i].needs;
		if (*needs == MCP_CAN_ELICIT &&
		    strcmp(js_text(params, "mode"), "url") == 0)
			*needs = MCP_CAN_ELICIT_URL;
		return true;
	}
	return false;
}

int
questions_check(const json_t *questions, unsigned int client_can,
    enum mcp_can *lacks, struct err *e)
{
	const char *key;
	json_t *question;

	if (!json_is_object(questions) ||
	    json_object_size(questions) > QUESTIONS_MAX)
		return err_set(e, ERR_INVAL,
		    "questions to a client are an object of at most %d",
		    QUESTIONS_MAX);
	json_object_foreach ((json_t *)(uintptr_t)questions, key, question) {
		if (!needs_of(question, lacks))
			return err_set(e, ERR_INVAL,
			    "question %.80s is none that a client is asked",
			    key);
		if ((client_can & can_bit(*lacks)) == 0)
			return err_set(e, ERR_POLICY,
			    "the client has not declared what question %.80s "
			    "needs",
			    key);
	}
	return 0;
}

/* ---- sets */

struct question_set *
question_set_new(struct question_book *b, const uint8_t session[SESSION_ID_LEN],
    const json_t *questions, const struct question_ops *ops, void *arg)
{
	struct question_set *s = xcalloc(1, sizeof(*s));
	const char *key;
	json_t *asked;

	s->book = b;
	memcpy(s->session, session, SESSION_ID_LEN);
	s->until_ms = clock_mono_ms() + QUESTION_TIME_S * 1000;
	s->ops = ops;
	s->arg = arg;
	json_object_foreach ((json_t *)(uintptr_t)questions, key, asked) {
		struct question *q = &s->all[s->n++];

		q->set = s;
		q->id = xasprintf(
		    "%s-%llu", b->prefix, (unsigned long long)++b->last);
		q->key = xstrdup(key);
		q->asked = json_incref(asked);
		hashmap_put(&b->by_id, &q->by_id, hashmap_key_text(q->id));
	}
	s->open = s->n;
	TAILQ_INSERT_TAIL(&b->sets, s, link);
	return s;
}

void
question_set_free(struct question_set *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct question *q = &s->all[i];

		if (q->answer == NULL)
			hashmap_del(&s->book->by_id, &q->by_id);
		free(q->id);
		free(q->key);
		json_decref(q->asked);
		json_decref(q->answer);
	}
	TAILQ_REMOVE(&s->book->sets, s, link);
	free(s);
}

/* The texts are made first: the set may be gone after the first is sent. */
static void
send_all(struct mcp_exchange *x, char *texts[QUESTIONS_MAX], size_t n)
{
	exchange_pin(x);
	for (size_t i = 0; i < n; i++) {
		if (!x->ended)
			exchange_send(x, texts[i]);
		free(texts[i]);
	}
	(void)exchange_unpin(x);
}

static char *
question_text(const struct question *q)
{
	AUTO(auto_json)
	json_t *all = json_pack("{s:s, s:s, s:s, s:O*}", "jsonrpc", "2.0", "id",
	    q->id, "method", js_text(q->asked, "method"), "params",
	    json_object_get(q->asked, "params"));

	return js_dump(all);
}

void
question_set_send(const struct question_set *s, struct mcp_exchange *x)
{
	char *texts[QUESTIONS_MAX];
	size_t n = s->n;

	for (size_t i = 0; i < n; i++)
		texts[i] = question_text(&s->all[i]);
	send_all(x, texts, n);
}

static char *
withdrawal_text(const struct question *q)
{
	AUTO(auto_json)
	json_t *params = json_pack("{s:s, s:s}", "requestId", q->id, "reason",
	    "the request that asked this has ended");
	AUTO(auto_free) char *text = js_dump(params);

	return rpc_notification("notifications/cancelled", text);
}

void
question_set_withdraw(const struct question_set *s, struct mcp_exchange *x)
{
	char *texts[QUESTIONS_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].answer == NULL)
			texts[n++] = withdrawal_text(&s->all[i]);
	send_all(x, texts, n);
}

/* ---- answers */

static bool
is_id(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, const struct question, by_id)->id, key) == 0;
}

static struct question *
find_open(const struct question_book *b, const uint8_t session[SESSION_ID_LEN],
    const char *id)
{
	struct question *q =
	    HASH_OBJECT(hashmap_get(&b->by_id, hashmap_key_text(id), is_id, id),
		struct question, by_id);

	return q != NULL &&
		memcmp(q->set->session, session, SESSION_ID_LEN) == 0 ?
	    q :
	    NULL;
}

/* What is wrong with a response; NULL: nothing.  The caller frees. */
static char *
fault_of(const struct question *q, const json_t *response)
{
	const json_t *error = json_object_get(response, "error");
	const char *method = js_text(q->asked, "method");

	if (error != NULL)
		return xasprintf("%s: the client answered with error "
				 "%" JSON_INTEGER_FORMAT ": %.300s",
		    method, json_integer_value(json_object_get(error, "code")),
		    js_text(error, "message"));
	if (!json_is_object(json_object_get(response, "result")))
		return xasprintf(
		    "%s: the client's result is no object", method);
	if (q->set->bytes > QUESTION_ANSWERS_MAX)
		return xasprintf("%s: the client's answers are over the limit "
				 "of %u bytes",
		    method, QUESTION_ANSWERS_MAX);
	return NULL;
}

static json_t *
answers_of(const struct question_set *s)
{
	json_t *all = json_object();

	for (size_t i = 0; i < s->n; i++)
		json_object_set(all, s->all[i].key, s->all[i].answer);
	return all;
}

void
question_book_answer(struct question_book *b,
    const uint8_t session[SESSION_ID_LEN], const json_t *response, size_t bytes)
{
	const char *id = js_plain(json_object_get(response, "id"));
	struct question *q = id == NULL ? NULL : find_open(b, session, id);
	AUTO(auto_free) char *fault = NULL;
	struct question_set *s;

	if (q == NULL)
		return;
	s = q->set;
	s->bytes += bytes;
	fault = fault_of(q, response);
	hashmap_del(&b->by_id, &q->by_id);
	q->answer = fault != NULL ?
	    json_object() :
	    json_incref(json_object_get(response, "result"));
	s->open--;
	if (fault != NULL)
		s->ops->on_refusal(s->arg, fault);
	else if (s->open == 0)
		s->ops->on_answers(s->arg, answers_of(s));
}

static const char *
open_method(const struct question_set *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->all[i].answer == NULL)
			return js_text(s->all[i].asked, "method");
	return "";
}

void
question_book_tick(struct question_book *b, uint64_t mono_ms)
{
	struct question_set *s;

	/* Each one that is told goes, so the next one is the first. */
	while ((s = TAILQ_FIRST(&b->sets)) != NULL && s->until_ms <= mono_ms) {
		AUTO(auto_free)
		char *why = xasprintf("%s: the client did not answer within "
				      "%d minutes",
		    open_method(s), QUESTION_TIME_S / 60);

		s->ops->on_refusal(s->arg, why);
	}
}
