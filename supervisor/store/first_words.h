/* first_words.h - what ran, in a line of a list */
#ifndef STORE_FIRST_WORDS_H
#define STORE_FIRST_WORDS_H

#include "common/base.h"

#define FIRST_WORDS_MAX 100  /* bytes, and what says that there are more */
#define FIRST_WORDS_READ 400 /* characters of a command that are enough */

/* first_words_of - the beginning of a command, which the caller frees: one
 * line, without control characters and double blanks, of whole characters.
 * shell is its text and argv_json, where that is empty, its words as the row
 * has them (schema/rows.txt); of either the beginning is enough. */
char *first_words_of(const char *shell, const char *argv_json);

#endif
