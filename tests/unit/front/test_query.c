/* Parameters of a query, by a table. */
#include <stdio.h>

#include "supervisor/front/query.h"
#include "tests/unit/test.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define UUID "01234567-89ab-4def-8123-456789abcdef"

enum {
	NAME,
	ID,
	STATE,
	LIMIT,
	SINCE,
	COUNT,
	SORT
};

static const char *const states[] = {"queued", "ended", NULL};
static const char *const orders[] = {"created", "bytes", NULL};

static bool
is_lower(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz") == strlen(text);
}

static const struct query_param table[] = {
    [NAME] = {.name = "name", .kind = QUERY_TEXT, .max = 8},
    [ID] = {.name = "id", .kind = QUERY_UUID},
    [STATE] = {.name = "state", .kind = QUERY_WORD, .words = states},
    [LIMIT] = {.name = "limit", .kind = QUERY_NUMBER, .min = 1, .max = 500},
    [SINCE] = {.name = "since", .kind = QUERY_TIME},
    [COUNT] = {.name = "count", .kind = QUERY_BOOL},
    [SORT] = {.name = "sort", .kind = QUERY_SORT, .words = orders},
};

static const struct query_table known = {table, ARRAY_LEN(table)};

static struct query
good(const char *text)
{
	struct query q = {0};
	struct err e;

	if (query_parse(text, &known, NOW_MS, &q, &e) != 0)
		fail_msg("%s: %s", text, e.msg);
	return q;
}

static void
expect_refusal(const char *text, const char *why)
{
	struct query q = {0};
	struct err e;

	if (query_parse(text, &known, NOW_MS, &q, &e) == 0)
		fail_msg("%s was taken", text);
	assert_int_equal(e.code, ERR_INVAL);
	assert_string_equal(e.msg, why);
}

TEST(what_is_not_given_is_not_there)
{
	struct query q = good(NULL);

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_false(q.values[i].is_given);
	query_clear(&q);
	q = good("&&");
	assert_false(q.values[NAME].is_given);
	query_clear(&q);
}

TEST(each_kind_has_its_value)
{
	struct query q = good("name=a%20+%C3%A4&id=" UUID "&state=ended&"
			      "limit=500&since=-30m&count&sort=-bytes");

	assert_string_equal(q.values[NAME].text, "a  \xc3\xa4");
	assert_int_equal(q.values[ID].uuid.b[15], 0xef);
	assert_int_equal(q.values[STATE].word, 1);
	assert_int_equal(q.values[LIMIT].number, 500);
	assert_true(q.values[SINCE].time_ms == NOW_MS - 30 * 60000);
	assert_true(q.values[COUNT].is_true);
	assert_int_equal(q.values[SORT].word, 1);
	assert_true(q.values[SORT].is_descending);
	query_clear(&q);
}

TEST(times_are_read_in_every_form)
{
	static const struct {
		const char *text;
		int64_t ms;
	} forms[] = {
	    {"2026-01-01T00:00:00Z", NOW_MS},
	    {"2026-01-01t00:00:00z", NOW_MS},
	    {"2026-01-01T00:00:00.1239Z", NOW_MS + 123},
	    {"2026-01-01T01:30:00%2B01:30", NOW_MS},
	    {"2026-01-01T01:30:00+01:30", NOW_MS},
	    {"2025-12-31T19:00:00-05:00", NOW_MS},
	    {"2024-02-29T00:00:00Z", INT64_C(1709164800000)},
	    {"1767225600", NOW_MS},
	    {"0", 0},
	    {"-90s", NOW_MS - 90000},
	    {"-2h", NOW_MS - 7200000},
	    {"-7d", NOW_MS - INT64_C(604800000)},
	    {"-1w", NOW_MS - INT64_C(604800000)},
	};
	char text[100];

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		struct query q = {0};

		(void)snprintf(text, sizeof(text), "since=%s", forms[i].text);
		q = good(text);
		assert_true(q.values[SINCE].time_ms == forms[i].ms);
		query_clear(&q);
	}
}

