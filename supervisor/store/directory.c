/*
 * directory.c - tenants, tokens, quotas, secrets (as they are sealed) and
 * webhooks: read once, then written through
 *
 * Erasing a tenant is the one write that looks before it acts: a row that
 * others refer to keeps its name.
 */
#include "supervisor/store/store_int.h"

#include "common/embed.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/migrate.h"
#include "supervisor/store/rows_sql_gen.h"
#include "supervisor/store/writer.h"

/* ---- reading all, before the loop runs */

void
store_directory_clear(struct store_directory *d)
{
	for (size_t i = 0; i < d->ntenants; i++)
		store_tenant_clear(&d->tenants[i]);
	for (size_t i = 0; i < d->ntokens; i++)
		store_token_clear(&d->tokens[i]);
	for (size_t i = 0; i < d->ngrants; i++)
		store_grant_clear(&d->grants[i]);
	free(d->tenants);
	free(d->tokens);
	free(d->grants);
	*d = (struct store_directory){0};
}

bool
store_directory_is_open(uint64_t ntokens, uint64_t next_tenant)
{
	return ntokens == 0 && next_tenant == STORE_TENANT_DEFAULT + 1;
}

static int
read_directory(struct db *db, void *out, struct err *e)
{
	struct store_directory *d = out;
	struct db_call c;
	int64_t next;

	db_call_init(&c, db, DB_TENANTS_GET);
	if (rows_read_tenant(&c, &d->tenants, &d->ntenants, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_TOKENS_GET);
	if (rows_read_token(&c, &d->tokens, &d->ntokens, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_GRANTS_GET);
	if (rows_read_grant(&c, &d->grants, &d->ngrants, e) != 0 ||
	    db_exec_int(db, DB_TENANT_NEXT, &next, e) != 0)
		return e->code;
	d->next_tenant = (uint64_t)next;
	return 0;
}

int
store_directory_read(
    struct store *s, struct store_directory *out, struct err *e)
{
	int rc;

	*out = (struct store_directory){0};
	rc = store_read_now(s, read_directory, out, e);
	if (rc != 0)
		store_directory_clear(out);
	return rc;
}

void
store_secrets_clear(struct store_secrets *all)
{
	for (size_t i = 0; i < all->n; i++)
		store_secret_clear(&all->rows[i]);
	free(all->rows);
	*all = (struct store_secrets){0};
}

static int
read_secrets(struct db *db, void *out, struct err *e)
{
	struct store_secrets *all = out;
	struct db_call c;

	db_call_init(&c, db, DB_SECRETS_GET);
	return rows_read_secret(&c, &all->rows, &all->n, e);
}

int
store_secrets_read(struct store *s, struct store_secrets *out, struct err *e)
{
	int rc;

	*out = (struct store_secrets){0};
	rc = store_read_now(s, read_secrets, out, e);
	if (rc != 0)
		store_secrets_clear(out);
	return rc;
}

void
store_webhooks_clear(struct store_webhooks *all)
{
	for (size_t i = 0; i < all->n; i++)
		store_webhook_clear(&all->rows[i]);
	free(all->rows);
	*all = (struct store_webhooks){0};
}

static int
read_webhooks(struct db *db, void *out, struct err *e)
{
	struct store_webhooks *all = out;
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOKS_GET);
	return rows_read_webhook(&c, &all->rows, &all->n, e);
}

int
store_webhooks_read(struct store *s, struct store_webhooks *out, struct err *e)
{
	int rc;

	*out = (struct store_webhooks){0};
	rc = store_read_now(s, read_webhooks, out, e);
	if (rc != 0)
		store_webhooks_clear(out);
	return rc;
}

/* ---- writing */

struct directory_op {
	struct write_op w;
	union {
		struct store_tenant tenant;
		struct store_token token;
		struct store_grant grant;
		struct store_secret secret;
		struct store_webhook webhook;
	} row;
	int64_t now_ms;
};

static struct directory_op *
op_of(struct op *op)
{
	return (struct directory_op *)op;
}

static int
tenant_put_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_tenant *row = &op_of(op)->row.tenant;
	struct db_call c;

	if (!id_is_good(row->id))
		return err_set(e, ERR_INVAL, "tenant without a number");
	db_call_init(&c, db, DB_TENANT_PUT);
	rows_put_tenant(&c, row);
	return db_call_run(&c, e);
}

static int
token_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_TOKEN_PUT);
	rows_put_token(&c, &op_of(op)->row.token);
	return db_call_run(&c, e);
}

