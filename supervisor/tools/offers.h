/*
 * offers.h - what is offered beside tools: resources, prompts, completion
 *
 *	sandbox://runs/RUN			what is recorded of a run, JSON
 *	sandbox://runs/RUN/output		what it printed, text
 *	sandbox://runs/RUN/artifacts/PATH	a file that it left
 *
 * No result of a tool depends on one of them: many clients read none.
 */
#ifndef TOOLS_OFFERS_H
#define TOOLS_OFFERS_H

#include "common/base.h"
#include "common/err.h"

struct core;
struct languages;
struct mcp;
struct mcp_call;
struct mcp_completion;

/* ---- resources.c */

#define RESOURCE_BYTES_MAX (1u << 20) /* of a file that is read whole */
#define RESOURCE_PAGE 50              /* runs in a page of the list */

struct resources;

/* resources_new - registers them with m; both are kept by pointer */
struct resources *resources_new(struct core *core, struct mcp *m);
/* resources_free - calls that are not answered end as failed; NULL is fine */
void resources_free(struct resources *all);

/* ---- prompt_texts.c */

/* prompt_texts_add - registers them */
int prompt_texts_add(struct mcp *m, struct err *e) MUSTCHECK;

/* ---- completions.c */

struct completions;

/* completions_new - registers it with m; all are kept by pointer */
struct completions *completions_new(
    struct core *core, const struct languages *languages, struct mcp *m);
/* completions_free - as resources_free */
void completions_free(struct completions *all);

#endif
