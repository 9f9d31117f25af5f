/*
 * history.h - the runs of a tenant, asked in many ways
 *
 * Answers come from an index beside the database, DATA_DIR/front/history.db,
 * which follows what the database commits (docs/decisions/0055): whoever
 * writes or deletes a row of a run, the index hears of it.  It may be removed
 * at any time while the server is down, and is made anew then.
 *
 * A question is answered as of the moment when it was asked, or later: what
 * was committed before, a run's end that a client was told, a delete, is in
 * the answer.  For that it waits up to HISTORY_WAIT_MS for the index; an index
 * that is further behind, is being made anew or cannot be used (no room, no
 * rights, busy) answers ERR_BACKEND and a text that begins with "history is
 * not available" and says why: worth another try.
 *
 * Runs that have not ended are in it as the database has them: their state is
 * queued (the database does not hear that a run began), and filters and sorts
 * of what only an end knows (end reason, exit code, duration, bytes, text,
 * artifacts) pass them over.
 *
 * Callbacks run on the loop's thread, later, once, unless the question was
 * canceled or the store closed; what they are given is freed after they
 * return.  Statistics, exports and searches for the beginning of a word have a
 * thread of their own: they delay no other question.  Neither does a list for
 * which so much has to be looked through that its first page is not found at
 * once: it goes there, too, and after some seconds it is ERR_INVAL.
 *
 * Tenants have their questions answered in turns, so who asks much waits for
 * himself.  When HISTORY_WAITING_MAX of a tenant wait
 * (HISTORY_WAITING_QUICK_MAX lists), one more is ERR_LIMIT.
 */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "supervisor/store/store.h"

#define HISTORY_WAIT_MS 1000
/* Questions of a tenant that wait at a time: statistics and searches for the
 * beginnings of words, and lists. */
#define HISTORY_WAITING_MAX 8
#define HISTORY_WAITING_QUICK_MAX 64
#define HISTORY_LIMIT_MAX 500      /* runs of a list's page */
#define HISTORY_EXPORT_MAX 2000    /* of an export's */
#define HISTORY_COUNT_MAX 10000    /* a larger total is said to be "at least" */
#define HISTORY_CURSOR_MAX 64      /* characters of a cursor */
#define HISTORY_Q_MAX 512          /* bytes of a text to look for */
#define HISTORY_Q_WORDS_MAX 16     /* words and phrases of it */
#define HISTORY_PREFIX_MIN 3       /* characters before a final asterisk */
#define HISTORY_GROUPS_MAX 1000    /* groups of statistics */
#define HISTORY_ARTIFACTS_MAX 1000 /* of a run, that can be found */
#define HISTORY_TEXT_MAX 65536     /* bytes of a run's text that can be found */
/* of the beginning and the end of a stream */
#define HISTORY_OUTPUT_BYTES 4096

/* What a run has to be; all that is set must hold.  Texts match whole and
 * exactly, but q. */
struct history_filter {
	const char *identifier; /* these: NULL: any */
	const char *sandbox;    /* its container's name, or its UUID */
	const char *principal;
	const char *tool;
	const char *language;
	uint32_t states;               /* 1 << enum run_state, OR-ed; 0: any */
	enum runlog_reason end_reason; /* 0: any */
	bool has_exit_code;
	int32_t exit_code; /* of the last command that ran; -1: none ran */
	int64_t since_ms;  /* created then or later; 0: any */
	int64_t until_ms;  /* created before; 0: any */
	int64_t min_duration_ms; /* from its start to its end; 0: any */
	int64_t max_duration_ms; /* 0: any */
	const char *artifact; /* one's path, or what is behind its last slash */
	const uint8_t *digest; /* one's SHA-256, 32 bytes */
	/*
	 * Words, all of which must occur in the run's commands or in the
	 * beginnings and ends of their outputs; "a phrase" in double quotes,
	 * the beginning of a word with an asterisk behind it.  Letters'
	 * case and accents do not matter; what is neither letter, digit nor
	 * underscore parts words (os.path is the phrase "os path").
	 */
	const char *q;
};

enum history_sort {
	HISTORY_CREATED,
	HISTORY_DURATION, /* ended runs only */
	HISTORY_BYTES     /* stdout, stderr and artifacts; ended runs only */
};
enum history_order {
	HISTORY_DESCENDING,
	HISTORY_ASCENDING
};
enum history_total {
	HISTORY_NO_TOTAL,
	HISTORY_TOTAL
};

struct history_query {
	struct history_filter filter;
	enum history_sort sort;
	enum history_order order;
	enum history_total total;
	size_t limit; /* at least 1 */
	/*
	 * NULL: from the beginning; else history_page.next of the page before,
	 * with the same tenant, filter, sort and order (another is
	 * ERR_INVAL, as is what never was one).  It stays good whatever runs
	 * come, end or go.
	 */
	const char *cursor;
};

