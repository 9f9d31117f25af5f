/*
 * runlog_check.h - is a log in the order that runlog.h promises?
 *
 * A struct runlog_check walks a log by its own scan.  Who only wants the
 * verdict and the records feeds it bytes (runlog_check_feed) or a file
 * (runlog_check_file); who wants the output, too, walks check->scan himself
 * and passes each header and record on.
 *
 * What cannot be right is ERR_PROTO: what runlog_scan_next refuses, a record
 * out of order, a command that is not below ncommands, counts of bytes that
 * do not agree, bytes behind RUN_ENDED.  Owns nothing and may be copied.
 */
#ifndef COMMON_RUNLOG_CHECK_H
#define COMMON_RUNLOG_CHECK_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"
#include "common/runlog_scan.h"

struct runlog_check {
	struct runlog_scan scan;
	uint32_t ncommands;
	int32_t command; /* running now, -1: none */
	int32_t last;    /* last ended, -1: none */
	bool started;
	bool ended;
	bool left;         /* the running command's LEFT has come */
	uint64_t bytes[2]; /* stdout, stderr of the running command */
};

void runlog_check_init(struct runlog_check *c, uint32_t ncommands);
/* After RUNLOG_HEADER and RUNLOG_RECORD of c->scan. */
int runlog_check_header(struct runlog_check *c, struct err *e) MUSTCHECK;
int runlog_check_record(struct runlog_check *c,
    const struct runlog_piece *payload, struct err *e) MUSTCHECK;

/* Each record other than output: header and payload together, as in the
 * log. */
typedef void (*runlog_record_cb)(const struct runlog_header *h,
    const uint8_t *record, size_t len, void *arg);
/* runlog_check_feed - the next n bytes, cut anywhere; cb may be NULL */
int runlog_check_feed(struct runlog_check *c, const uint8_t *p, size_t n,
    runlog_record_cb cb, void *arg, struct err *e) MUSTCHECK;
/* runlog_check_file - the bytes of a file up to upto, without reading the
 * output; ERR_SYS when they cannot be read */
int runlog_check_file(struct runlog_check *c, int fd, uint64_t upto,
    runlog_record_cb cb, void *arg, struct err *e) MUSTCHECK;

#endif
