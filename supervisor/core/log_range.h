/*
 * log_range.h - bytes of a log's output by their place in it
 *
 * Of the output of one command or of all, of one stream or of both as they
 * came, the bytes from an offset on.  The log is walked from its beginning,
 * its headers alone where nothing is wanted, in slices.
 */
#ifndef CORE_LOG_RANGE_H
#define CORE_LOG_RANGE_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/runlog_scan.h"
#include "supervisor/core/log_digest.h"

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
