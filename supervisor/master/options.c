#include "supervisor/master/options.h"

#include <getopt.h>
#include <sys/stat.h>

#include "common/child.h"
#include "supervisor/master/listen.h"

static void
auto_conf(struct conf **c)
{
	conf_free(*c);
}

/* getopt_long has moved what is no option to the end of argv. */
static int
take_settings(int argc, char **argv, struct options *o, struct err *e)
{
	if (optind < argc && strcmp(argv[optind], "doctor") == 0) {
		o->action = OPTIONS_DOCTOR;
		optind++;
	} else if (optind < argc && strcmp(argv[optind], "purge") == 0) {
		o->action = OPTIONS_PURGE;
		optind++;
	}
	if (o->yes && o->action != OPTIONS_PURGE)
		return err_set(
		    e, ERR_INVAL, "--yes is for \"mcp-sandboxd purge\"");
	if (o->json && o->action != OPTIONS_DOCTOR)
		return err_set(
		    e, ERR_INVAL, "--json is for \"mcp-sandboxd doctor\"");
	for (int i = optind; i < argc; i++)
		if (strchr(argv[i], '=') == NULL)
			return err_set(e, ERR_INVAL,
			    "\"%s\" is neither an option nor KEY=value; try "
			    "--help",
			    argv[i]);
	o->settings = argv + optind;
	o->nsettings = (size_t)(argc - optind);
	return 0;
}

int
options_parse(int argc, char **argv, struct options *o, struct err *e)
{
	static const struct option table[] = {
	    {"help", no_argument, NULL, OPTIONS_HELP},
	    {"version", no_argument, NULL, OPTIONS_VERSION},
	    {"check-config", no_argument, NULL, OPTIONS_CHECK},
	    {"json", no_argument, NULL, 'j'}, {"yes", no_argument, NULL, 'y'},
	    {"config", required_argument, NULL, 'c'},
	    {"adopt", no_argument, NULL, 'a'},
	    {"forget", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
	int found;

	memset(o, 0, sizeof(*o));
	opterr = 0;
	optind = 0; /* glibc: begin anew, for a second call */
	while ((found = getopt_long(argc, argv, "hV", table, NULL)) != -1) {
		if (found == '?')
			return err_set(e, ERR_INVAL,
			    "option \"%s\" is unknown or wants a value; try "
			    "--help",
			    argv[optind - 1]);
		if (found == 'c' && o->config_file != NULL)
			return err_set(e, ERR_INVAL, "--config is given twice");
		if ((found == 'a' || found == 'f') && o->takeover != NULL)
			return err_set(e, ERR_INVAL,
			    "--adopt or --forget, one of them, once");
		if (found == 'c')
			o->config_file = optarg;
		else if (found == 'j')
			o->json = true;
		else if (found == 'y')
			o->yes = true;
		else if (found == 'a')
			o->takeover = "adopt";
		else if (found == 'f')
			o->takeover = "forget";
		else if (found == 'h')
			o->action = OPTIONS_HELP;
		else if (found == 'V')
			o->action = OPTIONS_VERSION;
		else
			o->action = (enum options_action)found;
	}
	return take_settings(argc, argv, o, e);
}

static int
load_settings(const struct options *o, struct conf *c, struct err *e)
{
	for (size_t i = 0; i < o->nsettings; i++) {
		const char *text = o->settings[i];
		const char *equals = strchr(text, '=');
		AUTO(auto_free)
		char *key = strndup(text, (size_t)(equals - text));

		if (key == NULL)
			return err_set(e, ERR_SYS, "out of memory");
		if (conf_set(c, key, equals + 1, e) != 0)
			return err_wrap(e, "argument \"%s\"", text);
	}
	return 0;
}

struct size_check {
	struct err *e;
	int rc;
};

static void
check_size_cb(const char *key, const char *value, void *arg)
{
	struct size_check *check = arg;

	if (strlen(key) > MSG_CONFIG_KEY_MAX ||
	    strlen(value) > MSG_CONFIG_VALUE_MAX)
		check->rc = err_set(check->e, ERR_LIMIT,
		    "%.64s: %zu bytes, want at most %d", key, strlen(value),
		    MSG_CONFIG_VALUE_MAX);
}

/* What children are told goes in one message per key. */
static int
check_sizes(const struct conf *c, struct err *e)
{
	struct size_check check = {.e = e};

	conf_each(c, CONF_FRONT, check_size_cb, &check);
	conf_each(c, CONF_WORKER, check_size_cb, &check);
	return check.rc;
}

/* Who may write such a file decides what the server is. */
static int
check_file(const char *what, const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH) != 0 &&
	    S_ISREG(st.st_mode))
		return err_set(e, ERR_POLICY,
		    "%s %s may be written by everybody: chmod o-w it", what,
		    path);
	return 0;
}

int
options_load(const struct options *o, struct conf **out, struct err *e)
{
	AUTO(auto_conf) struct conf *c = conf_new();
	int rc;

	rc = o->config_file == NULL ? 0 :
				      check_file("--config", o->config_file, e);
	if (rc == 0 && o->config_file != NULL)
		rc = conf_load_file(c, o->config_file, e);
	if (rc == 0)
		rc = conf_load_env(c, e);
	if (rc == 0)
		rc = load_settings(o, c, e);
	if (rc == 0 && o->takeover != NULL)
		rc = conf_set(c, "TAKEOVER", o->takeover, e);
	if (rc == 0)
		rc = conf_check(c, e);
	if (rc == 0)
		rc = check_sizes(c, e);
	if (rc == 0)
		rc = listen_check(conf_str(c, CONF_BIND), e);
	if (rc == 0)
		rc = check_file("SANDBOX_DOCKERFILE_PATH",
		    conf_str(c, CONF_SANDBOX_DOCKERFILE_PATH), e);
	if (rc != 0)
		return rc;
	*out = c; /* the caller's */
	c = NULL;
	return 0;
}

void
options_print_help(FILE *f)
{
	(void)fputs(
	    "usage: mcp-sandboxd [--config FILE] [--check-config] "
	    "[KEY=value ...]\n"
	    "       mcp-sandboxd doctor [--json] [--config FILE] "
	    "[KEY=value ...]\n"
	    "       mcp-sandboxd purge [--yes] [--config FILE] "
	    "[KEY=value ...]\n"
	    "       mcp-sandboxd --help | --version\n"
	    "\n"
	    "Gives AI agents sandboxes over MCP.  Settings come from FILE "
	    "(KEY=value lines),\n"
	    "then the environment, then the arguments; later ones win.\n"
	    "\n"
	    "  --config FILE    read settings from FILE; SIGHUP reads it "
	    "again\n"
	    "  doctor           say what of its protection holds on this host "
	    "and what does not;\n"
	    "                   exit: 0 all holds, 1 not all, 78 wrong "
	    "settings; --json for programs\n"
	    "  purge            remove all sandboxes of this DATA_DIR from the "
	    "engine, after asking\n"
	    "                   (--yes: without); no server may run\n"
	    "  --check-config   check the settings and exit: 0 good, 78 not\n"
	    "  --adopt          take sandboxes over that the database does "
	    "not know\n"
	    "  --forget         go on without them: they are stopped, kept "
	    "for a day,\n"
	    "                   then removed\n"
	    "  -h, --help       this text\n"
	    "  -V, --version    the version\n"
	    "\n"
	    "Settings:\n",
	    f);
	conf_print_help(f);
}
