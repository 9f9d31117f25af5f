#include "worker/doctor/advisory.h"

#include <stdio.h>

#include "common/embed.h"
#include "common/exit.h"
#include "common/log.h"
#include "worker/doctor/version.h"

#define LINE_MAX_BYTES 512
#define COLUMNS 7

struct advisory {
	char line[LINE_MAX_BYTES]; /* the columns lie in it */
	const char *cve, *component, *since, *fixed, *debian, *shut, *what;
};

/* The next line of the table; a line that is malformed is a bug of ours, and
 * a test has read them all. */
static bool
next_advisory(const char **at, struct advisory *a)
{
	const char **const columns[COLUMNS] = {&a->cve, &a->component,
	    &a->since, &a->fixed, &a->debian, &a->shut, &a->what};
	size_t n;
	char *p;

	while (**at == '#' || **at == '\n')
		*at += strcspn(*at, "\n") + 1;
	n = strcspn(*at, "\n");
	if (n == 0)
		return false;
	if (n >= sizeof(a->line))
		fatal(EXIT_BUG, "advisories: a line of %zu bytes", n);
	memcpy(a->line, *at, n);
	a->line[n] = '\0';
	*at += n + ((*at)[n] == '\n');
	p = a->line;
	for (size_t i = 0; i < COLUMNS; i++) {
		char *end = strchr(p, '|');

		if ((end == NULL) != (i == COLUMNS - 1))
			fatal(EXIT_BUG, "advisories: %.40s has not %d columns",
			    a->line, COLUMNS);
		*columns[i] = p;
		if (end != NULL) {
			*end = '\0';
			p = end + 1;
		}
	}
	return true;
}

static bool
is_open(const struct advisory *a, const struct advisory_subject *s)
{
	if (a->since[0] != '\0' && version_compare(s->version, a->since) < 0)
		return false;
	if (version_is_fixed(s->version, a->fixed))
		return false;
	if (s->package[0] != '\0' &&
	    version_is_packaged_fixed(s->package, a->debian))
		return false;
	return !s->has_profile || strcmp(a->shut, "profile") != 0;
}

static void
say_open(const struct advisory *a, const struct advisory_subject *s,
    struct findings *out)
{
	if (s->patched)
		findings_add(out, s->component, FINDING_UNKNOWN,
		    "look it up in your distribution's security tracker",
		    "%s: %s (a distribution may have mended it)", a->cve,
		    a->what);
	else
		findings_add(out, s->component, FINDING_FAILS,
		    "install a version that has it mended",
		    "%s: %s; mended "
		    "in %s",
		    a->cve, a->what, a->fixed);
}

void
advisory_look(const struct advisory_subject *s, struct findings *out)
{
	const char *at = embed_advisories[0].data;
	size_t looked = 0, open = 0;
	struct advisory a;

	if (s->version[0] == '\0') {
		findings_add(out, s->component, FINDING_UNKNOWN,
		    "ask the package manager, and compare with "
		    "schema/advisories.txt",
		    "the engine does not say which version it is");
		return;
	}
	while (next_advisory(&at, &a)) {
		if (strcmp(a.component, s->component) != 0)
			continue;
		looked++;
		if (is_open(&a, s)) {
			open++;
			say_open(&a, s, out);
		}
	}
	findings_add(out, s->component,
	    open == 0      ? FINDING_HOLDS :
		s->patched ? FINDING_UNKNOWN :
			     FINDING_FAILS,
	    "see the lines above",
	    "version %s: %zu of %zu known advisories are open",
	    s->package[0] != '\0' ? s->package : s->version, open, looked);
}

void
advisory_each(const struct advisory_subject *s,
    void (*on)(const char *cve, void *arg), void *arg)
{
	const char *at = embed_advisories[0].data;
	struct advisory a;

	while (s->version[0] != '\0' && next_advisory(&at, &a))
		if (strcmp(a.component, s->component) == 0 && is_open(&a, s))
			on(a.cve, arg);
}
