/*
 * metric_news.h - what a worker counted, as additions for its front
 *
 * A list of entries: u32 cell, u64 what was added to it.  The cells are those
 * between METRIC_WORKERS_FIRST and METRIC_WORKERS_END.
 */
#ifndef COMMON_METRIC_NEWS_H
#define COMMON_METRIC_NEWS_H

#include "common/buf.h"
#include "common/err.h"
#include "common/metric.h"

#define METRIC_NEWS_ENTRY_BYTES 12
/* Of one cell at a time; more than a machine counts in a second. */
#define METRIC_NEWS_MAX (UINT64_C(1) << 44)

/* metric_news_write - appends what was added to this process's cells since
 * the last call; nothing when nothing was */
void metric_news_write(struct buf *b);
/* metric_news_take - adds it here, all or nothing; ERR_PROTO: a cell that is no
 * worker's, too large a number, or half an entry */
int metric_news_take(const uint8_t *p, size_t n, struct err *e) MUSTCHECK;

#endif