static int
token_drop_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_TOKEN_DROP);
	db_put_text(&c, op_of(op)->row.token.id);
	return db_call_run(&c, e);
}

static int
grant_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_GRANT_PUT);
	rows_put_grant(&c, &op_of(op)->row.grant);
	return db_call_run(&c, e);
}

static int
grant_drop_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_grant *row = &op_of(op)->row.grant;
	struct db_call c;

	db_call_init(&c, db, DB_GRANT_DROP);
	db_put_uint(&c, row->tenant);
	db_put_text(&c, row->key);
	return db_call_run(&c, e);
}

static int
secret_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_PUT);
	rows_put_secret(&c, &op_of(op)->row.secret);
	return db_call_run(&c, e);
}

static int
secret_use_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_secret *row = &op_of(op)->row.secret;
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_USE);
	db_put_uint(&c, row->tenant);
	db_put_text(&c, row->name);
	db_put_int(&c, row->used_ms);
	return db_call_run(&c, e);
}

static int
secret_drop_run(struct db *db, struct op *op, struct err *e)
{
	const struct store_secret *row = &op_of(op)->row.secret;
	struct db_call c;

	db_call_init(&c, db, DB_SECRET_DROP);
	db_put_uint(&c, row->tenant);
	db_put_text(&c, row->name);
	return db_call_run(&c, e);
}

static int
webhook_put_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOK_PUT);
	rows_put_webhook(&c, &op_of(op)->row.webhook);
	return db_call_run(&c, e);
}

static int
webhook_drop_run(struct db *db, struct op *op, struct err *e)
{
	const struct uuid *uuid = &op_of(op)->row.webhook.uuid;
	struct db_call c;

	db_call_init(&c, db, DB_WEBHOOK_DROP);
	db_put_blob(&c, uuid->b, sizeof(uuid->b));
	return db_call_run(&c, e);
}

static int
tenant_erase_run(struct db *db, struct op *op, struct err *e)
{
	static const enum db_query drops[] = {DB_TOKENS_DROP, DB_GRANTS_DROP,
	    DB_EVENTS_DROP, DB_SECRETS_DROP, DB_USAGE_DROP, DB_WEBHOOKS_DROP,
	    DB_TASKS_DROP};
	const struct directory_op *o = op_of(op);
	uint64_t tenant = o->row.tenant.id, is_used;
	struct db_call c;

	if (db_ask_with(db, DB_TENANT_IS_USED, tenant, &is_used, e) != 0)
		return e->code;
	if (is_used != 0)
		return err_set(
		    e, ERR_CONFLICT, "runs or sandboxes of it are left");
	for (size_t i = 0; i < ARRAY_LEN(drops); i++)
		if (db_exec_with(db, drops[i], tenant, e) != 0)
			return e->code;
	db_call_init(&c, db, DB_TENANT_ERASE);
	db_put_uint(&c, tenant);
	db_put_int(&c, o->now_ms);
	return db_call_run(&c, e);
}

static void
release_tenant(struct op *op)
{
	store_tenant_clear(&op_of(op)->row.tenant);
	free(op);
}

static void
release_token(struct op *op)
{
	store_token_clear(&op_of(op)->row.token);
	free(op);
}

static void
release_grant(struct op *op)
{
	store_grant_clear(&op_of(op)->row.grant);
	free(op);
}

static void
release_secret(struct op *op)
{
	store_secret_clear(&op_of(op)->row.secret);
	free(op);
}

static void
release_webhook(struct op *op)
{
	store_webhook_clear(&op_of(op)->row.webhook);
	free(op);
}

static struct directory_op *
new_op(
    op_run_cb *run, void (*release)(struct op *), store_done_cb done, void *arg)
{
	struct directory_op *o = xcalloc(1, sizeof(*o));

	store_write_init(&o->w, run, sizeof(*o) + 256, done, arg);
	o->w.op.release = release;
	return o;
}

/* None is refused for a queue that is full: they are rare, and a token that is
 * revoked must be. */
