/*
 * taken.h - which files the worker has copied, and what they were then
 *
 * At most TAKEN_MAX; for one more the oldest goes and would be copied again.
 */
#ifndef AGENT_TAKEN_H
#define AGENT_TAKEN_H

#include <sys/queue.h>
#include <sys/stat.h>

#include "common/base.h"
#include "common/hashmap.h"

#define TAKEN_MAX 50000 /* some 200 bytes each */

/* Two equal marks: the file was not written in between. */
struct taken_mark {
	uint64_t dev;
	uint64_t inode;
	int64_t size;
	int64_t mtime_ns;
	int64_t ctime_ns;
};

struct taken_entry;
TAILQ_HEAD(taken_list, taken_entry);

struct taken {
	struct taken_list by_age;
	struct hashmap by_name;
};

void taken_init(struct taken *t);
void taken_clear(struct taken *t);
void taken_mark_of(const struct stat *st, struct taken_mark *mark);
bool taken_mark_is_equal(
    const struct taken_mark *a, const struct taken_mark *b);
/* taken_put - remember, in place of what was known of root and path */
void taken_put(struct taken *t, const char *root, const char *path,
    const struct taken_mark *mark);
/* taken_move - all entries of from to to */
void taken_move(struct taken *from, struct taken *to);
/* taken_find - NULL when unknown */
const struct taken_mark *taken_find(
    const struct taken *t, const char *root, const char *path);

#endif
