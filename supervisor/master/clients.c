#include "supervisor/master/clients.h"

#include "common/xmalloc.h"
#include "supervisor/master/tlsfiles.h"

#define MARK "@URL@"

/* Made by schema/gen.py: texts for a terminal, URLs left open. */
static const struct client_text {
	const char *name;
	const char *text;
} clients[] = {
#include "supervisor/master/clients_gen.h"
};

int
clients_check(const char *name, struct err *e)
{
	char names[ERR_TEXT_MAX] = "";
	size_t len = 0;

	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		if (strcmp(clients[i].name, name) == 0)
			return 0;
		(void)snprintf(names + len, sizeof(names) - len, "%s%s",
		    i == 0 ? "" : ", ", clients[i].name);
		len = strlen(names);
	}
	return err_set(e, ERR_INVAL,
	    "clients: \"%.64s\" is none of %s; without a name all are printed",
	    name, names);
}

/* Addresses that mean all of them are reached by loopback. */
static char *
host_of(const char *bind_to)
{
	if (bind_to[0] == '\0' || strcmp(bind_to, "0.0.0.0") == 0)
		return xstrdup("127.0.0.1");
	if (strcmp(bind_to, "::") == 0)
		return xstrdup("[::1]");
	return strchr(bind_to, ':') == NULL ? xstrdup(bind_to) :
					      xasprintf("[%s]", bind_to);
}

static int
find_url(const struct conf *conf, char **url, struct err *e)
{
	AUTO(auto_free) char *host = NULL;

	if (strcmp(conf_str(conf, CONF_BIND), CONF_BIND_NONE) == 0)
		return err_set(e, ERR_INVAL,
		    "BIND=none: a server without an address is reached by "
		    "\"mcp-sandboxd stdio\" alone");
	if (conf_int(conf, CONF_PORT) == 0)
		return err_set(e, ERR_INVAL,
		    "PORT=0 is another port at each start: the log's line "
		    "\"listening on\" names it; say PORT=that");
	host = host_of(conf_str(conf, CONF_BIND));
	*url = xasprintf("%s://%s:%d%s", tlsfiles_scheme(conf), host,
	    (int)conf_int(conf, CONF_PORT), conf_str(conf, CONF_MCP_PATH));
	return 0;
}

static void
print_text(const char *text, const char *url, FILE *f)
{
	const char *mark;

	while ((mark = strstr(text, MARK)) != NULL) {
		(void)fprintf(f, "%.*s%s", (int)(mark - text), text, url);
		text = mark + strlen(MARK);
	}
	(void)fputs(text, f);
}

int
clients_print(const char *name, const struct conf *conf, FILE *f, struct err *e)
{
	AUTO(auto_free) char *url = NULL;
	bool first = true;

	if (find_url(conf, &url, e) != 0)
		return e->code;
	for (size_t i = 0; i < ARRAY_LEN(clients); i++) {
		if (name != NULL && strcmp(clients[i].name, name) != 0)
			continue;
		if (!first)
			(void)fputs("\n----\n\n", f);
		print_text(clients[i].text, url, f);
		first = false;
	}
	if (fflush(f) != 0 || ferror(f))
		return err_set(e, ERR_SYS, "cannot print");
	return 0;
}
