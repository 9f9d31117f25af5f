#include "images/agent/taken.h"

#include "common/xmalloc.h"

struct taken_entry {
	LIST_ENTRY(taken_entry) by_name;
	TAILQ_ENTRY(taken_entry) by_age;
	struct taken_mark mark;
	char *root;
	char *path;
};

void
taken_init(struct taken *t)
{
	memset(t, 0, sizeof(*t));
	TAILQ_INIT(&t->by_age);
}

/* FNV-1a.  Names are chosen by the sandbox's code, which with a bad choice
 * slows down its own sandbox, by at most TAKEN_MAX comparisons. */
static size_t
hash(const char *root, const char *path)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *root != '\0'; root++)
		h = (h ^ (uint8_t)*root) * 0x100000001b3u;
	for (; *path != '\0'; path++)
		h = (h ^ (uint8_t)*path) * 0x100000001b3u;
	return (size_t)(h ^ (h >> 32)) % TAKEN_BUCKETS;
}

static struct taken_entry *
find(const struct taken *t, const char *root, const char *path)
{
	struct taken_entry *en;

	LIST_FOREACH (en, &t->buckets[hash(root, path)], by_name)
		if (strcmp(en->path, path) == 0 && strcmp(en->root, root) == 0)
			return en;
	return NULL;
}

static void
drop(struct taken *t, struct taken_entry *en)
{
	LIST_REMOVE(en, by_name);
	TAILQ_REMOVE(&t->by_age, en, by_age);
	t->count--;
	free(en->root);
	free(en->path);
	free(en);
}

void
taken_clear(struct taken *t)
{
	struct taken_entry *en;

	while ((en = TAILQ_FIRST(&t->by_age)) != NULL)
		drop(t, en);
}

void
taken_mark_of(const struct stat *st, struct taken_mark *mark)
{
	mark->dev = (uint64_t)st->st_dev;
	mark->inode = (uint64_t)st->st_ino;
	mark->size = st->st_size;
	mark->mtime_ns =
	    st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
	mark->ctime_ns =
	    st->st_ctim.tv_sec * INT64_C(1000000000) + st->st_ctim.tv_nsec;
}

bool
taken_mark_is_equal(const struct taken_mark *a, const struct taken_mark *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size &&
	    a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

void
taken_put(struct taken *t, const char *root, const char *path,
    const struct taken_mark *mark)
{
	struct taken_entry *en = find(t, root, path);

	if (en != NULL)
		drop(t, en);
	else if (t->count >= TAKEN_MAX)
		drop(t, TAILQ_FIRST(&t->by_age));
	en = xcalloc(1, sizeof(*en));
	en->mark = *mark;
	en->root = xstrdup(root);
	en->path = xstrdup(path);
	LIST_INSERT_HEAD(&t->buckets[hash(root, path)], en, by_name);
	TAILQ_INSERT_TAIL(&t->by_age, en, by_age);
	t->count++;
}

const struct taken_mark *
taken_find(const struct taken *t, const char *root, const char *path)
{
	const struct taken_entry *en = find(t, root, path);

	return en != NULL ? &en->mark : NULL;
}
