#include "supervisor/store/history_take.h"

#include <unistd.h>

#include "common/buf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/runlog_scan.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/first_words.h"
#include "supervisor/store/history.h"
#include "supervisor/store/history_sql.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"

#define PLACE_MASK ((1 << HISTORY_PLACE_BITS) - 1)
/* More than two records: in so many bytes one begins. */
#define WINDOW_BYTES (3u * RUNLOG_PAYLOAD_MAX)
#define HALF HISTORY_OUTPUT_BYTES
#define ROUND_MAX 16 /* texts that leave; then another tenant may have most */

/* ---- output as text
 *
 * What can be looked for: the first and the last HISTORY_OUTPUT_BYTES of each
 * stream of each command.  Of a long log only its beginning and its end are
 * read, of which the end is searched for where records begin.  What makes no
 * sense is left out: it is the sandbox's own. */

/* UTF-8 without control characters but \n; as much as has room in b. */
static void
add_text(struct buf *b, const uint8_t *p, size_t n)
{
	uint8_t *to;

	if (n + 1 > buf_room(b))
		n = buf_room(b) > 0 ? buf_room(b) - 1 : 0;
	if (n == 0)
		return;
	to = buf_reserve(b, n + 1);
	if (to == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] < 0x20 || p[i] == 0x7f ? '\n' : p[i];
	/* A byte that is part of no character parts words, as a blank. */
	for (size_t i = 0; i < n;) {
		size_t len = to[i] < 0x80 ? 1 :
		    to[i] >= 0xf0         ? 4 :
		    to[i] >= 0xe0         ? 3 :
					    2;

		if (to[i] >= 0x80 &&
		    (i + len > n || !utf8_is_valid(to + i, len))) {
			to[i] = '\n';
			len = 1;
		}
		i += len;
	}
	to[n] = '\n';
	buf_commit(b, n + 1);
}

/* ---- one stream of one command */

struct stream {
	uint8_t head[HALF];
	size_t nhead;
	uint8_t tail[HALF]; /* a ring */
	uint64_t ntail;     /* bytes that went by, all in all */
};

static void
stream_take(struct stream *s, const uint8_t *p, size_t n)
{
	size_t room = HALF - s->nhead;

	if (s->ntail == 0 && room > 0) {
		if (room > n)
			room = n;
		memcpy(s->head + s->nhead, p, room);
		s->nhead += room;
		p += room;
		n -= room;
	}
	if (n > HALF) {
		s->ntail += n - HALF;
		p += n - HALF;
		n = HALF;
	}
	for (size_t i = 0; i < n; i++)
		s->tail[s->ntail++ % HALF] = p[i];
}

/* Head and tail in one, when nothing is missing between them: a word may
 * stand on both sides. */
static void
stream_flush(struct stream *s, struct buf *b)
{
	uint8_t *all = xmalloc(2 * (size_t)HALF);
	size_t n = s->nhead;

	memcpy(all, s->head, n);
	if (s->ntail > HALF) {
		add_text(b, all, n);
		n = 0;
	}
	for (uint64_t i = s->ntail > HALF ? s->ntail - HALF : 0; i < s->ntail;
	     i++)
		all[n++] = s->tail[i % HALF];
	add_text(b, all, n);
	free(all);
	s->nhead = 0;
	s->ntail = 0;
}

/* ---- records */

struct history_piece {
	struct stream streams[2];
	int32_t command; /* whose, -1: nobody's yet */
};

static void
output_flush(struct history_piece *o, struct buf *b)
{
	stream_flush(&o->streams[0], b);
	stream_flush(&o->streams[1], b);
}

/* From a record's beginning on, until there is none. */
static void
output_take(struct history_piece *o, struct buf *b, const uint8_t *p, size_t n)
{
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct err ignored;
	int step;

	runlog_scan_init(&scan, 0);
	while (
	    (step = runlog_scan_next(&scan, &p, &n, &piece, &ignored)) >= 0 &&
	    step != RUNLOG_MORE) {
		if (step == RUNLOG_HEADER &&
		    runlog_is_output(scan.header.type) &&
		    scan.header.command != o->command) {
			output_flush(o, b);
			o->command = scan.header.command;
		}
		if (step == RUNLOG_OUTPUT)
			stream_take(
			    &o->streams[scan.header.type == RUNLOG_STDERR],
			    piece.p, piece.n);
	}
}

