#include "supervisor/store/history_words.h"

#include <sqlite3.h>

#include "common/xmalloc.h"

struct words { /* of a connection */
	fts5_tokenizer inner;
	void *inner_arg;
};

struct words_of { /* of a table */
	const struct words *words;
	Fts5Tokenizer *inner;
};

/* One text. */
struct words_text {
	void *fts;
	int (*token)(void *, int, const char *, int, int, int);
	size_t nmark;
	char word[HISTORY_MARK_MAX + 1 + HISTORY_WORD_MAX];
};

static int
words_create(void *arg, const char **argv, int argc, Fts5Tokenizer **out)
{
	/* With underscores in them, names of programs are one word. */
	const char *inner[] = {
	    "remove_diacritics", "2", "tokenchars", "_", NULL};
	struct words_of *o = xcalloc(1, sizeof(*o));
	int rc;

	(void)argv;
	(void)argc;
	o->words = arg;
	rc = o->words->inner.xCreate(o->words->inner_arg, inner, 4, &o->inner);
	if (rc != SQLITE_OK) {
		free(o);
		return rc;
	}
	*out = (Fts5Tokenizer *)o;
	return SQLITE_OK;
}

static void
words_delete(Fts5Tokenizer *t)
{
	struct words_of *o = (struct words_of *)t;

	o->words->inner.xDelete(o->inner);
	free(o);
}

static int
word_cb(void *arg, int flags, const char *word, int n, int start, int end)
{
	struct words_text *t = arg;

	if (n > HISTORY_WORD_MAX)
		n = HISTORY_WORD_MAX;
	memcpy(t->word + t->nmark, word, (size_t)n);
	return t->token(t->fts, flags, t->word, (int)t->nmark + n, start, end);
}

static int
words_split(Fts5Tokenizer *tokenizer, void *fts, int flags, const char *text,
    int n, int (*token)(void *, int, const char *, int, int, int))
{
	const struct words_of *o = (struct words_of *)tokenizer;
	struct words_text t = {.fts = fts, .token = token};

	while (t.nmark < (size_t)n && t.nmark < HISTORY_MARK_MAX &&
	    text[t.nmark] >= '0' && text[t.nmark] <= '9') {
		t.word[t.nmark] = text[t.nmark];
		t.nmark++;
	}
	if (t.nmark == 0 || t.nmark == (size_t)n || text[t.nmark] != ' ')
		return SQLITE_ERROR; /* nobody's */
	text += t.nmark;
	n -= (int)t.nmark;
	t.word[t.nmark++] = ':';
	return o->words->inner.xTokenize(o->inner, &t, flags, text, n, word_cb);
}

static fts5_api *
find_api(sqlite3 *h)
{
	sqlite3_stmt *st = NULL;
	fts5_api *api = NULL;

	if (sqlite3_prepare_v2(h, "SELECT fts5(?1)", -1, &st, NULL) ==
	    SQLITE_OK) {
		(void)sqlite3_bind_pointer(st, 1, &api, "fts5_api_ptr", NULL);
		(void)sqlite3_step(st);
	}
	(void)sqlite3_finalize(st);
	return api;
}

int
history_words_install(sqlite3 *h)
{
	static fts5_tokenizer outer = {words_create, words_delete, words_split};
	fts5_api *api = find_api(h);
	struct words *w;
	int rc;

	if (api == NULL)
		return SQLITE_ERROR;
	w = xcalloc(1, sizeof(*w));
	rc = api->xFindTokenizer(api, "unicode61", &w->inner_arg, &w->inner);
	if (rc == SQLITE_OK)
		return api->xCreateTokenizer(api, "tenant", w, &outer, free);
	free(w);
	return rc;
}
