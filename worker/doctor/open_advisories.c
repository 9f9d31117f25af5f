#include "worker/doctor/open_advisories.h"

#include <stdio.h>

#include "common/text.h"
#include "worker/doctor/advisory.h"
#include "worker/doctor/host.h"
#include "worker/doctor/version.h"

#define WORD_MAX 80

struct advisory_list {
	json_t *to; /* an array */
	json_int_t not_shown;
};

static void
add(const char *word, void *arg)
{
	struct advisory_list *l = arg;

	if (json_array_size(l->to) == OPEN_ADVISORIES_MAX)
		l->not_shown++;
	else
		json_array_append_new(l->to, json_string(word));
}

static void
look(const struct advisory_subject *s, struct advisory_list *open,
    struct advisory_list *unknown)
{
	if (s->version[0] == '\0')
		add(s->component, unknown);
	else
		advisory_each(s, add, s->patched ? unknown : open);
}

static const json_t *
find_part(const json_t *version, const char *name)
{
	const json_t *a = json_object_get(version, "Components"), *item;
	size_t i;

	json_array_foreach (a, i, item) {
		const char *s =
		    json_string_value(json_object_get(item, "Name"));

		if (s != NULL && strcmp(s, name) == 0)
			return item;
	}
	return NULL;
}

/* Debian's give their package's version as a commit. */
static void
look_at_part(const char *component, const json_t *part,
    struct advisory_list *open, struct advisory_list *unknown)
{
	const char *said = json_string_value(json_object_get(part, "Version"));
	const char *commit = json_string_value(
	    json_object_get(json_object_get(part, "Details"), "GitCommit"));
	char word[WORD_MAX], upstream[WORD_MAX] = "";
	bool has_package = commit != NULL && strstr(commit, "+deb") != NULL;

	if (has_package)
		said = commit;
	text_clean(word, sizeof(word), said == NULL ? "" : said,
	    said == NULL ? 0 : strlen(said));
	version_upstream(word, upstream, sizeof(upstream));
	look(&(struct advisory_subject){.component = component,
		 .version = upstream,
		 .package = has_package ? word : "",
		 .patched = !has_package && version_is_debians(word)},
	    open, unknown);
}

json_t *
open_advisories(const json_t *version, bool has_profile)
{
	struct advisory_list open = {.to = json_array()};
	struct advisory_list unknown = {.to = json_array()};
	struct host_kernel kernel;

	host_kernel(&kernel);
	look(&(struct advisory_subject){.component = "kernel",
		 .version = kernel.version,
		 .package = "",
		 .patched = kernel.patched,
		 .has_profile = has_profile},
	    &open, &unknown);
	look_at_part("engine", version, &open, &unknown);
	look_at_part(
	    "containerd", find_part(version, "containerd"), &open, &unknown);
	look_at_part("runc", find_part(version, "runc"), &open, &unknown);
	return json_pack("{s:o, s:o, s:I}", "open", open.to, "unknown",
	    unknown.to, "not_shown", open.not_shown + unknown.not_shown);
}