TEST(what_is_no_time_is_refused)
{
	static const char *const forms[] = {"", "yesterday", "2026-01-01",
	    "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z",
	    "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
	    "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "-", "-5", "-h",
	    "-5y", "-5hh", "-99999999h", "253402300800", "1e9"};
	char text[100];

	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		(void)snprintf(text, sizeof(text), "since=%s", forms[i]);
		expect_refusal(text,
		    "since: want a time as in RFC 3339 (2026-01-31T18:00:00Z), "
		    "seconds since 1970, or one before now (-30m, -2h, -7d)");
	}
}

TEST(unknown_names_are_refused_with_those_that_are_known)
{
	struct query q = {0};
	struct err e;

	expect_refusal("unknown=5",
	    "there is no parameter \"unknown\" here; there are: name, id, "
	    "state, "
	    "limit, since, count, sort");
	expect_refusal("=5",
	    "there is no parameter \"\" here; there are: name, id, state, "
	    "limit, since, count, sort");
	assert_int_equal(query_parse("a%0a%c2%8cb=1",
			     &(struct query_table){table, 0}, 0, &q, &e),
	    ERR_INVAL);
	assert_string_equal(
	    e.msg, "there is no parameter \"a??b\" here, nor any other");
}

TEST(values_that_do_not_fit_are_named_with_what_is_wanted)
{
	expect_refusal("name=", "name: want 1 to 8 bytes of text");
	expect_refusal("name=123456789", "name: want 1 to 8 bytes of text");
	expect_refusal("id=7", "id: want a UUID");
	expect_refusal("state=end", "state: want one of queued, ended");
	expect_refusal("limit=0", "limit: want a number from 1 to 500");
	expect_refusal("limit=501", "limit: want a number from 1 to 500");
	expect_refusal("limit=-1", "limit: want a number from 1 to 500");
	expect_refusal(
	    "limit=18446744073709551617", "limit: want a number from 1 to 500");
	expect_refusal("limit", "limit: want a number from 1 to 500");
	expect_refusal("count=yes", "count: want true or false");
	expect_refusal("sort=--bytes",
	    "sort: want one of created, bytes; behind a \"-\", the largest "
	    "first");
}

TEST(a_text_may_have_a_form)
{
	static const struct query_param one[] = {{.name = "word",
	    .kind = QUERY_TEXT,
	    .fits = is_lower,
	    .want = "small letters"}};
	static const struct query_table one_word = {one, 1};
	struct query q = {0};
	struct err e;

	assert_int_equal(query_parse("word=abc", &one_word, 0, &q, &e), 0);
	query_clear(&q);
	assert_int_equal(
	    query_parse("word=aBc", &one_word, 0, &q, &e), ERR_INVAL);
	assert_string_equal(e.msg, "word: want small letters");
}

TEST(what_comes_twice_is_refused)
{
	expect_refusal(
	    "limit=5&limit=5", "limit: it is given twice; give it once");
	expect_refusal(
	    "limit=5&lim%69t=6", "limit: it is given twice; give it once");
}

TEST(what_is_not_encoded_well_is_refused)
{
	static const char *const bad[] = {"name=%", "name=%4", "name=%zz",
	    "name=%00", "name=%c3", "name=\xff"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect_refusal(bad[i],
		    "name: its value is not percent-encoded UTF-8 without a "
		    "NUL");
	expect_refusal(
	    "n%fe=1", "the query: a name is not percent-encoded UTF-8");
}

TEST(a_query_has_a_bound)
{
	static char text[QUERY_BYTES_MAX + 2];

	memset(text, '&', QUERY_BYTES_MAX + 1);
	expect_refusal(text, "the query is longer than 16384 bytes");
}

TEST_MAIN(NULL, NULL)
