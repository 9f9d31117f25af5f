#include "supervisor/ctl/ctl_call.h"

#include <stdio.h>

#include "common/hex.h"
#include "common/js.h"
#include "common/layout.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/store/audit_walk.h"

#define PATH_BYTES 512
#define HASH_DIGITS 64

/* ---- list */

/* KEY=VALUE into the query: the server knows the keys. */
static int
add_filter(char path[PATH_BYTES], const char *word, struct err *e)
{
	static const char *const keys[] = {
	    "tenant", "what", "since", "limit", "cursor"};
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "._-";
	const char *value = strchr(word, '=');
	size_t used = strlen(path), n;
	bool is_key = false;

	for (size_t i = 0; i < ARRAY_LEN(keys) && value != NULL; i++)
		is_key = is_key ||
		    (strlen(keys[i]) == (size_t)(value - word) &&
			strncmp(word, keys[i], (size_t)(value - word)) == 0);
	n = value == NULL ? 0 : strlen(value + 1);
	if (!is_key || n == 0 || n > 64 || strspn(value + 1, good) != n)
		return err_set(e, ERR_INVAL,
		    "%.100s: want tenant=NAME, what=WORD, since=SECONDS (of "
		    "the clock, as date +%%s prints them), limit=N or cursor=N",
		    word);
	(void)snprintf(path + used, PATH_BYTES - used, "%c%s",
	    strchr(path, '?') == NULL ? '?' : '&', word);
	return 0;
}

int
ctl_audit_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"SEQ", "seq"},
	    {"AT", "at"}, {"WHAT", "what"}, {"TENANT", "tenant"},
	    {"SUBJECT", "subject"}, {"DETAIL", "detail"}, {"TIMES", "times"},
	    {"BY", "actor"}, {"FROM", "origin"}};
	char path[PATH_BYTES] = "/api/v1/audit";
	AUTO(auto_json) json_t *answer = NULL;

	for (int i = 0; i < c->n; i++)
		if (add_filter(path, c->words[i], e) != 0)
			return e->code;
	if (ctl_request(c->link, "GET", path, NULL, &answer, e) != 0)
		return e->code;
	ctl_print_list(c->o, answer, "audit", columns, ARRAY_LEN(columns));
	return 0;
}

/* ---- verify */

static json_int_t
seq_of(const json_t *mark)
{
	return json_integer_value(json_object_get(mark, "seq"));
}

static bool
is_hash(const char *text)
{
	return strlen(text) == HASH_DIGITS &&
	    strspn(text, "0123456789abcdef") == HASH_DIGITS;
}

/* A row that is known from elsewhere. */
struct known {
	long long seq;
	const char *hash; /* NULL: none */
};

static int
parse_known(char *const *words, int n, struct known *known, struct err *e)
{
	char *end;

	*known = (struct known){0, NULL};
	if (n == 0)
		return 0;
	known->seq = strtoll(words[0], &end, 10);
	known->hash = n == 2 ? words[1] : "";
	if (*end == '\0' && known->seq > 0 && is_hash(known->hash))
		return 0;
	return err_set(e, ERR_INVAL,
	    "want the number of a row and its hash, as \"audit head\" of the "
	    "log or an earlier verify has them");
}

static int
ask_known(struct ctl_link *l, const struct known *known, struct err *e)
{
	char path[PATH_BYTES];
	AUTO(auto_json) json_t *o = NULL;
	const json_t *row;

	(void)snprintf(path, sizeof(path), "/api/v1/audit?limit=1&cursor=%lld",
	    known->seq + 1);
	if (ctl_request(l, "GET", path, NULL, &o, e) != 0)
		return e->code;
	row = json_array_get(json_object_get(o, "audit"), 0);
	if (row != NULL && seq_of(row) == known->seq &&
	    strcmp(js_text(row, "hash"), known->hash) == 0)
		return 0;
	return err_set(e, ERR_WRONG_STATE,
	    "audit: row %lld is not the one with this hash: the chain was cut "
	    "or written anew, or the row is older than AUDIT_ROWS keeps",
	    known->seq);
}

static int
ask_piece(struct ctl_link *l, const char *head, const json_t *at, json_t **out,
    struct err *e)
{
	char path[PATH_BYTES], from[128] = "";

