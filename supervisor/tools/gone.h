/*
 * gone.h - a call that waits until nothing of a sandbox is left
 *
 * Part of a tool call's state.
 */
#ifndef TOOLS_GONE_H
#define TOOLS_GONE_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/core/bus.h"

struct gone;
struct sandbox;

/* why NULL: nothing is left; else what keeps it there (the server tries on) */
typedef void (*gone_cb)(struct gone *g, const struct err *why);

struct gone {
	struct sandbox *sandbox; /* NULL: not waiting */
	gone_cb cb;
	void *arg;
	struct bus_member member;
};

/* gone_watch - cb is called once, when it is removed by whomever */
void gone_watch(struct gone *g, struct sandbox *sb, gone_cb cb, void *arg);
/* gone_start - and it is removed now; cb may be called inside */
void gone_start(struct gone *g, struct sandbox *sb, gone_cb cb, void *arg);
void gone_clear(struct gone *g); /* at any time */
/* gone_explain - of one that was to be removed: what keeps it, for the client
 */
void gone_explain(const struct err *why, struct err *e);

#endif
