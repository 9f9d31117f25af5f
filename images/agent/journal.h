/*
 * journal.h - which run keys ran here
 *
 * An entry is live until journal_end.  At most JOURNAL_ENDED_MAX ended ones
 * are kept: for one more the oldest whose log was forgotten goes, or if there
 * is none the oldest of all.  A live entry never goes.
 */
#ifndef AGENT_JOURNAL_H
#define AGENT_JOURNAL_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/hashmap.h"
#include "common/uuid.h"

#define JOURNAL_ENDED_MAX 4096

struct seq;

struct journal_entry {
	struct uuid key;
	bool ended;
	struct seq *seq; /* NULL: its log was forgotten */
	uint64_t length; /* of the log; right once it has ended */
	struct hash_entry by_key;
	TAILQ_ENTRY(journal_entry) by_age; /* among the live or the ended */
};

TAILQ_HEAD(journal_list, journal_entry);

struct journal {
	uint32_t nlive;
	uint32_t nended;
	uint32_t nkept; /* entries with a sequence */
	struct journal_list live;
	struct journal_list ended;       /* oldest first */
	void (*drop_seq)(struct seq *q); /* frees an old entry's */
	struct hashmap by_key;
};

void journal_init(struct journal *j, void (*drop_seq)(struct seq *q));
struct journal_entry *journal_find(
    const struct journal *j, const struct uuid *key);
/* journal_add - a live entry; the key must be new.  seq is the journal's
 * until journal_forget or until the entry is dropped. */
struct journal_entry *journal_add(
    struct journal *j, const struct uuid *key, struct seq *seq);
void journal_end(struct journal *j, struct journal_entry *en, uint64_t length);
/* journal_forget - of an ended entry; gives the sequence back to the caller
 * (NULL when it was forgotten before) */
struct seq *journal_forget(struct journal *j, struct journal_entry *en);

#endif
