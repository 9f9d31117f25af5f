/*
 * runlog_scan.h - the one walker over the records of a run's log
 *
 * struct runlog_scan takes a log in pieces that are cut anywhere and says, a
 * step at a time, what is in them.  It checks what a header alone can say
 * (runlog_parse_header), not the order of records.
 *
 * struct runlog_walk feeds a scan from a file or from memory, and does not
 * read the payload that its caller skips: a log of which only the headers are
 * wanted costs a fraction of its length.
 *
 * struct runlog_check walks a log by its own scan and checks the order that
 * runlog.h promises.  Who only wants the verdict and the records feeds it bytes
 * (runlog_check_feed) or a file (runlog_check_file); who wants the output, too,
 * walks check->scan himself and passes each header and record on.
 * What cannot be right is ERR_PROTO: what runlog_scan_next refuses, a record
 * out of order, a command that is not below ncommands, counts of bytes that
 * do not agree, bytes behind RUN_ENDED.
 *
 * These own nothing and may be copied.
 */
#ifndef COMMON_RUNLOG_SCAN_H
#define COMMON_RUNLOG_SCAN_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"

enum runlog_step {
	RUNLOG_MORE,   /* every byte was taken; the next ones are needed */
	RUNLOG_HEADER, /* a record begins: scan->at, scan->header */
	RUNLOG_OUTPUT, /* bytes of the payload of stdout or stderr */
	RUNLOG_RECORD  /* the whole payload of any other record */
};

struct runlog_scan {
	uint64_t offset; /* bytes scanned: where the next piece begins */
	uint64_t at;     /* where the record of the last step begins; after
			  * RUNLOG_MORE the one that is not whole yet */
	struct runlog_header header; /* since RUNLOG_HEADER */
	bool inside;                 /* its payload is to come */
	uint32_t left;               /* output: bytes of it to come */
	size_t nhead;
	uint8_t head[RUNLOG_HEADER_BYTES + RUNLOG_RECORD_MAX];
};

/* What a step found.  Valid until the next step. */
struct runlog_piece {
	const uint8_t *p;
	size_t n;
};

/* runlog_scan_init - to begin with the record at this offset of the log */
void runlog_scan_init(struct runlog_scan *s, uint64_t offset);
/*
 * runlog_scan_next - the next step from the *n bytes at *p
 *
 * Moves *p and *n on behind what was taken.  Call until RUNLOG_MORE: a record
 * without payload is a step that takes no byte.  ERR_PROTO at the first byte
 * that can be no record; scan->at then says where that record begins.
 */
int runlog_scan_next(struct runlog_scan *s, const uint8_t **p, size_t *n,
    struct runlog_piece *piece, struct err *e) MUSTCHECK;
/* runlog_is_output - stdout or stderr */
bool runlog_is_output(enum runlog_type type);

struct runlog_source {
	int fd;             /* when mem is NULL */
	const uint8_t *mem; /* at least as long as the walk goes */
};

/* After so much output was skipped, so much is read, then more and more. */
#define RUNLOG_WALK_JUMP_BYTES 16384
#define RUNLOG_WALK_FIRST_BYTES 512

struct runlog_walk {
	struct runlog_scan *scan;
	struct runlog_source source;
	uint64_t upto;
	uint64_t nread; /* bytes read so far, for callers that bound a turn */
	uint8_t *chunk;
	size_t size;
	size_t ahead;     /* how much to read next */
	const uint8_t *p; /* read, not scanned */
	size_t n;
};

/*
 * runlog_walk_init - from scan->offset to upto
 *
 * The scan stays the caller's and can be walked or fed on later.  chunk has
 * size bytes for reading a file; a walk over memory needs none.
 */
void runlog_walk_init(struct runlog_walk *w, struct runlog_scan *scan,
    const struct runlog_source *source, uint64_t upto, uint8_t *chunk,
    size_t size);
/* runlog_walk_next - as runlog_scan_next; RUNLOG_MORE: upto is reached.
 * ERR_SYS when the file cannot be read or is shorter than upto. */
int runlog_walk_next(
    struct runlog_walk *w, struct runlog_piece *piece, struct err *e) MUSTCHECK;
/* runlog_walk_skip - the next n bytes of the output at hand, or as many as
 * there are (none: nothing happens), go by; they are not read unless they
 * have been */
void runlog_walk_skip(struct runlog_walk *w, uint32_t n);

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
