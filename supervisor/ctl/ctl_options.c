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

/* What only sets a member of struct ctl_options. */
static const struct {
	enum usage_option code;
	bool is_text;
	size_t at;
} plain[] = {{OPTION_JSON, false, offsetof(struct ctl_options, json)},
    {OPTION_OFFLINE, false, offsetof(struct ctl_options, offline)},
    {OPTION_FOLLOW, false, offsetof(struct ctl_options, follow)},
    {OPTION_RAW, false, offsetof(struct ctl_options, raw)},
    {OPTION_FORCE, false, offsetof(struct ctl_options, force)},
    {OPTION_DROP_DAMAGED, false, offsetof(struct ctl_options, drop_damaged)},
    {OPTION_WATCH, false, offsetof(struct ctl_options, watch)},
    {OPTION_HELP, false, offsetof(struct ctl_options, help)},
    {OPTION_VERSION, false, offsetof(struct ctl_options, version)},
    {OPTION_DATA_DIR, true, offsetof(struct ctl_options, data_dir)},
    {OPTION_URL, true, offsetof(struct ctl_options, url)},
    {OPTION_ROLE, true, offsetof(struct ctl_options, role)},
    {OPTION_NAME, true, offsetof(struct ctl_options, name)},
    {OPTION_HEAD, true, offsetof(struct ctl_options, head)},
    {OPTION_EXPIRES, true, offsetof(struct ctl_options, expires)},
    {OPTION_TENANT, true, offsetof(struct ctl_options, tenant)},
    {OPTION_FILE, true, offsetof(struct ctl_options, file)}};

static int
take(struct ctl_options *o, int code, struct err *e)
{
	const bool yes = true;

	if (code == OPTION_TOKEN_FILE)
		return read_token(o, optarg, e);
	if (code == OPTION_TOKEN) {
		set_token(o, optarg);
		return 0;
	}
	o->has_data_dir = o->has_data_dir || code == OPTION_DATA_DIR;
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		char *member = (char *)o + plain[i].at;

		if ((int)plain[i].code != code)
			continue;
		if (plain[i].is_text)
			memcpy(member, &optarg, sizeof(optarg));
		else
			memcpy(member, &yes, sizeof(yes));
		return 0;
	}
	return err_set(e, ERR_INVAL, "unknown or incomplete option");
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