/* Heads and tails are read only as far as they were written. */
static struct history_piece *
output_new(void)
{
	struct history_piece *o = xmalloc(sizeof(*o));

	for (size_t i = 0; i < ARRAY_LEN(o->streams); i++) {
		o->streams[i].nhead = 0;
		o->streams[i].ntail = 0;
	}
	o->command = -1;
	return o;
}

/* Of a log in memory. */
static void
add_log(struct buf *b, const uint8_t *log, size_t n)
{
	struct history_piece *o = output_new();

	output_take(o, b, log, n);
	output_flush(o, b);
	free(o);
}

/* Records that follow each other up to the end exactly. */
static bool
is_chain(const uint8_t *p, size_t n)
{
	struct runlog_header h;
	struct err ignored;

	while (n >= RUNLOG_HEADER_BYTES &&
	    runlog_parse_header(p, &h, &ignored) == 0 &&
	    n - RUNLOG_HEADER_BYTES >= h.length) {
		p += RUNLOG_HEADER_BYTES + h.length;
		n -= RUNLOG_HEADER_BYTES + h.length;
	}
	return n == 0;
}

/* Who writes records into his output is found first; a chain of such that
 * goes to the very end has him find his own text, and nobody another's. */
static size_t
find_chain(const uint8_t *p, size_t n)
{
	unsigned int tries = 64;

	for (size_t at = 0; at < n && tries > 0; at++) {
		if (p[at] != RUNLOG_MAGIC)
			continue;
		if (is_chain(p + at, n - at))
			return at;
		tries--;
	}
	return n;
}

static size_t
read_window(int fd, uint64_t at, uint8_t *p, size_t n)
{
	size_t got = 0;
	ssize_t r;

	while (
	    got < n && (r = pread(fd, p + got, n - got, (off_t)(at + got))) > 0)
		got += (size_t)r;
	return got;
}

/* Of a log in a file of so many bytes. */
static void
add_file(struct buf *b, int fd, uint64_t bytes)
{
	uint8_t *window = xmalloc(2 * (size_t)WINDOW_BYTES);
	struct history_piece *o = output_new();
	size_t n, at;

	n = read_window(fd, 0, window,
	    bytes < 2 * (uint64_t)WINDOW_BYTES ? (size_t)bytes : WINDOW_BYTES);
	output_take(o, b, window, n);
	if (bytes >= 2 * (uint64_t)WINDOW_BYTES) {
		n = read_window(fd, bytes - WINDOW_BYTES, window, WINDOW_BYTES);
		at = find_chain(window, n);
		/* What follows is not what came right behind. */
		for (size_t i = 0; i < 2; i++)
			stream_take(&o->streams[i], (const uint8_t *)"\n", 1);
		output_take(o, b, window + at, n - at);
	}
	output_flush(o, b);
	free(o);
	free(window);
}

/* ---- how much text there is
 *
 * A run whose place is below its tenant's first has no text: what it said left
 * (history_shed), or came too late to be kept.  All others that ended have
 * theirs, so one number says what a search for words can find.
 */

int
history_corpus_load(struct history_corpus *c, struct db *db, struct err *e)
{
	struct db_call call;
	int rc;

	*c = (struct history_corpus){0};
	db_call_init(&call, db, DB_INDEX_CORPUS);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	c->bytes = db_get_uint(&call);
	c->is_shed = db_get_int(&call) != 0;
	db_call_end(&call);
	return 0;
}

int
history_corpus_flush(struct history_corpus *c, struct db *db, struct err *e)
{
	struct db_call call;

	if (c->change == 0)
		return 0;
	db_call_init(&call, db, DB_INDEX_CORPUS_ADD);
	db_put_uint(&call, c->tenant);
	db_put_int(&call, c->change);
	c->change = 0;
	return db_call_run(&call, e);
}

/* So many bytes more, or less, in the transaction that has them so. */
static int
corpus_add(struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t change, struct err *e)
{
	if (c->tenant != tenant && history_corpus_flush(c, db, e) != 0)
		return e->code;
	c->tenant = tenant;
	c->change += change;
	if (change > 0)
		c->put += (uint64_t)change;
	if (change < 0 && c->bytes < (uint64_t)-change)
		c->bytes = 0;
	else
		c->bytes += (uint64_t)change;
	return 0;
}

