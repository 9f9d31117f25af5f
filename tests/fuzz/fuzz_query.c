/* fuzz_query.c - a query as anybody may send it, for a table with a parameter
 * of each kind */
#include "common/utf8.h"
#include "supervisor/front/query.h"
#include "tests/fuzz/fuzz.h"

static const char *const words[] = {"one", "two", NULL};

static const struct query_param table[] = {
    {.name = "text", .kind = QUERY_TEXT, .max = 8},
    {.name = "uuid", .kind = QUERY_UUID},
    {.name = "word", .kind = QUERY_WORD, .words = words},
    {.name = "number", .kind = QUERY_NUMBER, .min = 1, .max = 500},
    {.name = "time", .kind = QUERY_TIME},
    {.name = "bool", .kind = QUERY_BOOL},
    {.name = "sort", .kind = QUERY_SORT, .words = words},
};

static const struct query_table known = {table, ARRAY_LEN(table)};

/* What was taken is what the table wants. */
static void
check(const struct query *q)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct query_value *v = &q->values[i];

		REQUIRE(v->is_given == (v->text != NULL));
		REQUIRE(
		    !v->is_given || utf8_is_valid(v->text, strlen(v->text)));
	}
	REQUIRE(!q->values[0].is_given ||
	    (q->values[0].text[0] != '\0' && strlen(q->values[0].text) <= 8));
	REQUIRE(q->values[2].word <= 1 && q->values[6].word <= 1);
	REQUIRE(!q->values[3].is_given ||
	    (q->values[3].number >= 1 && q->values[3].number <= 500));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	struct query q = {0};
	struct err e = {0};

	if (query_parse(text, &known, 1000, &q, &e) == 0) {
		check(&q);
		query_clear(&q);
	} else {
		REQUIRE(e.code == ERR_INVAL && e.msg[0] != '\0');
		REQUIRE(utf8_is_valid(e.msg, strlen(e.msg)));
		REQUIRE(q.mem == NULL);
	}
	return 0;
}
