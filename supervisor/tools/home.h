/*
 * home.h - the sandbox of a call: found, opened, waited for until it is gone
 */
#ifndef TOOLS_HOME_H
#define TOOLS_HOME_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/sandbox.h"

struct core;
struct tool_call;

/* home_find - the one that the call's arguments name (args_identifier), or
 * NULL; identifier gets the name */
struct sandbox *home_find(const struct tool_call *t, const char *fallback,
    char identifier[SANDBOX_IDENTIFIER_MAX + 1]);
/* home_open - make one for runs, with the default image */
int home_open(struct core *core, struct principal *who, const char *identifier,
    uint32_t ttl_s, struct sandbox **out, struct err *e) MUSTCHECK;
/*
 * home_find_or_open - that of this identifier, made when there is none, if who
 * may have one run more; see core_admit_run
 *
 *	ttl_s	of a new one, and of one that is there from now on; 0: the
 *		default, and as it is
 */
int home_find_or_open(struct core *core, struct principal *who,
    const char *identifier, uint32_t ttl_s, struct sandbox **out, bool *is_new,
    struct err *e) MUSTCHECK;

/* A wait until nothing of a sandbox is left; part of a call's state. */
struct gone;

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
/* home_explain_gone - of one that was to be removed: what keeps it, for the
 * client
 */
void home_explain_gone(const struct err *why, struct err *e);

#endif
