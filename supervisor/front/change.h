/*
 * change.h - a change that is told when all of it is on disk
 *
 * A change has parts: what the core writes, and the audit's rows of it.  Each
 * is begun with change_on_disk and change_part as its callback; the exchange
 * is answered, also when its client is gone, when the last one is done.
 */
#ifndef FRONT_CHANGE_H
#define FRONT_CHANGE_H

#include <jansson.h>

#include "supervisor/front/front.h"

struct change {
	struct http_exchange *x;
	struct acts *acts;
	json_t *answer;
	int status;
	unsigned int pending;
	enum change_shows {
		CHANGE_SHOWS_IT, /* the answer is what a GET gives now */
		CHANGE_SHOWS_ELSE
	} shows;
	bool is_repeatable; /* what was not on disk may be set again */
	char location[80];  /* of what was made; "" for nothing */
	int rc;             /* of the first that failed */
	struct err why;
};

struct change *change_new(const struct front *f, struct http_exchange *x);
void *change_part(struct change *c); /* one more */
void change_on_disk(int rc, const struct err *why, void *arg);
/* change_tell - for the audit; a part, too.  Texts may be NULL */
void change_tell(struct change *c, const char *what, const char *tenant,
    const char *subject, const char *detail);
/* change_answer - all parts are begun; takes the answer */
void change_answer(
    struct change *c, int status, json_t *answer, enum change_shows shows);
/* change_refuse - no part was begun */
void change_refuse(struct change *c, const struct err *e);

#endif
