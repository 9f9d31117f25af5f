/*
 * crew_members.h - the programs of the server, as the supervisor tells of them
 *
 * It says how it stands with each when a front is new, and each time that
 * something changed (CREW_MEMBER).
 */
#ifndef FRONT_CREW_MEMBERS_H
#define FRONT_CREW_MEMBERS_H

#include <jansson.h>

#include "common/base.h"
#include "common/msg/msg_gen.h"

#define CREW_MEMBERS_MAX 80 /* more are not kept */

struct crew_members;

struct crew_members *crew_members_new(void);
void crew_members_free(struct crew_members *all); /* NULL is fine */
void crew_members_take(
    struct crew_members *all, const struct msg_crew_member *m);
/* crew_members_view - a list of objects, in the order in which they were told
 * of; now_ms is the wall clock's */
json_t *crew_members_view(const struct crew_members *all, int64_t now_ms);
/* crew_members_started_ms - of that program; 0: nobody said */
int64_t crew_members_started_ms(
    const struct crew_members *all, const char *name);

#endif