/* 1: a run at this place is to have its text, 0: not. */
static int
corpus_takes(const struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t place, struct err *e)
{
	uint64_t first;

	if (!c->is_shed)
		return 1;
	if (db_ask_with(db, DB_INDEX_CORPUS_FIRST, tenant, &first, e) != 0)
		return e->code;
	return place >= (int64_t)first;
}

/* 1: of the tenant that has most, and its first place. */
static int
corpus_most(struct history_corpus *c, struct db *db, uint64_t *tenant,
    int64_t *first, struct err *e)
{
	struct db_call call;
	int rc;

	if (history_corpus_flush(c, db, e) != 0)
		return e->code;
	db_call_init(&call, db, DB_INDEX_CORPUS_MOST);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	*tenant = db_get_uint(&call);
	*first = db_get_int(&call);
	db_call_end(&call);
	return 1;
}

/* What is below that place has no text any more. */
static int
corpus_left(struct history_corpus *c, struct db *db, uint64_t tenant,
    int64_t first, struct err *e)
{
	struct db_call call;

	if (history_corpus_flush(c, db, e) != 0)
		return e->code;
	c->is_shed = true;
	db_call_init(&call, db, DB_INDEX_CORPUS_LEFT);
	db_put_uint(&call, tenant);
	db_put_int(&call, first);
	return db_call_run(&call, e);
}

int
history_corpus_reach(struct db *db, uint64_t tenant, int64_t from, int64_t to,
    int64_t *since_ms, struct err *e)
{
	const int64_t low = ((int64_t)1 << HISTORY_PLACE_BITS) - 1;
	struct db_call call;
	int64_t first;
	int rc;

	*since_ms = 0;
	db_call_init(&call, db, DB_HISTORY_CORPUS_FIRST);
	db_put_uint(&call, tenant);
	db_put_int(&call, from);
	db_put_int(&call, to);
	rc = db_call_step(&call, e);
	if (rc != 1)
		return rc;
	first = db_get_int(&call);
	db_call_end(&call);
	/* Of a millisecond that is cut in two nothing is promised. */
	*since_ms = (first + low) >> HISTORY_PLACE_BITS;
	return 0;
}

/* ---- a run */

struct run_source {
	int64_t id;
	struct history_line line;
	uint64_t tenant;
	uint64_t spool_bytes;
	uint8_t *log;
	size_t log_len;
};

void
history_line_clear(struct history_line *l)
{
	free(l->identifier);
	free(l->sandbox_name);
	free(l->principal);
	free(l->client);
	free(l->tool);
	free(l->language);
	free(l->error);
	free(l->command);
}

static void
source_clear(struct run_source *s)
{
	history_line_clear(&s->line);
	free(s->log);
}

static bool
has_ended(const struct run_source *s)
{
	return !run_is_unfinished(s->line.state);
}

/* ---- from the database */

/* As HISTORY_SOURCE names them; whether its words are known. */
static bool
get_source(struct db_call *c, struct run_source *s)
{
	struct history_line *l = &s->line;
	int rc;

	s->tenant = db_get_uint(c);
	db_get_bytes(c, l->uuid.b, sizeof(l->uuid.b));
	l->identifier = db_get_text(c);
	l->sandbox_name = db_get_text(c);
	l->principal = db_get_text(c);
	l->client = db_get_text(c);
	l->tool = db_get_text(c);
	l->language = db_get_text(c);
	rc = run_state_parse(db_get_word(c), &l->state);
	if (runlog_reason_parse(db_get_word(c), &l->end_reason) != 0)
		rc = -1;
	l->exit_code = (int32_t)db_get_int(c);
	l->error = db_get_text(c);
	l->created_ms = db_get_int(c);
	l->started_ms = db_get_int(c);
	l->ended_ms = db_get_int(c);
	l->stdout_bytes = db_get_uint(c);
	l->stderr_bytes = db_get_uint(c);
	l->artifacts = db_get_u32(c);
	l->artifact_bytes = db_get_uint(c);
	l->cpu_us = db_get_uint(c);
	l->memory_peak_bytes = db_get_uint(c);
	s->spool_bytes = db_get_uint(c);
	s->log = db_get_blob(c, &s->log_len);
	return rc == 0;
}

