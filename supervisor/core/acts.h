/*
 * acts.h - what was done to the server, and by whom: one place to hear of it
 *
 * Administration, and what is refused at the door, is told here and nowhere
 * else.  Now it becomes a line of the log; a record that cannot be changed
 * afterwards joins here.  No secret is ever part of an act.
 */
#ifndef CORE_ACTS_H
#define CORE_ACTS_H

#include "common/base.h"
#include "common/principal.h"

struct act {
	const char *what; /* "tenant.add" "token.revoke" "auth.failure" */
	const struct principal *who; /* NULL: nobody who is known */
	const char *origin;          /* an address; NULL: the server itself */
	const char *request_id;      /* NULL: none */
	const char *tenant;          /* it is about, NULL: none */
	const char *subject;         /* a token's id, a quota; NULL: none */
	const char *detail;          /* NULL: none */
};

void acts_tell(const struct act *a);

#endif
