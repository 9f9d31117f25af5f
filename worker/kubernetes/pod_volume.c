#include "worker/kubernetes/pod_volume.h"

#include <ctype.h>
#include <stdio.h>

#include <openssl/sha.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_labels.h"

#define NAME_BEGIN "mcp-sandbox-"
#define NAME_DIGEST_BYTES 10
#define SLUG_MAX 30
/* A box that got it at that time or later may be in no list of that time, by
 * clocks that are set now and then. */
#define YOUNG_MS 1000
/* Later than that is the word of a clock that went wrong. */
#define AHEAD_MS 3600000

/* ---- the name */

void
pod_volume_name(const char *id, const char *tenant, const char *identifier,
    char out[POD_NAME_MAX + 1])
{
	/* None of the three has a "/". */
	AUTO(auto_free)
	char *all = xasprintf("%s/%s/%s", id, tenant, identifier);
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char digits[HEX_BYTES(NAME_DIGEST_BYTES)], slug[SLUG_MAX + 1];
	size_t n = 0;

	for (const char *p = identifier; *p != '\0' && n < SLUG_MAX; p++)
		slug[n++] = isalnum((unsigned char)*p) ?
		    (char)tolower((unsigned char)*p) :
		    '-';
	slug[n] = '\0';
	(void)SHA256((const uint8_t *)all, strlen(all), digest);
	hex_encode(digest, NAME_DIGEST_BYTES, digits);
	(void)snprintf(out, POD_NAME_MAX + 1, NAME_BEGIN "%s-%s", slug, digits);
}

/* ---- JSON for it */

static void
set(json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, value) != 0)
		fatal(EXIT_BUG, "volume: cannot set %s", key);
}

static void
set_marked(json_t *o, const char *prefix, const char *word, json_t *value)
{
	char name[POD_LABEL_MAX + 1];

	pod_label(prefix, word, name);
	set(o, name, value);
}

static json_t *
uuid_json(const struct uuid *u)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(u, text);
	return json_string(text);
}

static json_t *
ms_json(int64_t ms)
{
	return json_sprintf("%lld", (long long)ms);
}

/* Which box has it, in labels and annotations. */
static void
set_box(json_t *labels, json_t *notes, const struct pod_volume_wish *w)
{
	const char *prefix = w->settings->prefix;

	set_marked(
	    labels, prefix, POD_LABEL_BOX, uuid_json(&w->spec->identity.uuid));
	set_marked(notes, prefix, POD_NOTE_NAME, json_string(w->spec->name));
	set_marked(notes, prefix, POD_NOTE_TAKEN, ms_json(w->now_ms));
}

static json_t *
labels_json(const struct pod_volume_wish *w)
{
	const char *prefix = w->settings->prefix;
	char tenant[POD_TENANT_LEN + 1];
	json_t *o = json_object();

	pod_tenant(w->spec->identity.tenant, tenant);
	set(o, "app.kubernetes.io/managed-by", json_string("mcp-sandboxd"));
	set_marked(o, prefix, POD_LABEL_ROLE, json_string(POD_ROLE_VOLUME));
	set_marked(o, prefix, POD_LABEL_ID, json_string(w->id));
	set_marked(o, prefix, POD_LABEL_TENANT, json_string(tenant));
	return o;
}

static json_t *
notes_json(const struct pod_volume_wish *w)
{
	const char *prefix = w->settings->prefix;
	const struct backend_spec *s = w->spec;
	json_t *o = json_object();

	set_marked(o, prefix, POD_NOTE_INSTANCE, json_string(w->instance));
	set_marked(o, prefix, POD_NOTE_TENANT, json_string(s->identity.tenant));
	set_marked(
	    o, prefix, POD_NOTE_IDENTIFIER, json_string(s->claim.identifier));
	set_marked(o, prefix, POD_NOTE_FIRST, uuid_json(&s->identity.uuid));
	return o;
}

char *
pod_volume_body(const struct pod_volume_wish *w)
{
	const struct backend_spec *s = w->spec;
	json_t *labels = labels_json(w), *notes = notes_json(w);
	AUTO(auto_json) json_t *o = NULL;
	char name[POD_NAME_MAX + 1];

	pod_volume_name(w->id, s->identity.tenant, s->claim.identifier, name);
	set_box(labels, notes, w);
	o = json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:o}, "
		      "s:{s:[s], s:s, s:{s:{s:o}}}}",
	    "apiVersion", "v1", "kind", "PersistentVolumeClaim", "metadata",
	    "name", name, "namespace", w->ns, "labels", labels, "annotations",
	    notes, "spec", "accessModes", "ReadWriteOnce", "storageClassName",
	    w->settings->volume_class, "resources", "requests", "storage",
	    json_sprintf(
		"%llu", (unsigned long long)w->settings->volume_bytes));
	return js_dump(o);
}

static char *
patch_text(const char *version, json_t *labels, json_t *notes)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:{s:s, s:o, s:o}}", "metadata",
	    "resourceVersion", version, "labels", labels, "annotations", notes);

	return js_dump(o);
}

char *
pod_volume_body_taken(const struct pod_volume_wish *w, const char *version)
{
	json_t *labels = json_object(), *notes = json_object();

	set_box(labels, notes, w);
	set_marked(notes, w->settings->prefix, POD_NOTE_UNUSED, json_null());
	return patch_text(version, labels, notes);
}

char *
pod_volume_body_unused(
    const char *prefix, int64_t since_ms, const char *version)
{
	json_t *notes = json_object();

	set_marked(notes, prefix, POD_NOTE_UNUSED,
	    since_ms == 0 ? json_null() : ms_json(since_ms));
	return patch_text(version, json_object(), notes);
}

