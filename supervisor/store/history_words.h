/*
 * history_words.h - how a run's text becomes words, for FTS5: the tokenizer
 * "tenant"
 *
 * It is FTS5's unicode61 behind a mark: a text begins with its tenant's number
 * and a blank, and each word of it is kept as "number:word".  So two tenants'
 * words are apart wherever FTS5 looks for one.  Words longer than
 * HISTORY_WORD_MAX bytes are cut.
 */
#ifndef STORE_HISTORY_WORDS_H
#define STORE_HISTORY_WORDS_H

#include "common/base.h"

#define HISTORY_WORD_MAX 96
#define HISTORY_MARK_MAX 20 /* digits of a number */

struct sqlite3;

/* history_words_install - on a connection; one of sqlite3's codes */
int history_words_install(struct sqlite3 *h) MUSTCHECK;

#endif