void
store_tenant_put(struct store *s, const struct store_tenant *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(tenant_put_run, release_tenant, done, arg);

	store_tenant_copy(&o->row.tenant, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_token_put(struct store *s, const struct store_token *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(token_put_run, release_token, done, arg);

	store_token_copy(&o->row.token, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_token_drop(struct store *s, const char *id, store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(token_drop_run, release_token, done, arg);

	o->row.token.id = xstrdup(id);
	writer_submit(s->writer, &o->w.op);
}

void
store_grant_put(struct store *s, const struct store_grant *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(grant_put_run, release_grant, done, arg);

	store_grant_copy(&o->row.grant, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_grant_drop(struct store *s, struct tenant_id tenant, const char *key,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(grant_drop_run, release_grant, done, arg);

	o->row.grant.tenant = tenant.n;
	o->row.grant.key = xstrdup(key);
	writer_submit(s->writer, &o->w.op);
}

void
store_tenant_erase(struct store *s, struct tenant_id tenant, int64_t now_ms,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(tenant_erase_run, release_tenant, done, arg);

	o->row.tenant.id = tenant.n;
	o->now_ms = now_ms;
	writer_submit(s->writer, &o->w.op);
}

void
store_secret_put(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(secret_put_run, release_secret, done, arg);

	o->w.op.bytes += row->sealed_len;
	store_secret_copy(&o->row.secret, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_secret_use(struct store *s, const struct store_secret *row)
{
	struct directory_op *o =
	    new_op(secret_use_run, release_secret, NULL, NULL);

	o->row.secret = (struct store_secret){.tenant = row->tenant,
	    .name = xstrdup(row->name),
	    .used_ms = row->used_ms};
	writer_submit(s->writer, &o->w.op);
}

void
store_secret_drop(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(secret_drop_run, release_secret, done, arg);

	o->row.secret = (struct store_secret){
	    .tenant = row->tenant, .name = xstrdup(row->name)};
	writer_submit(s->writer, &o->w.op);
}

void
store_webhook_put(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(webhook_put_run, release_webhook, done, arg);

	o->w.op.bytes += 1024;
	store_webhook_copy(&o->row.webhook, row);
	writer_submit(s->writer, &o->w.op);
}

void
store_webhook_drop(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg)
{
	struct directory_op *o =
	    new_op(webhook_drop_run, release_webhook, done, arg);

	o->row.webhook.uuid = row->uuid;
	writer_submit(s->writer, &o->w.op);
}

/* ---- what a tenant has in files */

struct usage_op {
	struct op op;
	uint64_t tenant;
	struct store_usage usage;
	store_usage_cb done;
	void *arg;
};

static int
usage_run(struct db *db, struct op *op, struct err *e)
{
	struct usage_op *u = (struct usage_op *)op;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_TENANT_USAGE);
	db_put_uint(&c, u->tenant);
	rc = db_call_step(&c, e);
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "no such tenant");
	if (rc < 0)
		return rc;
	store_usage_get(&c, &u->usage);
	db_call_end(&c);
	return 0;
}

static void
usage_deliver(struct op *op)
{
	const struct usage_op *u = (const struct usage_op *)op;

	u->done(op->rc, op->rc == 0 ? &u->usage : NULL, op_why(op), u->arg);
}

void
store_tenant_usage(
    struct store *s, struct tenant_id tenant, store_usage_cb done, void *arg)
{
	struct usage_op *u = xcalloc(1, sizeof(*u));

	u->tenant = tenant.n;
	u->done = done;
	u->arg = arg;
	store_read_submit(s, &u->op, usage_run, usage_deliver, NULL);
}

/* ---- a look, from another process than the server */

static int
look_who_may_call(struct db *db, bool *wants_tokens, struct err *e)
{
	int64_t tables, tokens, next;

	if (db_exec_int(db, DB_TOKENS_THERE, &tables, e) != 0)
		return e->code;
	if (tables == 0) /* a schema from before there were any, or none */
		return 0;
	if (db_exec_int(db, DB_TOKENS_COUNT, &tokens, e) != 0 ||
	    db_exec_int(db, DB_TENANT_NEXT, &next, e) != 0)
		return e->code;
	*wants_tokens =
	    !store_directory_is_open((uint64_t)tokens, (uint64_t)next);
	return 0;
}

int
store_look(const char *dir, bool *wants_tokens, struct err *e)
{
	struct err why = {0};
	struct db *db;
	int rc = db_open(dir, DB_LOOK, &db, &why);

	*wants_tokens = false;
	if (rc == 0) {
		rc = migrate_check(db, embed_sql, &why);
		if (rc == 0)
			rc = look_who_may_call(db, wants_tokens, &why);
		db_close(db);
	}
	return rc == 0 || rc == ERR_NOTFOUND ? 0 :
					       err_set(e, rc, "%s", why.msg);
}