struct history_line { /* texts are never NULL */
	struct uuid uuid;
	char *identifier;
	char *sandbox_name;
	char *principal;
	char *client;
	char *tool;
	char *language;
	enum run_state state;
	enum runlog_reason end_reason; /* 0: has not ended */
	int32_t exit_code;             /* -1: none */
	char *error;
	char *command; /* the first words of its first command */
	int64_t created_ms, started_ms, ended_ms;
	int64_t duration_ms; /* -1: has not ended */
	uint64_t stdout_bytes, stderr_bytes;
	uint32_t artifacts;
	uint64_t artifact_bytes;
	uint64_t cpu_us;
	uint64_t memory_peak_bytes;
};

struct history_page {
	struct history_line *lines;
	size_t n;
	/* More may come: "" when not.  A page can have fewer lines than the
	 * limit, even none, and yet a next: so much was looked through,
	 * or is in it, that another question should have its turn. */
	char next[HISTORY_CURSOR_MAX + 1];
	bool has_total;
	bool is_at_least; /* the total is a lower bound */
	uint64_t total;   /* of all pages */
	/* Asked for words: runs created before have no text any more
	 * (history_bound), and what they said is not found.  0: all that were
	 * asked for have theirs. */
	int64_t text_since_ms;
};
/* rc ERR_INVAL: filter or cursor, the text begins with the parameter's name;
 * ERR_BACKEND: not available; ERR_LIMIT: too many wait; see above */
typedef void (*history_page_cb)(
    int rc, const struct history_page *page, const struct err *why, void *arg);

struct history_asking;
struct history_asking *history_list(struct store *s, struct tenant_id tenant,
    const struct history_query *q, history_page_cb done, void *arg);
/* history_export - the next step of a long walk: a page of up to
 * HISTORY_EXPORT_MAX; go on with its next until that is "".  Each step sees
 * the history as it is then.  None is refused as too many: who exports bounds
 * how many walks go on. */
struct history_asking *history_export(struct store *s, struct tenant_id tenant,
    const struct history_query *q, history_page_cb done, void *arg);

enum history_group {
	HISTORY_BY_DAY, /* of UTC, in which they were created */
	HISTORY_BY_IDENTIFIER,
	HISTORY_BY_END_REASON,
	HISTORY_BY_TOOL,
	HISTORY_BY_PRINCIPAL,
	HISTORY_BY_STATE
};
struct history_sum { /* of ended runs */
	char *key;   /* "2026-03-01" for a day, else the word or name */
	uint64_t runs;
	int64_t p50_ms, p95_ms, p99_ms; /* durations; up to 1/64 too low */
	uint64_t cpu_us;
	uint64_t output_bytes; /* stdout and stderr */
	uint64_t artifact_bytes;
};
struct history_sums {
	struct history_sum *sums; /* days in order, else most runs first */
	size_t n;
	/* Of more than HISTORY_GROUPS_MAX groups the smaller ones are left
	 * out: how many, and their runs.  is_more_unknown: there are even
	 * more groups than that. */
	uint64_t more_groups;
	uint64_t more_runs;
	bool is_more_unknown;
	/* So many runs were looked through that it ends here: those created
	 * before are not in it.  0: all are. */
	int64_t cut_ms;
	int64_t text_since_ms; /* as a page's */
};
typedef void (*history_sums_cb)(
    int rc, const struct history_sums *sums, const struct err *why, void *arg);
/* history_stats - of the ended runs that the filter lets pass */
struct history_asking *history_stats(struct store *s, struct tenant_id tenant,
    const struct history_filter *f, enum history_group by, history_sums_cb done,
    void *arg);

/* history_cancel - before done was called: it will not be, and nothing more is
 * read for it */
void history_cancel(struct history_asking *a);

/* history_bound - how many bytes of text the index may have, from now on; 0:
 * any.  Beyond it the oldest of the tenant that has most leaves: its run is
 * found by all but its words.  What left comes back when the index is made
 * anew. */
void history_bound(struct store *s, uint64_t text_bytes);

/* For who administers. */
struct history_state {
	bool is_available;
	uint64_t lag_rows;  /* that were written and are not in it yet */
	uint64_t lag_ms;    /* how long the first of them has waited; 0: none */
	uint64_t made_anew; /* times, since the start */
	uint64_t text_bytes; /* what history_bound bounds */
	/* Why it is not available, "" when it is; may name files. */
	char why[ERR_TEXT_MAX];
};
/* history_state - without waiting for the index */
void history_state(struct store *s, struct history_state *out);

#endif