static int
read_first_words(struct db *db, struct run_source *s, struct err *e)
{
	AUTO(auto_free) char *shell = NULL;
	AUTO(auto_free) char *argv = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SOURCE_FIRST);
	db_put_int(&c, s->id);
	db_put_int(&c, FIRST_WORDS_READ);
	rc = db_call_step(&c, e);
	if (rc == 1) {
		shell = db_get_text(&c);
		argv = db_get_text(&c);
		db_call_end(&c);
	}
	s->line.command = first_words_of(
	    shell == NULL ? "" : shell, argv == NULL ? "" : argv);
	return rc < 0 ? rc : 0;
}

/* 1: there is one that can be understood. */
static int
read_source(struct db *db, struct run_source *s, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SOURCE_RUN);
	db_put_int(&c, s->id);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	rc = get_source(&c, s);
	db_call_end(&c);
	if (rc == 1 && read_first_words(db, s, e) != 0)
		return e->code;
	return rc;
}

/* Escapes of JSON part words: what they stand for does so mostly. */
static void
add_json(struct buf *b, char *json)
{
	for (char *p = json; *p != '\0'; p++)
		if (p[0] == '\\' && p[1] != '\0') {
			*p++ = ' ';
			*p = ' ';
		}
	add_text(b, (const uint8_t *)json, strlen(json));
}

static int
add_commands(struct db *db, int64_t run, struct buf *b, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SOURCE_COMMANDS);
	db_put_int(&c, run);
	while ((rc = db_call_step(&c, e)) == 1) {
		AUTO(auto_free) char *shell = db_get_text(&c);
		AUTO(auto_free) char *argv = db_get_text(&c);

		add_text(b, (const uint8_t *)shell, strlen(shell));
		add_json(b, argv);
	}
	return rc;
}

/* A file that is not there was given up for newer ones. */
static void
add_output(
    const struct history_take *t, const struct run_source *s, struct buf *b)
{
	struct err ignored;
	int fd;

	if (s->log != NULL) {
		add_log(b, s->log, s->log_len);
		return;
	}
	if (s->spool_bytes == 0)
		return;
	fd = spool_log_read(t->spool, &s->line.uuid, &ignored);
	if (fd < 0)
		return;
	add_file(b, fd, s->spool_bytes);
	(void)close(fd);
}

/* ---- the index */

/* history_words.h: a text begins with whose it is. */
static int
count_text(
    struct history_take *t, const char *body, int64_t change, struct err *e)
{
	return corpus_add(
	    &t->corpus, t->to, strtoull(body, NULL, 10), change, e);
}

/* Out of the index; all else of the run stays in it. */
static int
take_text(struct history_take *t, int64_t place, struct err *e)
{
	AUTO(auto_free) char *body = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, t->to, DB_INDEX_TEXT_GET);
	db_put_int(&c, place);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	body = db_get_text(&c);
	db_call_end(&c);
	db_call_init(&c, t->to, DB_INDEX_WORDS_DROP);
	db_put_int(&c, place);
	db_put_text(&c, body);
	if (db_call_run(&c, e) != 0 ||
	    count_text(t, body, -(int64_t)strlen(body), e) != 0)
		return e->code;
	t->is_dirty = true;
	return db_exec_at(t->to, DB_INDEX_TEXT_DROP, place, e);
}

static int
drop_place(struct history_take *t, int64_t place, struct err *e)
{
	if (take_text(t, place, e) != 0 ||
	    db_exec_at(t->to, DB_INDEX_ARTIFACTS_DROP, place, e) != 0)
		return e->code;
	return db_exec_at(t->to, DB_INDEX_DELETE, place, e);
}

/* 1: it is there; 2: and ended. */
static int
find_place(struct db *db, int64_t id, int64_t *place, struct err *e)
{
	struct db_call c;
	int64_t state;
	int rc;

	db_call_init(&c, db, DB_INDEX_FIND);
	db_put_int(&c, id);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	*place = db_get_int(&c);
	state = db_get_int(&c);
	db_call_end(&c);
	return run_is_unfinished((enum run_state)state) ? 1 : 2;
}

