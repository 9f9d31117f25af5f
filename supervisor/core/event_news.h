/*
 * event_news.h - what happens to the server as a whole, and to a tenant without
 * a row that would say so: noted as events
 *
 * Workers, the engine as each of them sees it, disks, writes that failed, runs
 * that begin, and refusals for a quota: the first at once, then one event a
 * minute for each tenant and quota, with how many there were; of at most
 * EVENT_NEWS_REFUSALS_MAX of these at a time.
 */
#ifndef CORE_EVENT_NEWS_H
#define CORE_EVENT_NEWS_H

#include "common/base.h"
#include "common/principal.h"
#include "supervisor/store/event_log.h"

#define EVENT_NEWS_REFUSALS_MAX 64
#define EVENT_NEWS_PERIOD_MS 60000

struct disk;
struct event_news;

struct event_news *event_news_new(struct store *store, struct disk *disk);
void event_news_free(struct event_news *n); /* NULL is fine */
/* event_news_began - runs below first_run were there before this process */
void event_news_began(struct event_news *n, uint64_t first_run);
/* event_news_tick - some times a second */
void event_news_tick(struct event_news *n, uint64_t now_ms);

/* event_news_worker - kind: EVENT_WORKER_READY or _LOST */
void event_news_worker(
    struct event_news *n, uint32_t worker, enum event_kind kind);
/* event_news_engine - what that worker says of it, perhaps again; why NULL: it
 * is there */
void event_news_engine(struct event_news *n, uint32_t worker, const char *why);
/* event_news_started - a record of this run came; before is what started_ms
 * was: nothing if it has not begun, or had */
void event_news_started(
    struct event_news *n, const struct store_run *row, int64_t before);
/* event_news_refused - quota is static text */
void event_news_refused(
    struct event_news *n, struct tenant_id tenant, const char *quota);
/* event_news_of_server - one without data */
void event_news_of_server(struct store *s, enum event_kind kind);

#endif
