#include "common/ceiling.h"

#include <ctype.h>
#include <stdio.h>

#define CEILING "ceiling."
#define RULE "rule."

static const enum quota_key bounded[] = {QUOTA_SANDBOXES, QUOTA_CPU_CORES,
    QUOTA_MEMORY_MB, QUOTA_SANDBOX_CPU_CORES, QUOTA_SANDBOX_MEMORY_MB,
    QUOTA_SANDBOX_PIDS};

int
ceiling_set(
    struct ceiling *c, const char *key, const char *value, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(bounded); i++)
		if (strcmp(quota_rule(bounded[i])->key, key) == 0)
			return quota_parse(
			    bounded[i], value, &c->most[bounded[i]], e);
	return err_set(e, ERR_INVAL,
	    "no ceiling %.40s: want sandboxes, cpu_cores, memory_mb, "
	    "sandbox_cpu_cores, sandbox_memory_mb or sandbox_pids",
	    key);
}

static bool
is_runtime(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > CEILING_RUNTIME_MAX || !isalnum((unsigned char)*s))
		return false;
	for (; *s != '\0'; s++)
		if (!isalnum((unsigned char)*s) && strchr("_.-", *s) == NULL)
			return false;
	return true;
}

int
ceiling_rule(
    struct ceiling *c, const char *key, const char *value, struct err *e)
{
	if (strcmp(key, "runtime") == 0) {
		if (!is_runtime(value))
			return err_set(e, ERR_INVAL,
			    "rule runtime: \"%.64s\" is no runtime name",
			    value);
		(void)snprintf(c->runtime, sizeof(c->runtime), "%s", value);
		return 0;
	}
	if (strcmp(key, "read_only_root") != 0)
		return err_set(e, ERR_INVAL,
		    "no rule %.40s: want runtime or read_only_root", key);
	if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
		return err_set(
		    e, ERR_INVAL, "rule read_only_root: want true or false");
	c->root =
	    value[0] == 't' ? CEILING_ROOT_READ_ONLY : CEILING_ROOT_WRITABLE;
	return 0;
}

static bool
begins(const char *word, const char *with)
{
	return strncmp(word, with, strlen(with)) == 0;
}

bool
ceiling_is_word(const char *word)
{
	return begins(word, CEILING) || begins(word, RULE);
}

int
ceiling_word(struct ceiling *c, const char *word, struct err *e)
{
	const char *dot = strchr(word, '.'), *equals = strchr(word, '=');
	char key[CEILING_KEY_MAX + 1];

	if (dot == NULL || equals == NULL || equals < dot ||
	    (size_t)(equals - dot) > sizeof(key))
		return err_set(e, ERR_INVAL,
		    "%.60s: want ceiling.KEY=VALUE or rule.KEY=VALUE", word);
	(void)snprintf(
	    key, sizeof(key), "%.*s", (int)(equals - dot - 1), dot + 1);
	return begins(word, CEILING) ? ceiling_set(c, key, equals + 1, e) :
				       ceiling_rule(c, key, equals + 1, e);
}

void
ceiling_fill(struct ceiling *c, const struct ceiling *from)
{
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		if (c->most[i] == 0)
			c->most[i] = from->most[i];
	if (c->runtime[0] == '\0')
		memcpy(c->runtime, from->runtime, sizeof(c->runtime));
	if (c->root == CEILING_ROOT_UNSET)
		c->root = from->root;
}
