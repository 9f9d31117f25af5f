#include "supervisor/core/artifacts.h"

#include "common/log.h"
#include "common/timer.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define AGAIN_MS 1000

struct artifact_file {
	STAILQ_ENTRY(artifact_file) link;
	uint32_t number;
	struct store_artifact row;
};

struct artifact_wait {
	struct artifact_offer offer; /* with a path of its own */
	artifacts_answer_cb answer;
	void *arg;
	uint8_t path[];
};

static void put_batch(struct artifacts *a);

/* ---- life */

void
artifacts_init(struct artifacts *a, struct store *store,
    struct event_base *base, const struct store_run *run, struct store_log *log)
{
	*a = (struct artifacts){
	    .store = store, .base = base, .run = run, .log = log};
	STAILQ_INIT(&a->files);
}

void
artifacts_restored(struct artifacts *a)
{
	a->is_put = true;
}

static size_t
held_by(const struct store_artifact *row)
{
	return sizeof(*row) + strlen(row->path) + 1;
}

static void
file_free(struct artifacts *a, struct artifact_file *f)
{
	STAILQ_REMOVE(&a->files, f, artifact_file, link);
	a->nfiles--;
	if (f->row.path != NULL) /* else it is a row's now */
		a->held_bytes -= held_by(&f->row);
	free(f->row.path);
	free(f);
}

/* The first n: on disk, or of no use. */
static void
rows_drop(struct artifacts *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		a->held_bytes -= held_by(&a->rows[i]);
		a->names_bytes -= strlen(a->rows[i].path);
		free(a->rows[i].path);
	}
	a->nrows -= n;
	if (a->nrows > 0) {
		memmove(a->rows, a->rows + n, a->nrows * sizeof(*a->rows));
		return;
	}
	free(a->rows);
	a->rows = NULL;
}

void
artifacts_begin_anew(struct artifacts *a)
{
	struct artifact_file *f;

	while ((f = STAILQ_FIRST(&a->files)) != NULL) {
		store_blob_abort(a->log, f->number);
		file_free(a, f);
	}
	free(a->wait);
	a->wait = NULL;
}

void
artifacts_clear(struct artifacts *a)
{
	artifacts_begin_anew(a);
	if (a->put != NULL)
		store_putting_cancel(a->put);
	if (a->get != NULL)
		store_getting_cancel(a->get);
	a->put = NULL;
	a->get = NULL;
	timer_free(a->again);
	a->again = NULL;
	rows_drop(a, a->nrows);
	free(a->error);
	a->error = NULL;
}

/* ---- offers */

static struct artifact_file *
file_find(struct artifacts *a, uint32_t number)
{
	struct artifact_file *f;

	STAILQ_FOREACH (f, &a->files, link)
		if (f->number == number)
			return f;
	return NULL;
}

static int
check_offer(
    struct artifacts *a, const struct artifact_offer *offer, struct err *e)
{
	if (a->nfiles >= ARTIFACTS_AT_A_TIME || a->wait != NULL ||
	    file_find(a, offer->number) != NULL)
		return err_set(e, ERR_LIMIT, "too many files at a time");
	if (offer->path_len == 0 || offer->path_len > ARTIFACTS_PATH_MAX ||
	    memchr(offer->path, '\0', offer->path_len) != NULL ||
	    !utf8_is_valid(offer->path, offer->path_len))
		return err_set(e, ERR_INVAL, "the name is not UTF-8");
	return 0;
}

static int
begin_file(
    struct artifacts *a, const struct artifact_offer *offer, struct err *e)
{
	int fd = store_blob_begin(a->log, offer->number, e);
	struct artifact_file *f;

	if (fd < 0)
		return fd;
	f = xcalloc(1, sizeof(*f));
	f->number = offer->number;
	f->row.path = xstrndup((const char *)offer->path, offer->path_len);
	f->row.mode = offer->mode & 0777;
	f->row.mtime_ns = offer->mtime_ns;
	STAILQ_INSERT_TAIL(&a->files, f, link);
	a->nfiles++;
	a->held_bytes += held_by(&f->row);
	return fd;
}