/* The next that is free: a clock that was put back may come to the same
 * millisecond with the same bits of a number. */
static int
choose_place(
    struct db *db, const struct run_source *s, int64_t *place, struct err *e)
{
	int64_t ms = s->line.created_ms, low = s->id & PLACE_MASK;
	struct db_call c;
	int rc;

	if (ms < 0)
		ms = 0;
	if (ms > HISTORY_CREATED_MAX)
		ms = HISTORY_CREATED_MAX;
	do {
		*place = ms << HISTORY_PLACE_BITS | low;
		low = (low + 1) & PLACE_MASK;
		db_call_init(&c, db, DB_INDEX_IS_TAKEN);
		db_put_int(&c, *place);
		rc = db_call_has_row(&c, e);
	} while (rc == 1);
	return rc;
}

static void
put_end(struct db_call *c, const struct run_source *s)
{
	const struct history_line *l = &s->line;
	int64_t ms = l->ended_ms - l->started_ms;

	db_put_int(c, l->ended_ms);
	if (!has_ended(s)) {
		db_put_null(c);
		db_put_null(c);
		return;
	}
	db_put_int(c, l->started_ms == 0 || ms < 0 ? 0 : ms);
	db_put_uint(c, l->stdout_bytes + l->stderr_bytes + l->artifact_bytes);
}

/* As HISTORY_ROW names them. */
static int
put_row(struct db *db, const struct run_source *s, int64_t place, struct err *e)
{
	const struct history_line *l = &s->line;
	struct db_call c;

	db_call_init(&c, db, DB_INDEX_INSERT);
	db_put_int(&c, place);
	db_put_int(&c, s->id);
	db_put_uint(&c, s->tenant);
	db_put_blob(&c, l->uuid.b, sizeof(l->uuid.b));
	db_put_text(&c, l->identifier);
	db_put_text(&c, l->sandbox_name);
	db_put_text(&c, l->principal);
	db_put_text(&c, l->client);
	db_put_text(&c, l->tool);
	db_put_text(&c, l->language);
	/* The database knows of no running one. */
	db_put_int(&c, has_ended(s) ? l->state : RUN_STATE_QUEUED);
	db_put_int(&c, l->end_reason);
	if (has_ended(s))
		db_put_int(&c, l->exit_code);
	else
		db_put_null(&c);
	db_put_text(&c, l->error);
	db_put_int(&c, l->created_ms);
	db_put_int(&c, l->started_ms);
	put_end(&c, s);
	db_put_uint(&c, l->stdout_bytes);
	db_put_uint(&c, l->stderr_bytes);
	db_put_uint(&c, l->artifacts);
	db_put_uint(&c, l->artifact_bytes);
	db_put_uint(&c, l->cpu_us);
	db_put_uint(&c, l->memory_peak_bytes);
	db_put_text(&c, l->command);
	return db_call_run(&c, e);
}

static int
put_artifact(struct db *db, uint64_t tenant, int64_t place, const char *path,
    const uint8_t sha256[32], struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct db_call c;

	db_call_init(&c, db, DB_INDEX_ARTIFACT_PUT);
	db_put_int(&c, place);
	db_put_text(&c, path);
	db_put_uint(&c, tenant);
	db_put_text(&c, slash == NULL ? path : slash + 1);
	db_put_blob(&c, sha256, 32);
	return db_call_run(&c, e);
}

static int
put_artifacts(struct history_take *t, const struct run_source *s, int64_t place,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, t->from, DB_SOURCE_ARTIFACTS);
	db_put_int(&c, s->id);
	db_put_int(&c, HISTORY_ARTIFACTS_MAX);
	while ((rc = db_call_step(&c, e)) == 1) {
		AUTO(auto_free) char *path = db_get_text(&c);
		uint8_t sha256[32];

		db_get_bytes(&c, sha256, sizeof(sha256));
		rc = put_artifact(t->to, s->tenant, place, path, sha256, e);
		if (rc != 0) {
			db_call_end(&c);
			break;
		}
	}
	return rc;
}

static int
put_body(struct db *db, enum db_query q, int64_t place, const char *body,
    struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, q);
	db_put_int(&c, place);
	db_put_text(&c, body);
	return db_call_run(&c, e);
}

