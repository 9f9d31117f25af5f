/* log_read.h - records of a log, parts of them, and bytes of its output, from a
 * place on */
#ifndef CORE_LOG_READ_H
#define CORE_LOG_READ_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog_scan.h"
#include "supervisor/core/log_digest.h"

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

/*
 * Bytes of a log's output by their place in it: of the output of one command or
 * of all, of one stream or of both as they came, the bytes from an offset on.
 * The log is walked from its beginning, its headers alone where nothing is
 * wanted, in slices.
 */
#define LOG_RANGE_ALL UINT32_MAX /* commands */
#define LOG_RANGE_BYTES_MAX (1u << 20)

enum log_range_stream { /* bits */
	LOG_RANGE_STDOUT = 1,
	LOG_RANGE_STDERR = 2,
	LOG_RANGE_BOTH = 3
};

struct log_range {
	/* What is wanted. */
	uint32_t command; /* its index, or LOG_RANGE_ALL */
	enum log_range_stream streams;
	uint64_t offset;
	size_t max; /* at most LOG_RANGE_BYTES_MAX */
	/* What was found. */
	struct buf bytes;
	uint64_t total;   /* of such output that the log has */
	uint64_t claimed; /* that ended commands say they wrote; more than
			   * total: the rest did not come */
	bool is_broken;   /* behind total stands what is no record */
	struct runlog_scan scan;
};

/* log_range_init - zeroed but for what is wanted */
void log_range_init(struct log_range *r);
void log_range_clear(struct log_range *r);
/* log_range_advance - up to upto, at most the log's length; 0: that is done,
 * 1: a slice of it, call again; ERR_SYS */
int log_range_advance(struct log_range *r, const struct runlog_source *source,
    uint64_t upto, const struct log_work *work, struct err *e) MUSTCHECK;

#endif
