#include "worker/backends.h"

#include "common/conf.h"
#include "common/exit.h"
#include "common/log.h"
#include "worker/docker/docker.h"
#include "worker/kubernetes/kubernetes.h"

/* A row here is a word of SANDBOX_BACKEND in schema/config.txt. */
static const struct backend_kind {
	const char *word;
	int (*open)(const struct conf *conf, const struct backend_start *start,
	    struct backend **out, struct err *e);
	int (*ask_facts)(
	    const struct conf *conf, struct backend_facts *out, struct err *e);
} kinds[] = {{"docker", docker_open, docker_ask_facts},
    {"kubernetes", kubernetes_open, kubernetes_ask_facts}};

/* Other words than these, the configuration refuses. */
static const struct backend_kind *
kind_of(const struct conf *conf)
{
	const char *word = conf_str(conf, CONF_SANDBOX_BACKEND);

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(kinds[i].word, word) == 0)
			return &kinds[i];
	fatal(EXIT_BUG, "no backend is called %s", word);
}

int
backend_open_configured(const struct conf *conf,
    const struct backend_start *start, struct backend **out, struct err *e)
{
	return kind_of(conf)->open(conf, start, out, e);
}

int
backend_ask_facts(
    const struct conf *conf, struct backend_facts *out, struct err *e)
{
	return kind_of(conf)->ask_facts(conf, out, e);
}
