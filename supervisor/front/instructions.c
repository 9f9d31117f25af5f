#include "supervisor/front/instructions.h"

#include "common/buf.h"
#include "common/xmalloc.h"
#include "supervisor/tools/languages.h"

/* What images/sandbox/ makes.  What another image has nobody here knows. */
#define OUR_IMAGE "localhost/mcp-sandboxd/sandbox:latest"
#define OUR_SYSTEM                                                             \
	"Debian 12 with Python 3.11 (standard library), bash and the usual "   \
	"command line tools"

static void
add_purpose(struct buf *b, const struct languages *languages)
{
	(void)buf_printf(b, "Run shell commands and code (");
	languages_names(languages, b);
	(void)buf_printf(b,
	    ") in isolated Linux sandboxes that keep files and processes "
	    "between calls.");
}

static void
add_system(struct buf *b, const struct conf *conf)
{
	const char *image = conf_str(conf, CONF_SANDBOX_IMAGE);
	bool is_ours = strcmp(image, OUR_IMAGE) == 0 &&
	    conf_str(conf, CONF_SANDBOX_DOCKERFILE_PATH)[0] == '\0';

	(void)buf_printf(b, " A sandbox is %s%s, with %lld MiB of memory and ",
	    is_ours ? "" : "made of the image ", is_ours ? OUR_SYSTEM : image,
	    (long long)conf_int(conf, CONF_DEFAULT_MEMORY_MB));
	(void)buf_printf(b, "%s.",
	    strcmp(conf_str(conf, CONF_SANDBOX_NETWORK_MODE), "none") == 0 ?
		"no network: nothing can be downloaded or installed from "
		"outside" :
		"a network");
}

static void
add_use(struct buf *b, const struct conf *conf)
{
	(void)buf_printf(b,
	    " An identifier names a sandbox: use the same one to go on where "
	    "you were; unused for %lld s it is gone. run_sandbox runs "
	    "commands and makes its sandbox on first use; execute_code runs a "
	    "program's text, after initialize_sandbox.",
	    (long long)conf_int(conf, CONF_DEFAULT_TTL_SECONDS));
	if (conf_bool(conf, CONF_DEFAULT_AWAIT_COMPLETION))
		(void)buf_printf(b,
		    " Both wait %lld s for the end; a run that takes longer "
		    "goes on:",
		    (long long)conf_int(conf, CONF_DEFAULT_AWAIT_TIMEOUT_MS) /
			1000);
	else
		(void)buf_printf(b, " run_sandbox does not wait for the end:");
	(void)buf_printf(b,
	    " call get_run with its run_id and wait_ms, not the same command "
	    "again. get_run with a cursor has all output; list_runs finds a "
	    "run whose answer was lost. Files written to /artifacts have "
	    "addresses in the answer, and small pictures among them are "
	    "shown.");
}

char *
instructions_make(const struct conf *conf, const struct languages *languages)
{
	struct buf b;
	char *out;

	buf_init(&b, INSTRUCTIONS_MAX);
	add_purpose(&b, languages);
	add_system(&b, conf);
	add_use(&b, conf);
	out = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return out;
}