static int
put_text(struct history_take *t, const struct run_source *s, int64_t place,
    struct err *e)
{
	const char *body;
	struct buf b;
	int rc = corpus_takes(&t->corpus, t->to, s->tenant, place, e);

	if (rc != 1)
		return rc;
	buf_init(&b, HISTORY_TEXT_MAX);
	/* history_words.h: whose words they are */
	(void)buf_printf(&b, "%llu ", (unsigned long long)s->tenant);
	rc = add_commands(t->from, s->id, &b, e);
	if (rc == 0) {
		add_output(t, s, &b);
		buf_set_max(&b, 0);
		if (buf_append(&b, "", 1) != 0)
			fatal(EXIT_BUG, "a buffer without a limit is full");
		body = (const char *)buf_data(&b);
		rc = put_body(t->to, DB_INDEX_TEXT_PUT, place, body, e);
		if (rc == 0)
			rc =
			    put_body(t->to, DB_INDEX_WORDS_PUT, place, body, e);
		if (rc == 0)
			rc = count_text(t, body, (int64_t)strlen(body), e);
	}
	buf_clear(&b);
	return rc;
}

static int
put_run(struct history_take *t, const struct run_source *s, struct err *e)
{
	int64_t place = 0;

	if (choose_place(t->to, s, &place, e) != 0 ||
	    put_row(t->to, s, place, e) != 0)
		return e->code;
	if (!has_ended(s))
		return 0;
	if (s->line.artifacts > 0 && put_artifacts(t, s, place, e) != 0)
		return e->code;
	return put_text(t, s, place, e);
}

int
history_take_run(
    struct history_take *t, int64_t id, enum history_trust trust, struct err *e)
{
	struct run_source s = {.id = id};
	int64_t place = 0;
	int was, rc;

	was = find_place(t->to, id, &place, e);
	if (was < 0)
		return was;
	rc = read_source(t->from, &s, e);
	if (rc == 1 && was == 2 && trust == HISTORY_KNOWN) {
		source_clear(&s);
		return 0;
	}
	if (rc >= 0 && was > 0 && drop_place(t, place, e) != 0)
		rc = e->code;
	if (rc == 1)
		rc = put_run(t, &s, e);
	source_clear(&s);
	return rc;
}

/* ---- text that leaves */

struct round {
	uint64_t tenant;
	int64_t places[ROUND_MAX];
	size_t n;
};

static int
read_oldest(struct db *db, struct round *r, int64_t first, struct err *e)
{
	struct db_call c;
	int rc;

	r->n = 0;
	db_call_init(&c, db, DB_INDEX_CORPUS_OLDEST);
	db_put_uint(&c, r->tenant);
	db_put_int(&c, first);
	db_put_int(&c, ROUND_MAX);
	while ((rc = db_call_step(&c, e)) == 1)
		r->places[r->n++] = db_get_int(&c);
	return rc;
}

/* least: so many bytes are to be left. */
static int
shed_round(struct history_take *t, uint64_t least, struct err *e)
{
	struct round r = {.n = 0};
	int64_t first = 0;
	int rc = corpus_most(&t->corpus, t->to, &r.tenant, &first, e);

	if (rc == 0)
		return history_corpus_load(&t->corpus, t->to, e);
	if (rc < 0 || read_oldest(t->to, &r, first, e) != 0)
		return e->code;
	if (r.n == 0) { /* its count says more than there is: count anew */
		if (db_exec_with(t->to, DB_INDEX_CORPUS_NONE, r.tenant, e) != 0)
			return e->code;
		return history_corpus_load(&t->corpus, t->to, e);
	}
	for (size_t i = 0; i < r.n && t->corpus.bytes > least; i++) {
		if (take_text(t, r.places[i], e) != 0)
			return e->code;
		first = r.places[i] + 1;
	}
	return corpus_left(&t->corpus, t->to, r.tenant, first, e);
}

int
history_shed(
    struct history_take *t, uint64_t max, uint64_t at_most, struct err *e)
{
	uint64_t least = max;
	int rc = 0;

	if (t->corpus.bytes > at_most && t->corpus.bytes - at_most > max)
		least = t->corpus.bytes - at_most;
	while (rc == 0 && t->corpus.bytes > least)
		rc = shed_round(t, least, e);
	return rc;
}