/* ---- JSON from it */

static const char *
marked_text(const json_t *of, const struct pod_ours *ours, const char *word)
{
	char name[POD_LABEL_MAX + 1];

	pod_label(ours->prefix, word, name);
	return js_text(of, name);
}

/* Decimal digits alone; 0 of all else. */
static int64_t
ms_of(const char *s)
{
	size_t n = strlen(s);

	return n == 0 || n > 15 || strspn(s, "0123456789") != n ?
	    0 :
	    strtoll(s, NULL, 10);
}

/* By its name it is that sandbox's, of that tenant and our instance. */
static bool
is_whole(const json_t *labels, const json_t *notes, const struct pod_ours *ours,
    const char *name)
{
	const char *tenant = marked_text(notes, ours, POD_NOTE_TENANT);
	char want[POD_NAME_MAX + 1], digest[POD_TENANT_LEN + 1];

	if (ours->id[0] == '\0' || !policy_is_tenant(tenant) ||
	    (ours->tenant[0] != '\0' && strcmp(tenant, ours->tenant) != 0) ||
	    strcmp(marked_text(labels, ours, POD_LABEL_ROLE),
		POD_ROLE_VOLUME) != 0 ||
	    strcmp(marked_text(labels, ours, POD_LABEL_ID), ours->id) != 0)
		return false;
	pod_tenant(tenant, digest);
	pod_volume_name(ours->id, tenant,
	    marked_text(notes, ours, POD_NOTE_IDENTIFIER), want);
	return strcmp(want, name) == 0 &&
	    strcmp(marked_text(labels, ours, POD_LABEL_TENANT), digest) == 0;
}

static void
take_marks(
    struct pod_volume *v, const json_t *meta, const struct pod_ours *ours)
{
	const json_t *labels = json_object_get(meta, "labels");
	const json_t *notes = json_object_get(meta, "annotations");
	const char *box = marked_text(notes, ours, POD_NOTE_NAME);
	struct uuid has, first;

	if (!is_whole(labels, notes, ours, v->name) || !policy_is_name(box) ||
	    uuid_parse(marked_text(labels, ours, POD_LABEL_BOX), &has) != 0 ||
	    uuid_parse(marked_text(notes, ours, POD_NOTE_FIRST), &first) != 0)
		return;
	v->is_ours = true;
	v->box = has;
	v->first = first;
	pod_name(box, v->pod);
	(void)snprintf(v->tenant, sizeof(v->tenant), "%s",
	    marked_text(notes, ours, POD_NOTE_TENANT));
	v->taken_ms = ms_of(marked_text(notes, ours, POD_NOTE_TAKEN));
	v->unused_ms = ms_of(marked_text(notes, ours, POD_NOTE_UNUSED));
}

static bool
take_word(char *to, size_t size, const char *s, const char *letters)
{
	size_t n = strlen(s);

	if (n == 0 || n >= size || strspn(s, letters) != n)
		return false;
	memcpy(to, s, n + 1);
	return true;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

int
pod_volume_view(const json_t *claim, const struct pod_ours *ours,
    struct pod_volume *out, struct err *e)
{
	const json_t *meta = json_object_get(claim, "metadata");
	const char *name = js_text(meta, "name");

	memset(out, 0, sizeof(*out));
	if (!take_word(out->uid, sizeof(out->uid), js_text(meta, "uid"),
		DIGITS "abcdefABCDEF-") ||
	    !take_word(out->version, sizeof(out->version),
		js_text(meta, "resourceVersion"),
		DIGITS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ-"))
		return err_set(e, ERR_BACKEND,
		    "the cluster's answer is no PersistentVolumeClaim with a "
		    "uid and a version");
	out->is_removing =
	    json_is_string(json_object_get(meta, "deletionTimestamp"));
	/* Ours has a name that is a label. */
	if (!pod_name_is_label(name))
		return 0;
	memcpy(out->name, name, strlen(name) + 1);
	take_marks(out, meta, ours);
	return 0;
}

bool
pod_volume_is_new(const struct pod_volume *v, const struct uuid *box)
{
	return uuid_is_equal(&v->first, box);
}

bool
pod_volume_is_in(const json_t *pod, const char *name)
{
	const json_t *volumes = json_object_get(
			 json_object_get(pod, "spec"), "volumes"),
		     *one;
	size_t i;

	json_array_foreach (volumes, i, one)
		if (strcmp(
			js_text(json_object_get(one, "persistentVolumeClaim"),
			    "claimName"),
			name) == 0)
			return true;
	return false;
}

/* ---- a sweep */

enum pod_volume_fate
pod_volume_judge(
    const struct pod_volume *v, bool is_used, int64_t asof_ms, int64_t keep_ms)
{
	/* By a clock that went wrong and was mended it may be in the future. */
	bool is_noted = v->unused_ms != 0 && v->unused_ms <= asof_ms;

	if (!v->is_ours || v->is_removing)
		return POD_VOLUME_STAYS;
	if (is_used)
		return v->unused_ms != 0 ? POD_VOLUME_IS_CLEARED :
					   POD_VOLUME_STAYS;
	if (v->taken_ms > asof_ms - YOUNG_MS &&
	    v->taken_ms < asof_ms + AHEAD_MS)
		return POD_VOLUME_STAYS;
	if (keep_ms == 0)
		return POD_VOLUME_GOES;
	if (!is_noted)
		return POD_VOLUME_IS_NOTED;
	return asof_ms - v->unused_ms >= keep_ms ? POD_VOLUME_GOES :
						   POD_VOLUME_STAYS;
}
