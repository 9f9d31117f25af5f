#include "supervisor/master/clients.h"

#include <limits.h>

#include "common/xmalloc.h"
#include "supervisor/master/tlsfiles.h"

#define URL_MARK "@URL@"
#define PROGRAM_MARK "@PROGRAM@"
/* Around what is for a server that wants a token. */
#define TOKEN_MARK "@["
#define TOKEN_END_MARK "@]"

/* Made by schema/gen.py: texts for a terminal, marks left in.  The first one is
 * of tokens, and of no client. */
static const struct client_text {
	const char *name;
	const char *text;
} texts[] = {
#include "supervisor/master/clients_gen.h"
};
static const struct client_text *const clients = &texts[1];
#define NCLIENTS (ARRAY_LEN(texts) - 1)

int
clients_check(const char *name, struct err *e)
{
	char names[ERR_TEXT_MAX] = "";
	size_t len = 0;

	for (size_t i = 0; i < NCLIENTS; i++) {
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

/* Whoever starts it may have another PATH than this terminal. */
static void
find_program(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	if (n < 0)
		(void)snprintf(out, size, "mcp-sandboxd");
	else
		out[n] = '\0';
}

/* It stands in a JSON string. */
static void
print_quoted(const char *text, FILE *f)
{
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', f);
		(void)fputc(*text, f);
	}
}

/* What stands in place of the marks. */
struct marked {
	const char *url;
	char program[PATH_MAX];
	bool wants_token;
};

/* By what the settings say: tenants of the database are not known here. */
static bool
wants_token(const struct conf *conf)
{
	return conf_bool(conf, CONF_REQUIRE_TOKEN) ||
	    conf_str(conf, CONF_TENANTS_FILE)[0] != '\0';
}

/* Steps over the mark, if one is there. */
static bool
take_mark(const char **text, const char *mark)
{
	size_t n = strlen(mark);

	if (strncmp(*text, mark, n) != 0)
		return false;
	*text += n;
	return true;
}

static void
print_text(const char *text, const struct marked *m, FILE *f)
{
	bool is_skipped = false;

	while (*text != '\0') {
		if (take_mark(&text, TOKEN_MARK))
			is_skipped = !m->wants_token;
		else if (take_mark(&text, TOKEN_END_MARK))
			is_skipped = false;
		else if (is_skipped)
			text++;
		else if (take_mark(&text, URL_MARK))
			(void)fputs(m->url, f);
		else if (take_mark(&text, PROGRAM_MARK))
			print_quoted(m->program, f);
		else
			(void)fputc(*text++, f);
	}
}

int
clients_print(const char *name, const struct conf *conf, FILE *f, struct err *e)
{
	AUTO(auto_free) char *url = NULL;
	struct marked m = {.wants_token = wants_token(conf)};
	bool first = !m.wants_token;

	if (find_url(conf, &url, e) != 0)
		return e->code;
	m.url = url;
	find_program(m.program, sizeof(m.program));
	if (m.wants_token)
		print_text(texts[0].text, &m, f);
	for (size_t i = 0; i < NCLIENTS; i++) {
		if (name != NULL && strcmp(clients[i].name, name) != 0)
			continue;
		if (!first)
			(void)fputs("\n----\n\n", f);
		print_text(clients[i].text, &m, f);
		first = false;
	}
	if (fflush(f) != 0 || ferror(f))
		return err_set(e, ERR_SYS, "cannot print");
	return 0;
}
