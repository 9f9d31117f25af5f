#include "images/agent/taken.h"

#include "common/xmalloc.h"

struct taken_entry {
	struct hash_entry by_name;
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

struct taken_name {
	const char *root;
	const char *path;
};

static uint64_t
hash_of(const char *root, const char *path)
{
	return hashmap_key_named(hashmap_key_text(root), path);
}

static bool
is_name(const struct hash_entry *h, const void *key)
{
	const struct taken_entry *en =
	    HASH_OF(h, const struct taken_entry, by_name);
	const struct taken_name *name = key;

	return strcmp(en->path, name->path) == 0 &&
	    strcmp(en->root, name->root) == 0;
}

static struct taken_entry *
find(const struct taken *t, const char *root, const char *path)
{
	const struct taken_name name = {root, path};
	struct hash_entry *h =
	    hashmap_get(&t->by_name, hash_of(root, path), is_name, &name);

	return HASH_OBJECT(h, struct taken_entry, by_name);
}

static void
drop(struct taken *t, struct taken_entry *en)
{
	hashmap_del(&t->by_name, &en->by_name);
	TAILQ_REMOVE(&t->by_age, en, by_age);
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
	hashmap_clear(&t->by_name);
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
	else if (t->by_name.count >= TAKEN_MAX)
		drop(t, TAILQ_FIRST(&t->by_age));
	en = xcalloc(1, sizeof(*en));
	en->mark = *mark;
	en->root = xstrdup(root);
	en->path = xstrdup(path);
	hashmap_put(&t->by_name, &en->by_name, hash_of(root, path));
	TAILQ_INSERT_TAIL(&t->by_age, en, by_age);
}

void
taken_move(struct taken *from, struct taken *to)
{
	const struct taken_entry *en;

	TAILQ_FOREACH (en, &from->by_age, by_age)
		taken_put(to, en->root, en->path, &en->mark);
	taken_clear(from);
}

const struct taken_mark *
taken_find(const struct taken *t, const char *root, const char *path)
{
	const struct taken_entry *en = find(t, root, path);

	return en != NULL ? &en->mark : NULL;
}
