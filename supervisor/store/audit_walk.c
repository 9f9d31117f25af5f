/*
 * audit_walk.c - along the audit's chain
 *
 * Columns are taken as bytes: a text may have been given a zero byte and more
 * behind it.
 */
#include "supervisor/store/audit_walk.h"

#include <pthread.h>

#include <openssl/evp.h>

#include "common/exit.h"
#include "common/log.h"
#include "supervisor/store/db.h"

/* ---- the chain */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static EVP_MD *sha256; /* to look for it costs as much as to use it */

static void
find_sha256(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (sha256 == NULL)
		fatal(EXIT_BUG, "no SHA-256");
}

static void
add_bytes(EVP_MD_CTX *ctx, const void *p, size_t n)
{
	if (EVP_DigestUpdate(ctx, p, n) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
}

static void
add_number(EVP_MD_CTX *ctx, uint64_t v)
{
	uint8_t b[8];

	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)(v >> (8 * i));
	add_bytes(ctx, b, sizeof(b));
}

void
audit_chain_next(
    const uint8_t before[32], const struct audit_content *c, uint8_t hash[32])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();

	(void)pthread_once(&once, find_sha256);
	if (ctx == NULL || EVP_DigestInit_ex2(ctx, sha256, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	add_bytes(ctx, before, 32);
	add_number(ctx, c->seq);
	add_number(ctx, (uint64_t)c->at_ms);
	add_number(ctx, c->times);
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++) {
		const struct span *s = &c->texts[i];

		add_number(ctx, s->p == NULL ? UINT64_MAX : s->n);
		if (s->p != NULL)
			add_bytes(ctx, s->p, s->n);
	}
	if (EVP_DigestFinal_ex(ctx, hash, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	EVP_MD_CTX_free(ctx);
}

/* ---- its ends */

static void
get_mark(struct db_call *c, struct store_audit_mark *m)
{
	m->seq = db_get_uint(c);
	db_get_bytes(c, m->hash, sizeof(m->hash));
}

static void
put_mark(struct db_call *c, const struct store_audit_mark *m)
{
	db_put_uint(c, m->seq);
	db_put_blob(c, m->hash, sizeof(m->hash));
}

int
audit_ends_get(struct db *db, struct audit_ends *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_AUDIT_ENDS);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND,
		    "audit: the row that says where it ends is missing");
	get_mark(&c, &out->head);
	get_mark(&c, &out->base);
	db_call_end(&c);
	return 0;
}

int
audit_ends_put(struct db *db, const struct audit_ends *ends, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_AUDIT_ENDS_PUT);
	put_mark(&c, &ends->head);
	put_mark(&c, &ends->base);
	return db_call_run_one(&c, e);
}

/* ---- along it */

/* What is wrong is found, not a failure of the work. */
static int
bad(struct audit_walk *k, uint64_t seq, const char *what)
{
	k->found.is_bad = true;
	k->found.bad_seq = seq;
	k->found.what = what;
	return 1;
}

static void
note_known(struct audit_walk *k)
{
	if (memcmp(k->at.hash, k->known, sizeof(k->known)) == 0)
		k->found.has_known = true;
}

static void
content_get(struct db_call *c, struct audit_content *out, uint8_t hash[32])
{
	*out = (struct audit_content){.seq = db_get_uint(c)};
	out->at_ms = db_get_int(c);
	out->times = db_get_uint(c);
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		out->texts[i].p = db_get_blob(c, &out->texts[i].n);
	db_get_bytes(c, hash, 32);
}

static int
check_row(
    struct audit_walk *k, struct db_call *c, const struct audit_ends *ends)
{
	struct audit_content row;
	uint8_t has[32], want[32];
	int rc = 0;

