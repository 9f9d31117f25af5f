/* languages.h - what execute_code can run: the table images/languages.json */
#ifndef TOOLS_LANGUAGES_H
#define TOOLS_LANGUAGES_H

#include <jansson.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

struct languages;

struct language {
	const char *name;
	const char *file;
	const json_t *aliases; /* arrays of strings, or nothing */
	const json_t *compile; /* likewise */
	const json_t *run;
	bool takes_crlf; /* as LF: to it a CR is a part of a word */
};

/* languages_load - ERR_PARSE names the row that is wrong */
int languages_load(struct languages **out, struct err *e) MUSTCHECK;
void languages_free(struct languages *l); /* NULL too */
/* languages_find - by name or alias, in any case; NULL: there is none */
const struct language *languages_find(
    const struct languages *l, const char *name);
/* languages_names - "python, bash, sh" */
void languages_names(const struct languages *l, struct buf *out);

#endif
