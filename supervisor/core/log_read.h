/* log_read.h - records of a log, and parts of them, from a place on */
#ifndef CORE_LOG_READ_H
#define CORE_LOG_READ_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog_scan.h"

struct log_at {          /* a place in a log */
	uint64_t offset; /* of a record */
	uint32_t skip;   /* bytes of its output that are behind */
};

/* Records as in the log; the first and the last may be a part of one, whose
 * header then has the length of that part. */
struct log_records {
	const uint8_t *p;
	size_t n;      /* 0: there is no whole one yet */
	uint64_t next; /* the offset behind them: where to read on */
	struct log_at from;
	uint32_t skip; /* bytes of the record at next that are given; 0: none */
};

struct log_read {
	struct runlog_source source;
	uint32_t ncommands;
	struct log_at from;
	uint64_t upto;              /* at most the log's length */
	size_t max;                 /* bytes; enough for a record but output */
	struct log_records records; /* what was read */
	uint8_t *mem;               /* of records; the caller frees */
};

/* log_read_records - ERR_SYS: the log cannot be read; ERR_PROTO: there is no
 * record, or no such part of one, at from */
int log_read_records(struct log_read *r, struct err *e) MUSTCHECK;

#endif