	content_get(c, &row, has);
	audit_chain_next(k->at.hash, &row, want);
	if (row.seq > ends->head.seq)
		rc = k->at.seq < ends->head.seq ?
		    bad(k, k->at.seq + 1, "the row is missing") :
		    bad(k, row.seq, "a row behind the newest");
	else if (row.seq != k->at.seq + 1)
		rc = bad(k, k->at.seq + 1, "the row is missing");
	else if (memcmp(has, want, sizeof(want)) != 0)
		rc = bad(k, row.seq, "the row is not as it was written");
	for (size_t i = 0; i < AUDIT_CHAIN_TEXTS; i++)
		free((void *)(uintptr_t)row.texts[i].p);
	if (rc != 0)
		return rc;
	k->at.seq = row.seq;
	memcpy(k->at.hash, has, sizeof(has));
	k->found.rows++;
	note_known(k);
	return 0;
}

/* Nothing follows. */
static int
check_end(struct audit_walk *k, const struct audit_ends *ends)
{
	k->found.is_over = true;
	if (k->at.seq < ends->head.seq)
		return bad(k, k->at.seq + 1, "the row is missing");
	if (k->at.seq > ends->head.seq)
		return bad(k, ends->head.seq + 1, "a row behind the newest");
	if (memcmp(k->at.hash, ends->head.hash, sizeof(k->at.hash)) != 0)
		return bad(k, k->at.seq,
		    "the row is not the one that was written last");
	return 0;
}

/* Begins behind what was trimmed, where there must be nothing. */
static int
check_begin(struct db *db, struct audit_walk *k, const struct audit_ends *ends,
    struct err *e)
{
	int64_t first; /* 0: there is none */

	k->at = ends->base;
	note_known(k);
	if (db_exec_int(db, DB_AUDIT_FIRST, &first, e) != 0)
		return e->code;
	if (first < 0 || (first > 0 && (uint64_t)first <= ends->base.seq))
		return bad(k, (uint64_t)first, "a row that was trimmed");
	return 0;
}

static int
check_rows(struct db *db, struct audit_walk *k, const struct audit_ends *ends,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_AUDIT_AFTER);
	db_put_uint(&c, k->at.seq);
	db_put_uint(&c, STORE_AUDIT_PIECE);
	while ((rc = db_call_step(&c, e)) == 1) {
		rc = check_row(k, &c, ends);
		if (rc != 0)
			break;
	}
	if (rc > 0)
		db_call_end(&c);
	return rc;
}

void
audit_walk_init(struct audit_walk *k, const struct store_audit_mark *after,
    const uint8_t *known)
{
	*k = (struct audit_walk){.is_first = after == NULL};
	if (after != NULL)
		k->at = *after;
	/* Where nothing is known, no row has 32 times 255. */
	memset(k->known, 255, sizeof(k->known));
	if (known != NULL)
		memcpy(k->known, known, sizeof(k->known));
}

int
audit_walk_piece(struct db *db, struct audit_walk *k, struct err *e)
{
	struct audit_ends ends = {0};
	int rc = audit_ends_get(db, &ends, e);

	if (rc == ERR_NOTFOUND) {
		(void)bad(k, 0, "the row that says where it ends is missing");
		return 0;
	}
	if (rc != 0)
		return rc;
	k->found.base = ends.base;
	k->found.head = ends.head;
	/* Trimmed while it was checked: it goes on behind that. */
	if (k->is_first || k->at.seq < ends.base.seq)
		rc = check_begin(db, k, &ends, e);
	if (rc == 0)
		rc = check_rows(db, k, &ends, e);
	if (rc == 0 && k->found.rows < STORE_AUDIT_PIECE)
		rc = check_end(k, &ends);
	k->found.at = k->at;
	return rc < 0 ? rc : 0;
}

int
audit_walk_file(const char *dir, const uint8_t *known,
    struct store_audit_check *out, struct err *e)
{
	struct audit_walk k;
	uint64_t rows = 0;
	struct db *db;
	int rc = db_open(dir, DB_LOOK, &db, e);

	if (rc != 0)
		return rc;
	audit_walk_init(&k, NULL, known);
	do {
		k.found.rows = 0;
		rc = audit_walk_piece(db, &k, e);
		rows += k.found.rows;
		k.is_first = false;
	} while (rc == 0 && !k.found.is_over && !k.found.is_bad);
	db_close(db);
	*out = k.found;
	out->rows = rows;
	return rc;
}
