#include "images/agent/terms.h"

#include <errno.h>

#include "images/agent/agent.h"

#define QUIET_MS_MAX 86400000

static int
take_number(const char *text, int base, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, base);
	return errno != 0 || end == text || *end != '\0' || *text == '-' ? -1 :
									   0;
}

static bool
take_flag(const char *value, bool *out)
{
	*out = *value == '1';
	return (*value == '0' || *value == '1') && value[1] == '\0';
}

/* One letter and its value; false: there is none such. */
static bool
take_option(struct terms *t, char letter, const char *value)
{
	if (letter == 'k')
		return take_number(value, 16, &t->withheld) == 0;
	if (letter == 'b')
		return take_number(value, 10, &t->disk.bytes) == 0;
	if (letter == 'n')
		return take_number(value, 10, &t->disk.inodes) == 0;
	if (letter == 'l')
		return take_flag(value, &t->listens);
	if (letter == 'q')
		return take_number(value, 10, &t->quiet_ms) == 0 &&
		    t->quiet_ms > 0 && t->quiet_ms <= QUIET_MS_MAX;
	return false;
}

int
terms_parse(struct terms *t, int argc, char **argv, struct err *e)
{
	int i = 1;

	*t = (struct terms){
	    .socket = AGENT_SOCKET, .quiet_ms = FRAME_BRIDGE_QUIET_MS};
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
		if (strlen(argv[i]) != 2 ||
		    !take_option(t, argv[i][1], argv[i + 1]))
			return err_set(e, ERR_INVAL, "option %.20s %.40s",
			    argv[i], argv[i + 1]);
	if (i + 1 < argc || (i < argc && argv[i][0] == '-'))
		return err_set(e, ERR_INVAL, "argument %.40s", argv[i]);
	if (i < argc)
		t->socket = argv[i];
	return 0;
}
