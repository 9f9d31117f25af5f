#include "supervisor/master/stdio_command.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include "common/place.h"
#include "common/xmalloc.h"
#include "supervisor/master/spawn.h"

/* By the XDG Base Directory Specification: what is kept between starts and is
 * no configuration. A path that is not absolute is to be ignored.  Of root it
 * is not below its home, which the server's own users may not pass. */
char *
stdio_command_data_dir(void)
{
	static const char below[] = "mcp-sandboxd/stdio";
	const char *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	const struct passwd *who;

	if (state != NULL && state[0] == '/')
		return xasprintf("%s/%s", state, below);
	if (geteuid() == 0)
		return xasprintf("/var/lib/%s", below);
	if ((home == NULL || home[0] != '/') &&
	    (who = getpwuid(geteuid())) != NULL)
		home = who->pw_dir;
	return xasprintf("%s/.local/state/%s",
	    home != NULL && home[0] == '/' ? home : "", below);
}

static int
tell(const struct conf *conf, struct err *e)
{
	static const struct {
		const char *name;
		enum conf_key key;
	} told[] = {{"MCP_SANDBOXD_URL", CONF_MCP_SANDBOXD_URL},
	    {"MCP_SANDBOXD_CA_FILE", CONF_MCP_SANDBOXD_CA_FILE},
	    {"MCP_SANDBOXD_TOKEN", CONF_MCP_SANDBOXD_TOKEN},
	    {"MCP_SANDBOXD_TOKEN_FILE", CONF_MCP_SANDBOXD_TOKEN_FILE},
	    {"MCP_PATH", CONF_MCP_PATH}, {"LOG_LEVEL", CONF_LOG_LEVEL},
	    {"LOG_FORMAT", CONF_LOG_FORMAT}};
	AUTO(auto_free) char *data = NULL;
	size_t above;

	data = place_resolve(conf_str(conf, CONF_DATA_DIR), &above, e);
	if (data == NULL)
		return err_wrap(e, "DATA_DIR");
	for (size_t i = 0; i < ARRAY_LEN(told); i++)
		if (setenv(told[i].name, conf_str(conf, told[i].key), 1) == -1)
			return err_errno(e, "%s", told[i].name);
	if (setenv("DATA_DIR", data, 1) == -1 ||
	    setenv("STDIO_HTTP",
		conf_bool(conf, CONF_STDIO_HTTP) ? "true" : "false", 1) == -1)
		return err_errno(e, "DATA_DIR, STDIO_HTTP");
	return 0;
}

/* The program, this one, and what follows the command: the server that the
 * bridge may start is to have the same settings. */
static char **
make_arguments(const struct options *o, char *program, char *self)
{
	char **argv = xcalloc(o->nsettings + 5, sizeof(*argv));
	static char config[] = "--config";
	size_t n = 0;

	argv[n++] = program;
	argv[n++] = self;
	if (o->config_file != NULL) {
		argv[n++] = config;
		argv[n++] = xstrdup(o->config_file);
	}
	for (size_t i = 0; i < o->nsettings; i++)
		argv[n++] = o->settings[i];
	return argv;
}

void
stdio_command_run(
    const struct options *options, const struct conf *conf, struct err *e)
{
	AUTO(auto_free) char *program = NULL;
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n == -1) {
		(void)err_errno(e, "/proc/self/exe");
		return;
	}
	self[n] = '\0';
	if (spawn_find("mcp-sandboxd-stdio", &program, e) != 0 ||
	    tell(conf, e) != 0)
		return;
	(void)execv(program, make_arguments(options, program, self));
	(void)err_errno(e, "%s", program);
}
