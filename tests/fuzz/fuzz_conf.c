/* fuzz_conf.c - configuration files.
 * libs: common */
#include "common/conf.h"
#include "tests/fuzz/fuzz.h"

static int
set_cb(const char *key, const char *value, void *arg, struct err *e)
{
	return conf_set(arg, key, value, e);
}

/* What one process has, another must be able to take. */
static void
send_cb(const char *key, const char *value, void *arg)
{
	struct err e;

	REQUIRE(conf_set(arg, key, value, &e) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *c = conf_new(), *child = conf_new(), *copy;
	const char *first;
	struct err e = {0};
	int rc =
	    conf_file_parse((const char *)data, size, "fuzz", set_cb, c, &e);

	if (rc != 0 && (e.code != rc || e.msg[0] == '\0'))
		abort();
	if (conf_check(c, &e) != 0 && e.msg[0] == '\0')
		abort();
	conf_each(c, CONF_FRONT, send_cb, child);
	copy = conf_copy(c);
	if (conf_take_reload(copy, c, &first) != 0 || first != NULL)
		abort();
	conf_free(copy);
	conf_free(child);
	conf_free(c);
	return 0;
}
