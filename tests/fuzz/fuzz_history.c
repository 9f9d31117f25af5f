/*
 * fuzz_history.c - what a client asks the history: a text to look for, a
 * cursor
 * libs: store
 *
 * The first line of an input is a cursor, the rest a text.  What is taken of a
 * text is a query of FTS5 and nothing else: words of one tenant.
 */
#include <sqlite3.h>

#include "supervisor/store/history_parse.h"
#include "supervisor/store/history_words.h"
#include "tests/fuzz/fuzz.h"

static const struct tenant_id tenant = {17};

/* One run of this tenant and one of another, both of these words. */
static sqlite3_stmt *
prepare_search(void)
{
	sqlite3_stmt *st;
	sqlite3 *h;

	REQUIRE(sqlite3_open(":memory:", &h) == SQLITE_OK);
	REQUIRE(history_words_install(h) == SQLITE_OK);
	REQUIRE(sqlite3_exec(h,
		    "CREATE VIRTUAL TABLE word USING fts5 (body, content = '',"
		    " columnsize = 0, tokenize = 'tenant');"
		    "INSERT INTO word (rowid, body) VALUES"
		    " (1, '17 alpha beta or not near'),"
		    " (2, '18 alpha beta or not near')",
		    NULL, NULL, NULL) == SQLITE_OK);
	REQUIRE(
	    sqlite3_prepare_v2(h, "SELECT rowid FROM word WHERE word MATCH ?1",
		-1, &st, NULL) == SQLITE_OK);
	return st;
}

static void
try_text(const char *text)
{
	static sqlite3_stmt *st;
	struct history_words words;
	struct err e = {0};
	int rc;

	if (st == NULL)
		st = prepare_search();
	if (history_parse_q(text, tenant, &words, &e) != 0) {
		REQUIRE(e.code == ERR_INVAL && strncmp(e.msg, "q: ", 3) == 0);
		return;
	}
	REQUIRE(sqlite3_bind_text(st, 1, words.match, -1, SQLITE_STATIC) ==
	    SQLITE_OK);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		REQUIRE(sqlite3_column_int64(st, 0) == 1);
	REQUIRE(rc == SQLITE_DONE);
	(void)sqlite3_reset(st);
	free(words.match);
}

static void
try_cursor(const char *text)
{
	const struct history_query q = {.limit = 1};
	const uint64_t question = history_question_hash(tenant, &q);
	char again[HISTORY_CURSOR_MAX + 1];
	struct history_cursor c;
	struct err e = {0};

	if (history_cursor_parse(text, question, &c, &e) != 0) {
		REQUIRE(strncmp(e.msg, "cursor: ", 8) == 0);
		return;
	}
	REQUIRE(c.place >= 0 && c.value >= 0);
	history_cursor_format(&c, question, again);
	REQUIRE(strlen(again) == strlen(text));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	char *rest = fuzz_cut_line(text);

	try_cursor(text);
	try_text(rest == NULL ? text : rest);
	return 0;
}