static bool
is_full(const struct artifacts *a)
{
	return a->nrows >= ARTIFACTS_BATCH ||
	    a->names_bytes >= ARTIFACTS_BATCH_BYTES;
}

static void
wait_for_room(struct artifacts *a, const struct artifact_offer *offer,
    artifacts_answer_cb answer, void *arg)
{
	struct artifact_wait *w = xmalloc(sizeof(*w) + offer->path_len);

	*w = (struct artifact_wait){*offer, answer, arg};
	memcpy(w->path, offer->path, offer->path_len);
	w->offer.path = w->path;
	a->wait = w;
}

void
artifacts_offer(struct artifacts *a, const struct artifact_offer *offer,
    artifacts_answer_cb answer, void *arg)
{
	struct err e;
	int fd = check_offer(a, offer, &e);

	if (fd == 0 && is_full(a)) {
		wait_for_room(a, offer, answer, arg);
		return;
	}
	if (fd == 0)
		fd = begin_file(a, offer, &e);
	answer(arg, offer->number, fd, fd < 0 ? &e : NULL);
}

static void
answer_waiting(struct artifacts *a)
{
	struct artifact_wait *w = a->wait;

	if (w == NULL || is_full(a))
		return;
	a->wait = NULL;
	artifacts_offer(a, &w->offer, w->answer, w->arg);
	free(w);
}

/* ---- what came */

/* The row's path is taken over. */
static void
rows_add(struct artifacts *a, const struct store_artifact *row)
{
	a->names_bytes += strlen(row->path);
	/* The same path again, after a worker was lost in between. */
	for (uint32_t i = a->nputting; i < a->nrows; i++) {
		if (strcmp(a->rows[i].path, row->path) != 0)
			continue;
		a->held_bytes -= held_by(row);
		a->names_bytes -= strlen(row->path);
		free(a->rows[i].path);
		a->rows[i] = *row;
		return;
	}
	a->rows = xreallocarray(a->rows, a->nrows + 1, sizeof(*a->rows));
	a->rows[a->nrows++] = *row;
}

void
artifacts_done(struct artifacts *a, uint32_t number, uint64_t size,
    const uint8_t sha256[32])
{
	const struct tenant_id tenant = {a->run->tenant};
	struct artifact_file *f = file_find(a, number);
	struct err e;

	if (f == NULL)
		return;
	if (store_blob_commit(a->log, number, tenant, sha256, &e) != 0) {
		log_warn("artifact: %s", e.msg);
		artifacts_fail(a, e.msg);
	} else {
		f->row.size = size;
		memcpy(f->row.sha256, sha256, sizeof(f->row.sha256));
		rows_add(a, &f->row);
		f->row.path = NULL;
	}
	file_free(a, f);
	put_batch(a);
}

void
artifacts_failed(struct artifacts *a, uint32_t number)
{
	struct artifact_file *f = file_find(a, number);

	if (f == NULL)
		return;
	store_blob_abort(a->log, number);
	file_free(a, f);
}

void
artifacts_fail(struct artifacts *a, const char *why)
{
	xset_text(&a->error, why);
}

bool
artifacts_has_error(const struct artifacts *a)
{
	return a->error != NULL;
}

/* ---- to the database */

static void read_list(struct artifacts *a);

/* A full disk may have room again. */
static void
again_cb(void *arg)
{
	struct artifacts *a = arg;

	if (a->is_over)
		read_list(a);
	else
		put_batch(a);
}

static void
try_again(struct artifacts *a, const char *what, const struct err *why)
{
	static struct log_limit limit;

	log_warn_limited(&limit, "run %llu: artifacts cannot be %s yet: %s",
	    (unsigned long long)a->run->id, what, why->msg);
	if (a->again == NULL)
		a->again = timer_new(a->base, again_cb, a);
	timer_set_ms(a->again, AGAIN_MS);
}

