#include "worker/doctor/advisory.h"

#include <stdio.h>

#include "common/embed.h"
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "worker/doctor/host.h"
#include "worker/doctor/version.h"

#define LINE_MAX_BYTES 512
#define COLUMNS 7
#define WORD_MAX 80

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

/* ---- while a worker runs */

struct advisory_list {
	json_t *to; /* an array */
	json_int_t not_shown;
};

static void
add(const char *word, struct advisory_list *l)
{
	if (json_array_size(l->to) == ADVISORY_OPEN_MAX)
		l->not_shown++;
	else
		json_array_append_new(l->to, json_string(word));
}

static void
list_open(const struct advisory_subject *s, struct advisory_list *open,
    struct advisory_list *unknown)
{
	const char *at = embed_advisories[0].data;
	struct advisory a;

	if (s->version[0] == '\0')
		add(s->component, unknown);
	while (s->version[0] != '\0' && next_advisory(&at, &a))
		if (strcmp(a.component, s->component) == 0 && is_open(&a, s))
			add(a.cve, s->patched ? unknown : open);
}

const json_t *
advisory_part(const json_t *version, const char *name)
{
	const json_t *a = json_object_get(version, "Components"), *item;
	size_t i;

	json_array_foreach (a, i, item)
		if (strcmp(js_text(item, "Name"), name) == 0)
			return item;
	return NULL;
}

/* Debian's give their package's version as a commit. */
static void
list_part(const char *component, const json_t *part, struct advisory_list *open,
    struct advisory_list *unknown)
{
	const char *said = js_text(part, "Version");
	const char *commit =
	    js_text(json_object_get(part, "Details"), "GitCommit");
	char word[WORD_MAX], upstream[WORD_MAX] = "";
	bool has_package = strstr(commit, "+deb") != NULL;

	if (has_package)
		said = commit;
	text_clean(word, sizeof(word), said, strlen(said));
	version_upstream(word, upstream, sizeof(upstream));
	list_open(&(struct advisory_subject){.component = component,
		      .version = upstream,
		      .package = has_package ? word : "",
		      .patched = !has_package && version_is_debians(word)},
	    open, unknown);
}

json_t *
advisory_list_open(const json_t *version, bool has_profile)
{
	struct advisory_list open = {.to = json_array()};
	struct advisory_list unknown = {.to = json_array()};
	struct host_kernel kernel;

	host_kernel(&kernel);
	list_open(&(struct advisory_subject){.component = "kernel",
		      .version = kernel.version,
		      .package = "",
		      .patched = kernel.patched,
		      .has_profile = has_profile},
	    &open, &unknown);
	list_part("engine", version, &open, &unknown);
	list_part("containerd", advisory_part(version, "containerd"), &open,
	    &unknown);
	list_part("runc", advisory_part(version, "runc"), &open, &unknown);
	return json_pack("{s:o, s:o, s:I}", "open", open.to, "unknown",
	    unknown.to, "not_shown", open.not_shown + unknown.not_shown);
}
