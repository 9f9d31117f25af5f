/*
 * server_status.h - GET /api/v1/status: how it stands with the whole server
 *
 * Of the programs of the server the supervisor says how it stands with each
 * when a front is new, and each time that something changed (CREW_MEMBER).
 */
#ifndef FRONT_SERVER_STATUS_H
#define FRONT_SERVER_STATUS_H

#include "common/msg/msg_gen.h"

#define CREW_MEMBERS_MAX 80 /* more are not kept */

struct crew_members;

struct crew_members *crew_members_new(void);
void crew_members_free(struct crew_members *all); /* NULL is fine */
void crew_members_take(
    struct crew_members *all, const struct msg_crew_member *m);

#endif
