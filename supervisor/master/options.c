#include "supervisor/master/options.h"

#include <getopt.h>
#include <sys/stat.h>

#include "common/xmalloc.h"
#include "supervisor/master/clients.h"
#include "supervisor/master/stdio_command.h"
#include "supervisor/master/usage_gen.h"

static void
auto_conf(struct conf **c)
{
	conf_free(*c);
}

/* getopt_long has moved what is no option to the end of argv. */
static void
take_command(int argc, char **argv, struct options *o)
{
	for (size_t i = 0; optind < argc && i < ARRAY_LEN(usage_commands); i++)
		if (strcmp(argv[optind], usage_commands[i].word) == 0) {
			o->action = usage_commands[i].action;
			optind++;
			return;
		}
}

/* Some commands take a word of their own. */
static int
take_operand(int argc, char **argv, struct options *o, struct err *e)
{
	if (o->action != OPTIONS_CLIENTS || optind >= argc ||
	    strchr(argv[optind], '=') != NULL)
		return 0;
	o->client = argv[optind++];
	return clients_check(o->client, e);
}

static int
take_settings(int argc, char **argv, struct options *o, struct err *e)
{
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

static int
take_option(int found, struct options *o, struct err *e)
{
	switch ((enum usage_option)found) {
	case OPTION_CONFIG:
		if (o->config_file != NULL)
			return err_set(e, ERR_INVAL, "--config is given twice");
		o->config_file = optarg;
		break;
	case OPTION_ADOPT:
	case OPTION_FORGET:
		if (o->takeover != NULL)
			return err_set(e, ERR_INVAL,
			    "--adopt or --forget, one of them, once");
		o->takeover = found == OPTION_ADOPT ? "adopt" : "forget";
		break;
	case OPTION_JSON:
		o->json = true;
		break;
	case OPTION_YES:
		o->yes = true;
		break;
	case OPTION_CHECK_CONFIG:
		o->action = OPTIONS_CHECK;
		break;
	case OPTION_HELP:
		o->action = OPTIONS_HELP;
		break;
	case OPTION_VERSION:
		o->action = OPTIONS_VERSION;
		break;
	case USAGE_LONG_ONLY:
		break;
	}
	return 0;
}

/* What is only for a command that was not given. */
static int
check_with(const bool *given, const struct options *o, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(usage_with); i++)
		if (given[usage_with[i].option] &&
		    o->action != usage_with[i].action)
			return err_set(e, ERR_INVAL,
			    "%s is for \"mcp-sandboxd %s\"", usage_with[i].name,
			    usage_with[i].command);
	return 0;
}

int
options_parse(int argc, char **argv, struct options *o, struct err *e)
{
	bool given[USAGE_END] = {false};
	int found;

	memset(o, 0, sizeof(*o));
	opterr = 0;
	optind = 0; /* glibc: begin anew, for a second call */
	while ((found = getopt_long(
		    argc, argv, usage_short, usage_options, NULL)) != -1) {
		if (found == '?')
			return err_set(e, ERR_INVAL,
			    "option \"%s\" is unknown or wants a value; try "
			    "--help",
			    argv[optind - 1]);
		given[found] = true;
		if (take_option(found, o, e) != 0)
			return e->code;
	}
	take_command(argc, argv, o);
	if (check_with(given, o, e) != 0 || take_operand(argc, argv, o, e) != 0)
		return e->code;
	return take_settings(argc, argv, o, e);
}

static int
load_settings(const struct options *o, struct conf *c, struct err *e)
{
	for (size_t i = 0; i < o->nsettings; i++) {
		const char *text = o->settings[i];
		const char *equals = strchr(text, '=');
		AUTO(auto_free)
		char *key = xstrndup(text, (size_t)(equals - text));

		if (conf_set(c, key, equals + 1, e) != 0)
			return err_wrap(e, "argument \"%s\"", text);
	}
	return 0;
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

/* Whoever starts a bridge stands in any directory. */
static int
set_defaults(const struct options *o, struct conf *c, struct err *e)
{
	AUTO(auto_free) char *data = NULL;

	if (o->action != OPTIONS_STDIO)
		return 0;
	data = stdio_command_data_dir();
	return conf_set(c, "DATA_DIR", data, e);
}

int
options_load(const struct options *o, struct conf **out, struct err *e)
{
	AUTO(auto_conf) struct conf *c = conf_new();
	int rc = set_defaults(o, c, e);

	if (rc == 0)
		rc = o->config_file == NULL ?
		    0 :
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
	for (size_t i = 0; i < ARRAY_LEN(usage_help); i++)
		(void)fprintf(f, "%s\n", usage_help[i]);
	(void)fputs("\nSettings:\n", f);
	conf_print_help(f);
}