static void
put_cb(int rc, const struct err *why, void *arg)
{
	struct artifacts *a = arg;
	uint32_t n = a->nputting;

	a->put = NULL;
	a->nputting = 0;
	if (rc == 0)
		rows_drop(a, n);
	else if (!a->is_over)
		try_again(a, "recorded", why);
	answer_waiting(a);
}

/* When it is full. */
static void
put_batch(struct artifacts *a)
{
	const struct store_run row = {.id = a->run->id,
	    .tenant = a->run->tenant,
	    .artifacts = a->rows,
	    .nartifacts = a->nrows};

	if (a->put != NULL || a->is_over || !is_full(a))
		return;
	a->is_put = true;
	a->nputting = a->nrows;
	a->put = store_artifacts_put(a->store, &row, a->log, put_cb, a);
}

/* ---- the end of the run */

char *
artifacts_take_error(struct artifacts *a)
{
	char *error = a->error;

	a->error = NULL;
	return error;
}

void
artifacts_lend(struct artifacts *a, struct store_run *row)
{
	artifacts_begin_anew(a); /* or rather not at all */
	a->is_over = true;
	row->artifacts = a->rows;
	row->nartifacts = a->nrows;
	row->artifacts_put = a->is_put;
}

static int
compare_paths(const void *a, const void *b)
{
	const struct store_artifact *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static void
say_listed(struct artifacts *a)
{
	artifacts_listed_cb listed = a->listed;

	a->listed = NULL;
	listed(a->listed_arg);
}

static void
list_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct artifacts *a = arg;

	a->get = NULL;
	if (rc != 0 && rc != ERR_NOTFOUND) {
		try_again(a, "listed", why);
		return;
	}
	rows_drop(a, a->nrows);
	if (rc != 0) { /* forgotten, since its end was written */
		say_listed(a);
		return;
	}
	a->nrows = row->nartifacts;
	a->rows = a->nrows == 0 ? NULL : xcalloc(a->nrows, sizeof(*a->rows));
	for (uint32_t i = 0; i < a->nrows; i++) {
		store_artifact_copy(&a->rows[i], &row->artifacts[i]);
		a->held_bytes += held_by(&a->rows[i]);
		a->names_bytes += strlen(a->rows[i].path);
	}
	a->total = row->artifacts_total;
	a->bytes = row->artifact_bytes;
	say_listed(a);
}

static void
read_list(struct artifacts *a)
{
	if (a->get != NULL || a->listed == NULL)
		return;
	a->get = store_run_get(a->store, (struct tenant_id){a->run->tenant},
	    &a->run->uuid, 0, list_cb, a);
}

void
artifacts_list(struct artifacts *a, artifacts_listed_cb listed, void *arg)
{
	a->listed = listed;
	a->listed_arg = arg;
	if (a->is_put) {
		read_list(a);
		return;
	}
	/* In the order in which the database gives them: a list that is shown
	 * in parts goes on where it was. */
	if (a->nrows > 0)
		qsort(a->rows, a->nrows, sizeof(*a->rows), compare_paths);
	a->total = a->nrows;
	a->bytes = 0;
	for (uint32_t i = 0; i < a->nrows; i++)
		a->bytes += a->rows[i].size;
	say_listed(a);
}

void
artifacts_take(struct artifacts *a, struct store_run *row)
{
	free(row->artifacts); /* none, of a restored row */
	row->artifacts = a->rows;
	row->nartifacts = a->nrows;
	row->artifacts_from = 0;
	row->artifacts_total = a->total;
	row->artifact_bytes = a->bytes;
	a->rows = NULL;
	a->nrows = 0;
	a->names_bytes = 0;
	a->held_bytes = 0;
}
