#include "supervisor/core/artifacts.h"

#include "common/log.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

struct artifact_file {
	STAILQ_ENTRY(artifact_file) link;
	uint32_t number;
	struct store_artifact row;
};

void
artifacts_init(
    struct artifacts *a, struct store_log *log, struct tenant_id tenant)
{
	*a = (struct artifacts){.log = log, .tenant = tenant};
	STAILQ_INIT(&a->files);
}

static struct artifact_file *
file_find(struct artifacts *a, uint32_t number)
{
	struct artifact_file *f;

	STAILQ_FOREACH (f, &a->files, link)
		if (f->number == number)
			return f;
	return NULL;
}

static void
file_free(struct artifacts *a, struct artifact_file *f)
{
	STAILQ_REMOVE(&a->files, f, artifact_file, link);
	a->nfiles--;
	if (f->row.path != NULL) /* else it is a row's now */
		a->names_bytes -= strlen(f->row.path);
	free(f->row.path);
	free(f);
}

void
artifacts_clear(struct artifacts *a)
{
	struct artifact_file *f;

	while ((f = STAILQ_FIRST(&a->files)) != NULL) {
		store_blob_abort(a->log, f->number);
		file_free(a, f);
	}
	for (uint32_t i = 0; i < a->nrows; i++)
		free(a->rows[i].path);
	free(a->rows);
	free(a->error);
	a->rows = NULL;
	a->nrows = 0;
	a->error = NULL;
}

static int
check_offer(
    struct artifacts *a, const struct artifact_offer *offer, struct err *e)
{
	if (a->nfiles >= ARTIFACTS_AT_A_TIME ||
	    file_find(a, offer->number) != NULL)
		return err_set(e, ERR_LIMIT, "too many files at a time");
	if (a->names_bytes + offer->path_len > ARTIFACTS_NAMES_MAX)
		return err_set(e, ERR_LIMIT,
		    "the names of this run's files have more than %u KiB: "
		    "put files into fewer directories, or into an archive",
		    ARTIFACTS_NAMES_MAX >> 10);
	if (offer->path_len == 0 || offer->path_len > ARTIFACTS_PATH_MAX ||
	    memchr(offer->path, '\0', offer->path_len) != NULL ||
	    !utf8_is_valid(offer->path, offer->path_len))
		return err_set(e, ERR_INVAL, "the name is not UTF-8");
	return 0;
}

int
artifacts_begin(
    struct artifacts *a, const struct artifact_offer *offer, struct err *e)
{
	struct artifact_file *f;
	int fd;

	if (check_offer(a, offer, e) != 0)
		return e->code;
	fd = store_blob_begin(a->log, offer->number, e);
	if (fd < 0)
		return fd;
	f = xcalloc(1, sizeof(*f));
	f->number = offer->number;
	f->row.path = xstrndup((const char *)offer->path, offer->path_len);
	f->row.mode = offer->mode & 0777;
	f->row.mtime_ns = offer->mtime_ns;
	STAILQ_INSERT_TAIL(&a->files, f, link);
	a->nfiles++;
	a->names_bytes += offer->path_len;
	return fd;
}

/* The row's path is taken over. */
static void
rows_add(struct artifacts *a, const struct store_artifact *row)
{
	/* The same path again, after a worker was lost in between. */
	for (uint32_t i = 0; i < a->nrows; i++) {
		if (strcmp(a->rows[i].path, row->path) != 0)
			continue;
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
	struct artifact_file *f = file_find(a, number);
	struct err e;

	if (f == NULL)
		return;
	if (store_blob_commit(a->log, number, a->tenant, sha256, &e) != 0) {
		log_warn("artifact: %s", e.msg);
		artifacts_fail(a, e.msg);
	} else {
		f->row.size = size;
		memcpy(f->row.sha256, sha256, sizeof(f->row.sha256));
		rows_add(a, &f->row);
		f->row.path = NULL;
	}
	file_free(a, f);
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
	free(a->error);
	a->error = xstrdup(why);
}

bool
artifacts_has_error(const struct artifacts *a)
{
	return a->error != NULL;
}

char *
artifacts_take_error(struct artifacts *a)
{
	char *error = a->error;

	a->error = NULL;
	return error;
}

static int
compare_paths(const void *a, const void *b)
{
	const struct store_artifact *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* In the order in which the database gives them: a list that is shown in parts
 * goes on where it was. */
void
artifacts_take_rows(
    struct artifacts *a, struct store_artifact **rows, uint32_t *nrows)
{
	if (a->nrows > 0)
		qsort(a->rows, a->nrows, sizeof(*a->rows), compare_paths);
	*rows = a->rows;
	*nrows = a->nrows;
	a->rows = NULL;
	a->nrows = 0;
}
