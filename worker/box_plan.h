/*
 * box_plan.h - what a new box is to be, kept while it waits for its way
 */
#ifndef WORKER_BOX_PLAN_H
#define WORKER_BOX_PLAN_H

#include "worker/policy.h"

struct box_plan {
	struct policy_template template;
	struct policy_claim claim;
	char *texts[3]; /* what these point to */
};

/* box_plan_new - copies both */
struct box_plan *box_plan_new(
    const struct policy_template *template, const struct policy_claim *claim);
void box_plan_free(struct box_plan *p); /* NULL is fine */

#endif
