#include "images/agent/journal.h"

#include "common/xmalloc.h"

static bool
is_key(const struct hash_entry *h, const void *key)
{
	const struct journal_entry *en =
	    HASH_OF(h, const struct journal_entry, by_key);

	return uuid_is_equal(&en->key, key);
}

void
journal_init(struct journal *j, void (*drop_seq)(struct seq *q))
{
	memset(j, 0, sizeof(*j));
	TAILQ_INIT(&j->live);
	TAILQ_INIT(&j->ended);
	j->drop_seq = drop_seq;
}

static void
entry_free(struct journal *j, struct journal_entry *en)
{
	if (en->seq != NULL) {
		j->nkept--;
		j->drop_seq(en->seq);
	}
	hashmap_del(&j->by_key, &en->by_key);
	free(en);
}

struct journal_entry *
journal_find(const struct journal *j, const struct uuid *key)
{
	struct hash_entry *h =
	    hashmap_get(&j->by_key, hashmap_key_uuid(key), is_key, key);

	return HASH_OBJECT(h, struct journal_entry, by_key);
}

struct journal_entry *
journal_add(struct journal *j, const struct uuid *key, struct seq *seq)
{
	struct journal_entry *en = xcalloc(1, sizeof(*en));

	en->key = *key;
	en->seq = seq;
	hashmap_put(&j->by_key, &en->by_key, hashmap_key_uuid(key));
	TAILQ_INSERT_TAIL(&j->live, en, by_age);
	j->nlive++;
	j->nkept++;
	return en;
}

static void
drop_oldest(struct journal *j)
{
	struct journal_entry *en;

	TAILQ_FOREACH (en, &j->ended, by_age)
		if (en->seq == NULL)
			break;
	if (en == NULL)
		en = TAILQ_FIRST(&j->ended);
	if (en == NULL)
		return;
	TAILQ_REMOVE(&j->ended, en, by_age);
	j->nended--;
	entry_free(j, en);
}

void
journal_end(struct journal *j, struct journal_entry *en, uint64_t length)
{
	if (j->nended >= JOURNAL_ENDED_MAX)
		drop_oldest(j);
	en->ended = true;
	en->length = length;
	TAILQ_REMOVE(&j->live, en, by_age);
	TAILQ_INSERT_TAIL(&j->ended, en, by_age);
	j->nlive--;
	j->nended++;
}

struct seq *
journal_forget(struct journal *j, struct journal_entry *en)
{
	struct seq *seq = en->seq;

	if (seq != NULL)
		j->nkept--;
	en->seq = NULL;
	return seq;
}
