/*
 * postbox.h - what the front has sent by the courier, and what came of it
 *
 * A request is given to mcp-sandboxd-courier (supervisor/courier) and answered
 * once.  When that process ends, what it had under way is answered with status
 * 0 as any other failure is: it may have been sent all the same, and one of
 * these may be why it ended.
 */
#ifndef FRONT_POSTBOX_H
#define FRONT_POSTBOX_H

#include "common/base.h"

#define POSTBOX_MAX 48 /* requests under way; the courier takes some more */

struct event_base;
struct msg_post_hook;
struct postbox;

struct postbox_answer {
	uint32_t status; /* of HTTP; 0: none, and why says why */
	uint32_t retry_after_s;
	const char *why;
};
/* May put in the next. */
typedef void (*postbox_cb)(const struct postbox_answer *a, void *arg);

/* postbox_new - on_room: it was full or shut, and is no more */
struct postbox *postbox_new(
    struct event_base *base, void (*on_room)(void *arg), void *arg);
void postbox_free(struct postbox *b); /* answers nobody; NULL is fine */
/* postbox_attach - the channel to the courier, ours; a newer one replaces it */
void postbox_attach(struct postbox *b, int fd);
/* postbox_room - how many more requests it takes now */
size_t postbox_room(const struct postbox *b);

/* postbox_put_hook, postbox_put_spans - only with room; all of it is copied.
 * Its number, which becomes the message's id, is never 0 and never given again.
 */
uint64_t postbox_put_hook(struct postbox *b, const struct msg_post_hook *hook,
    postbox_cb done, void *arg);
uint64_t postbox_put_spans(
    struct postbox *b, const struct span *body, postbox_cb done, void *arg);
/* postbox_forget - its answer is not wanted any more; a number of which it was
 * had is fine */
void postbox_forget(struct postbox *b, uint64_t number);

#endif
