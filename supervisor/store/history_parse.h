/*
 * history_parse.h - the texts of a question that are more than words to
 * compare: what to look for (history.h, q), and cursors
 *
 * Both come from clients.
 */
#ifndef STORE_HISTORY_PARSE_H
#define STORE_HISTORY_PARSE_H

#include "supervisor/store/history.h"

struct history_words {
	char *match; /* for FTS5; to be freed */
	bool has_prefix;
};
/* history_parse_q - ERR_INVAL: the text says what is wrong and begins with
 * "q" */
int history_parse_q(const char *q, struct tenant_id tenant,
    struct history_words *out, struct err *e) MUSTCHECK;

/* Where a page begins: behind this run, by the sort's value and then by its
 * place (history_index.h). */
struct history_cursor {
	int64_t value; /* duration or bytes; 0 for HISTORY_CREATED */
	int64_t place;
};
/* A cursor is good for one tenant and question only: it has a hash of all but
 * limit and total in it. */
uint64_t history_question_hash(
    struct tenant_id tenant, const struct history_query *q);
void history_cursor_format(const struct history_cursor *c, uint64_t question,
    char out[HISTORY_CURSOR_MAX + 1]);
int history_cursor_parse(const char *text, uint64_t question,
    struct history_cursor *out, struct err *e) MUSTCHECK;

#endif
