#include "worker/backends.h"

#include "common/conf.h"
#include "worker/docker/docker.h"

/* A row here is a word of SANDBOX_BACKEND in schema/config.txt. */
static const struct backend_kind {
	const char *word;
	int (*open)(const struct conf *conf, const struct backend_start *start,
	    struct backend **out, struct err *e);
	int (*ask_facts)(
	    const struct conf *conf, struct backend_facts *out, struct err *e);
} kinds[] = {{"docker", docker_open, docker_ask_facts}};

static const struct backend_kind *
find_kind(const struct conf *conf, struct err *e)
{
	const char *word = conf_str(conf, CONF_SANDBOX_BACKEND);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].word, word) == 0)
			return &kinds[i];
	(void)err_set(e, ERR_INVAL,
	    "SANDBOX_BACKEND: this worker has no backend %s", word);
	return NULL;
}

int
backend_open_configured(const struct conf *conf,
    const struct backend_start *start, struct backend **out, struct err *e)
{
	const struct backend_kind *k = find_kind(conf, e);

	return k == NULL ? ERR_INVAL : k->open(conf, start, out, e);
}

int
backend_ask_facts(
    const struct conf *conf, struct backend_facts *out, struct err *e)
{
	const struct backend_kind *k = find_kind(conf, e);

	return k == NULL ? ERR_INVAL : k->ask_facts(conf, out, e);
}
