/*
 * log_digest.h - what a run's log says, in bounded memory
 *
 * Per command and stream the first bytes (head), the last ones (tail) and
 * exactly how many came; per command when it began and how it ended; and the
 * run's own begin and end.  The digest knows how far it has looked, so that
 * the log of a live run is read once however often it is asked about, and it
 * passes by the output that is in neither head nor tail without reading it.
 *
 * It takes whole records only.  The first byte that makes no sense, by itself
 * or in the order (runlog_scan.h), is where it ends for good: broken.
 *
 *	stream:  head | dropped | tail       bytes = all three together
 *
 * When the heads of all streams would be more than caps.heads, the longest
 * become shorter: all that were cut for it end at the same length.
 *
 * The agent cuts records between characters of UTF-8, but the end of a head
 * and the beginning of a tail may fall into one.  Who shows them as text
 * leaves the halves out (utf8_complete_len, utf8_broken_start_len) and counts
 * them as dropped.
 *
 * A digest belongs to one thread at a time.  All functions but new and free
 * may be called from any; none knows of the loop (that is logs.h).
 */
#ifndef CORE_LOG_DIGEST_H
#define CORE_LOG_DIGEST_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/runlog_scan.h"

#define LOG_TAIL_BYTES 4096      /* the most a tail may be */
#define LOG_HEADS_MAX (4u << 20) /* heads of a run together, as it is shown */

struct log_caps {
	uint32_t head[2]; /* of stdout, of stderr */
	uint32_t tail;    /* of either, at most LOG_TAIL_BYTES */
	uint32_t merged;  /* 0: none is made */
	uint32_t heads;   /* of all heads together; 0: their own caps do */
};

struct log_stream {
	struct buf head; /* whole after log_digest_advance returned 0 */
	struct buf tail; /* what comes last, behind the head */
	uint64_t bytes;
	/* For log_digest.c: the records of the head stand in the log from
	 * head_from to head_to; absent means that its bytes are not in memory
	 * and have been read again up to fill_at.  tail_at: where the tail
	 * stands, which is not read yet; 0: it is in memory. */
	uint64_t head_from;
	uint64_t head_to;
	uint64_t fill_at;
	uint64_t tail_at;
	uint32_t head_len;
	bool absent;
};

enum log_command_state {
	LOG_COMMAND_WAITING,
	LOG_COMMAND_RUNNING,
	LOG_COMMAND_ENDED
};

struct log_command {
	enum log_command_state state;
	int64_t started_us; /* wall clock; 0: not yet */
	int64_t ended_us;
	struct runlog_end end;    /* when ended */
	struct buf left;          /* LEFT as it came, fit to be parsed, or "" */
	struct log_stream out[2]; /* stdout, stderr */
};

struct log_digest {
	uint64_t scanned;   /* bytes of the log that it covers */
	bool broken;        /* what stands there is no record */
	int64_t started_us; /* of the run; 0: not yet */
	int64_t ended_us;   /* 0: the log has no RUN_ENDED */
	struct runlog_run_end end;
	uint32_t ncommands;
	struct log_command *commands;
	struct buf merged; /* the heads of all, in the order they came */
	/* For log_digest.c. */
	struct log_caps caps;
	uint64_t heads; /* bytes of all heads, in memory or absent */
	uint32_t level; /* a head longer than this was cut for the others */
	struct runlog_check check;
	uint32_t nlate; /* streams whose tail is not read yet */
	bool final;     /* was decoded: never looks on */
};

struct log_digest *log_digest_new(
    uint32_t ncommands, const struct log_caps *caps);
void log_digest_free(struct log_digest *d);

/* Where a file is read to; memory needs none. */
struct log_work {
	uint8_t *chunk;
	size_t size;
};
#define LOG_WORK_BYTES (256u << 10)
/* So much is read before log_digest_advance returns for a breath. */
#define LOG_SLICE_BYTES (4u << 20)

/*
 * log_digest_advance - take what the log has up to upto
 *
 * upto is at least d->scanned, unless the log has become shorter, and at most
 * the log's length.
 *
 * Returns 0 when the digest covers all whole records below upto (it may cover
 * more already), 1 when it did a part and wants to be called again, ERR_SYS
 * when the log cannot be read: then try again later.  The digest is fit to be
 * looked at only after 0.
 */
int log_digest_advance(struct log_digest *d, const struct runlog_source *log,
    uint64_t upto, const struct log_work *work, struct err *e) MUSTCHECK;

/* log_digest_held - bytes of heads in memory; log_digest_drop - give them
 * back: the next advance reads them again from where they are in the log */
size_t log_digest_held(const struct log_digest *d);
void log_digest_drop(struct log_digest *d);

/*
 * A digest to be kept beside a long log that has ended, so that nobody needs
 * to walk it again.  It does not repeat what one read of the log gives: a head
 * that stands close together there is encoded as its place.  merged is not
 * kept.
 */
#define LOG_DIGEST_FROM_BYTES (1u << 20) /* shorter logs need none */
#define LOG_DIGEST_KEPT_MAX (256u << 10) /* of heads, encoded as bytes */
#define LOG_DIGEST_MAX (1u << 20)        /* encoded, all in all */
/* log_digest_encode - appends at most LOG_DIGEST_MAX; not while heads are
 * dropped (that is: after an advance that returned 0) */
void log_digest_encode(const struct log_digest *d, struct buf *out);
/* log_digest_decode - a digest that its next advance completes, without
 * looking at the log for more; ERR_PROTO when these bytes are none, or were
 * made with other caps */
int log_digest_decode(const uint8_t *p, size_t n, uint32_t ncommands,
    const struct log_caps *caps, struct log_digest **out,
    struct err *e) MUSTCHECK;

#endif
