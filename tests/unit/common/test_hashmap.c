#include "common/hashmap.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define MANY 4096

struct thing {
	char padding[3]; /* the entry is not the first member */
	uint64_t id;
	const char *name;
	bool seen;
	struct hash_entry entry;
};
static struct thing things[MANY];

static uint64_t
id_of(uint64_t i)
{
	return i * UINT64_C(2654435761);
}

static struct thing *
thing_of(struct hash_entry *en)
{
	return HASH_OBJECT(en, struct thing, entry);
}

static struct thing *
find(const struct hashmap *m, uint64_t id)
{
	return thing_of(hashmap_get_u64(m, id));
}

static void
put_many(struct hashmap *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		things[i] = (struct thing){.id = id_of(i)};
		hashmap_put(m, &things[i].entry, hashmap_key_u64(things[i].id));
	}
}

TEST(a_zeroed_map_is_empty)
{
	struct hashmap m = {0};

	assert_null(find(&m, 0));
	assert_null(hashmap_next(&m, NULL));
	hashmap_clear(&m);
}

TEST(what_was_put_is_found_whatever_else_goes)
{
	struct hashmap m = {0};

	put_many(&m, MANY);
	for (size_t i = 0; i < MANY; i += 3)
		hashmap_del(&m, &things[i].entry);
	for (size_t i = 0; i < MANY; i++)
		assert_ptr_equal(
		    find(&m, id_of(i)), i % 3 == 0 ? NULL : &things[i]);
	assert_int_equal(m.count, MANY - (MANY + 2) / 3);
	hashmap_clear(&m);
}

TEST(numbers_never_share_a_hash)
{
	static const uint64_t ids[] = {
	    0, 1, 2, UINT32_MAX, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(
			    hashmap_key_u64(ids[i]), hashmap_key_u64(ids[j]));
}

TEST(a_walk_meets_every_entry_once)
{
	struct hash_entry *en, *next;
	struct hashmap m = {0};
	size_t n = 0;

	put_many(&m, 100);
	HASHMAP_FOREACH (en, next, &m) {
		assert_false(thing_of(en)->seen);
		thing_of(en)->seen = true;
		n++;
	}
	assert_int_equal(n, 100);
	hashmap_clear(&m);
}

TEST(a_walk_may_free_what_it_is_given)
{
	struct hash_entry *en, *next;
	struct hashmap m = {0};

	for (uint64_t i = 0; i < 100; i++) {
		struct thing *t = xcalloc(1, sizeof(*t));

		hashmap_put(&m, &t->entry, hashmap_key_u64(i));
	}
	HASHMAP_FOREACH (en, next, &m) {
		hashmap_del(&m, en);
		free(thing_of(en));
	}
	assert_int_equal(m.count, 0);
	assert_null(hashmap_next(&m, NULL));
	hashmap_clear(&m);
}

TEST(a_map_that_was_large_becomes_small_again)
{
	struct hashmap m = {0};
	size_t large;

	put_many(&m, MANY);
	large = m.nbuckets;
	for (size_t i = 0; i < MANY; i++)
		hashmap_del(&m, &things[i].entry);
	for (size_t i = 0; i < 64; i++) {
		hashmap_put(&m, &things[0].entry, hashmap_key_u64(0));
		hashmap_del(&m, &things[0].entry);
	}
	assert_true(large >= MANY);
	assert_true(m.nbuckets < 64);
	hashmap_clear(&m);
}

static bool
is_named(const struct hash_entry *en, const void *key)
{
	const struct thing *want = key;
	const struct thing *t = HASH_OF(en, const struct thing, entry);

	return t->id == want->id && strcmp(t->name, want->name) == 0;
}

static struct thing *
find_named(const struct hashmap *m, uint64_t number, const char *name)
{
	const struct thing want = {.id = number, .name = name};

	return thing_of(
	    hashmap_get(m, hashmap_key_named(number, name), is_named, &want));
}

TEST(a_number_and_a_text_are_a_key_together)
{
	struct hashmap m = {0};

	things[0] = (struct thing){.id = 1, .name = "chat"};
	things[1] = (struct thing){.id = 2, .name = "chat"};
	for (size_t i = 0; i < 2; i++)
		hashmap_put(&m, &things[i].entry,
		    hashmap_key_named(things[i].id, things[i].name));
	assert_ptr_equal(find_named(&m, 1, "chat"), &things[0]);
	assert_ptr_equal(find_named(&m, 2, "chat"), &things[1]);
	assert_null(find_named(&m, 1, "cha"));
	assert_null(find_named(&m, 3, "chat"));
	hashmap_clear(&m);
}

/* All in one bucket and with one hash: comparisons find the right one. */
TEST(keys_of_one_hash_are_told_apart)
{
	static const char *const names[] = {"a", "b", "c"};
	struct hashmap m = {0};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		things[i] = (struct thing){.name = names[i]};
		hashmap_put(&m, &things[i].entry, 7);
	}
	hashmap_del(&m, &things[1].entry);
	assert_ptr_equal(
	    thing_of(hashmap_get(&m, 7, is_named, &things[0])), &things[0]);
	assert_null(hashmap_get(&m, 7, is_named, &things[1]));
	assert_ptr_equal(
	    thing_of(hashmap_get(&m, 7, is_named, &things[2])), &things[2]);
	hashmap_clear(&m);
}

TEST(bytes_hash_by_all_of_them_and_their_count)
{
	static const uint8_t zeros[64];
	uint64_t seen[ARRAY_LEN(zeros)];

	for (size_t n = 0; n < ARRAY_LEN(zeros); n++) {
		seen[n] = hashmap_key_bytes(zeros, n);
		for (size_t i = 0; i < n; i++)
			assert_int_not_equal(seen[n], seen[i]);
	}
	for (size_t at = 0; at < ARRAY_LEN(zeros); at++) {
		uint8_t one[sizeof(zeros)] = {0};

		one[at] = 1;
		assert_int_not_equal(hashmap_key_bytes(one, sizeof(one)),
		    hashmap_key_bytes(zeros, sizeof(zeros)));
	}
	assert_int_equal(
	    hashmap_key_text("chat"), hashmap_key_bytes("chat", 4));
}

TEST_MAIN(NULL, NULL)
