#include "supervisor/ctl/ctl_options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>

#include "common/fd.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_usage_gen.h"

#define TOKEN_FILE_MAX 4096

static void
set_token(struct ctl_options *o, const char *text)
{
	if (o->token != NULL)
		explicit_bzero(o->token, strlen(o->token));
	free(o->token);
	o->token = xstrdup(text);
}

static int
read_token(struct ctl_options *o, const char *path, struct err *e)
{
	AUTO(auto_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[TOKEN_FILE_MAX + 1];
	ssize_t n;

	if (fd == -1)
		return err_set(
		    e, ERR_INVAL, "--token-file %s: %s", path, strerror(errno));
	n = fd_pread_all(fd, (uint8_t *)text, TOKEN_FILE_MAX, 0, e);
	if (n < 0)
		return err_wrap(e, "--token-file %s", path);
	text[n] = '\0';
	text[strcspn(text, " \t\r\n")] = '\0';
	set_token(o, text);
	explicit_bzero(text, sizeof(text));
	return 0;
}

static int
take(struct ctl_options *o, int code, struct err *e)
{
	switch ((enum usage_option)code) {
	case OPTION_JSON:
		o->json = true;
		return 0;
	case OPTION_DATA_DIR:
		o->data_dir = optarg;
		o->has_data_dir = true;
		return 0;
	case OPTION_URL:
		o->url = optarg;
		return 0;
	case OPTION_TOKEN:
		set_token(o, optarg);
		return 0;
	case OPTION_TOKEN_FILE:
		return read_token(o, optarg, e);
	case OPTION_ROLE:
		o->role = optarg;
		return 0;
	case OPTION_NAME:
		o->name = optarg;
		return 0;
	case OPTION_HEAD:
		o->head = optarg;
		return 0;
	case OPTION_OFFLINE:
		o->offline = true;
		return 0;
	case OPTION_EXPIRES:
		o->expires = optarg;
		return 0;
	case OPTION_TENANT:
		o->tenant = optarg;
		return 0;
	case OPTION_FILE:
		o->file = optarg;
		return 0;
	case OPTION_FOLLOW:
		o->follow = true;
		return 0;
	case OPTION_RAW:
		o->raw = true;
		return 0;
	case OPTION_FORCE:
		o->force = true;
		return 0;
	case OPTION_DROP_DAMAGED:
		o->drop_damaged = true;
		return 0;
	case OPTION_WATCH:
		o->watch = true;
		return 0;
	case OPTION_HELP:
		o->help = true;
		return 0;
	case OPTION_VERSION:
		o->version = true;
		return 0;
	case USAGE_LONG_ONLY:
	default:
		return err_set(e, ERR_INVAL, "unknown or incomplete option");
	}
}

static void
note_given(struct ctl_options *o, int code)
{
	_Static_assert(ARRAY_LEN(usage_options) <= 64, "bits of given");
	for (size_t i = 0; usage_options[i].name != NULL; i++)
		if (usage_options[i].val == code)
			o->given |= UINT64_C(1) << i;
}

const char *
ctl_options_given(const struct ctl_options *o, size_t *at)
{
	while (usage_options[*at].name != NULL) {
		size_t i = (*at)++;

		if ((o->given >> i & 1) != 0)
			return usage_options[i].name;
	}
	return NULL;
}

/* What the environment says, before the command line. */
static void
take_environment(struct ctl_options *o)
{
	const char *token = getenv("SANDBOXCTL_TOKEN");

	o->data_dir = getenv("DATA_DIR");
	if (o->data_dir == NULL || o->data_dir[0] == '\0')
		o->data_dir = "./data";
	o->url = getenv("SANDBOXCTL_URL");
	if (o->url != NULL && o->url[0] == '\0')
		o->url = NULL;
	if (token != NULL && token[0] != '\0')
		set_token(o, token);
}

int
ctl_options_parse(int argc, char **argv, struct ctl_options *o, struct err *e)
{
	int code;

	*o = (struct ctl_options){.json = false};
	take_environment(o);
	opterr = 0;
	while ((code = getopt_long(
		    argc, argv, usage_short, usage_options, NULL)) != -1) {
		if (take(o, code, e) != 0)
			return err_set(e, ERR_INVAL,
			    "%.200s: %.200s (sandboxctl --help)",
			    argv[optind - 1], e->msg);
		note_given(o, code);
	}
	o->words = argv + optind;
	o->nwords = argc - optind;
	if (o->url != NULL && o->token == NULL)
		return err_set(e, ERR_INVAL,
		    "--url wants a token of role admin: SANDBOXCTL_TOKEN, or "
		    "--token-file FILE");
	return 0;
}

void
ctl_options_clear(struct ctl_options *o)
{
	if (o->token != NULL)
		explicit_bzero(o->token, strlen(o->token));
	free(o->token);
	o->token = NULL;
}

void
ctl_options_help(FILE *f)
{
	for (size_t i = 0; i < ARRAY_LEN(usage_help); i++)
		(void)fprintf(f, "%s\n", usage_help[i]);
}