	if (at != NULL)
		(void)snprintf(from, sizeof(from), "after=%lld&hash=%.64s&",
		    (long long)seq_of(at), js_text(at, "hash"));
	(void)snprintf(path, sizeof(path), "/api/v1/audit/verify?%s%s%s", from,
	    head == NULL ? "" : "head=", head == NULL ? "" : head);
	return ctl_request(l, "GET", path, NULL, out, e);
}

static int
explain_bad(const json_t *o, struct err *e)
{
	const json_t *bad = json_object_get(o, "bad");

	if (!json_is_object(bad))
		return 0;
	return err_set(e, ERR_WRONG_STATE,
	    "audit: row %lld: %.100s: the table was changed from outside",
	    (long long)seq_of(bad), js_text(bad, "what"));
}

static void
print_verified(const struct ctl_options *o, const json_t *last, long long rows)
{
	const json_t *head = json_object_get(last, "head");
	AUTO(auto_json)
	json_t *all = json_pack("{s:I, s:O, s:O}", "rows", (json_int_t)rows,
	    "base", json_object_get(last, "base"), "head", head);

	ctl_print_done(o, all,
	    "%lld rows are as they were written; the newest is %lld %s", rows,
	    (long long)seq_of(head), js_text(head, "hash"));
}

static int
miss_head(const char *head, struct err *e)
{
	return err_set(e, ERR_WRONG_STATE,
	    "audit: no row has the hash %.12s...: the chain was cut or written "
	    "anew, or the row is older than AUDIT_ROWS keeps",
	    head);
}

static int
verify_server(const struct ctl_options *o, struct ctl_link *l,
    const struct known *known, struct err *e)
{
	AUTO(auto_json) json_t *last = NULL;
	bool has_head = o->head == NULL;
	long long rows = 0;
	json_t *next;

	do {
		if (ask_piece(
			l, o->head, json_object_get(last, "at"), &next, e) != 0)
			return e->code;
		json_decref(last);
		last = next;
		if (explain_bad(last, e) != 0)
			return e->code;
		rows += json_integer_value(json_object_get(last, "rows"));
		has_head =
		    has_head || json_is_true(json_object_get(last, "has_head"));
	} while (!json_is_true(json_object_get(last, "over")));
	if (known->hash != NULL && ask_known(l, known, e) != 0)
		return e->code;
	if (!has_head)
		return miss_head(o->head, e);
	print_verified(o, last, rows);
	return 0;
}

static json_t *
view_mark(const struct store_audit_mark *m)
{
	char text[HEX_BYTES(32)];

	hex_encode(m->hash, sizeof(m->hash), text);
	return json_pack("{s:I, s:s}", "seq", (json_int_t)m->seq, "hash", text);
}

static int
verify_file(const struct ctl_options *o, struct err *e)
{
	AUTO(auto_free) char *dir = xasprintf("%s/" LAYOUT_FRONT, o->data_dir);
	AUTO(auto_json) json_t *all = NULL;
	struct store_audit_check found;
	uint8_t hash[32] = {0};

	if (o->head != NULL)
		(void)!hex_decode(o->head, hash, sizeof(hash));
	if (audit_walk_file(dir, o->head == NULL ? NULL : hash, &found, e) != 0)
		return e->code;
	if (found.is_bad)
		return err_set(e, ERR_WRONG_STATE,
		    "audit: row %lld: %s: the table was changed from outside",
		    (long long)found.bad_seq, found.what);
	if (o->head != NULL && !found.has_known)
		return miss_head(o->head, e);
	all = json_pack("{s:o, s:o}", "base", view_mark(&found.base), "head",
	    view_mark(&found.head));
	print_verified(o, all, (long long)found.rows);
	return 0;
}

int
ctl_audit_verify(const struct ctl_call *c, struct err *e)
{
	const struct ctl_options *o = c->o;
	struct ctl_link *l = NULL;
	struct known known;
	int rc;

	if (parse_known(c->words, c->n, &known, e) != 0)
		return e->code;
	if (o->head != NULL && !is_hash(o->head))
		return err_set(
		    e, ERR_INVAL, "--head: want the 64 digits of a row's hash");
	if (o->offline && known.hash != NULL)
		return err_set(e, ERR_INVAL,
		    "--offline wants --head HASH, not the row's number");
	if (o->offline)
		return verify_file(o, e);
	if (ctl_link_open(o, &l, e) != 0)
		return e->code;
	rc = verify_server(o, l, &known, e);
	ctl_link_close(l);
	return rc;
}
