/* fuzz_js.c - what parses must dump and parse again to the same value, and
 * any bytes must become a string that does.
 * libs: common */
#include "common/js.h"
#include "tests/fuzz/fuzz.h"

#define DEPTH_MAX 32

static int
depth_of(const json_t *j)
{
	int deepest = 0;
	const char *key;
	json_t *value;
	size_t i;

	if (json_is_array(j)) {
		json_array_foreach (j, i, value)
			if (depth_of(value) > deepest)
				deepest = depth_of(value);
		return deepest + 1;
	}
	if (!json_is_object(j))
		return 0;
	json_object_foreach ((json_t *)(uintptr_t)j, key, value)
		if (depth_of(value) > deepest)
			deepest = depth_of(value);
	return deepest + 1;
}

static void
check_again(const json_t *j, size_t max)
{
	AUTO(auto_free) char *text = js_dump(j);
	json_t *again = NULL;
	struct err e;

	if (js_parse(text, strlen(text), max, DEPTH_MAX, &again, &e) != 0 ||
	    !json_equal(j, again))
		abort();
	json_decref(again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *j = NULL, *s;
	struct err e;

	if (js_parse((const char *)data, size, 1 << 16, DEPTH_MAX, &j, &e) ==
	    0) {
		if (size <= 4096 && depth_of(j) > DEPTH_MAX)
			abort();
		check_again(j, 1 << 24);
		json_decref(j);
	}
	s = js_string_bytes(data, size, NULL);
	if (memchr(json_string_value(s), 0, json_string_length(s)) == NULL)
		check_again(s, 1 << 24);
	json_decref(s);
	return 0;
}
