/*
 * From JSON to structs, with distrust: nothing is taken that is not of the
 * type and in the range that it must be.  Labels of containers that are not
 * ours are not looked at any further than to see that.
 */
#include "worker/docker/answer.h"

#include <ctype.h>
#include <stdio.h>
#include <time.h>

#include <jansson.h>

#include "common/js.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/docker/body.h"

#define DEPTH_MAX 32
#define CPUS_MAX 65536
#define API_PREFIX "1."
#define API_MINOR 41  /* Docker 20.10: what the requests are written for */
#define API_OLDEST 24 /* what there was before, nobody has tried */
#define PID_LIMIT (INT64_C(1) << 22)

/* ---- reading JSON with distrust */

static int
parse(const char *s, size_t n, size_t max, json_t **out, struct err *e)
{
	if (js_parse(s, n, max, DEPTH_MAX, out, e) == 0)
		return 0;
	(void)err_wrap(e, "the engine's answer");
	e->code = ERR_BACKEND;
	return ERR_BACKEND;
}

static int
bad(struct err *e, const char *what)
{
	return err_set(
	    e, ERR_BACKEND, "the engine's answer has no good %s", what);
}

/* NULL unless it is a string */
static const char *
get_text(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static bool
get_bool(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

/* 0 unless it is a number */
static json_int_t
get_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

/* A member's text, cleaned; "" when it is none. */
static void
take_clean(char *to, size_t size, const json_t *o, const char *key)
{
	const char *s = js_text(o, key);

	text_clean(to, size, s, strlen(s));
}

static int
take_id(const json_t *o, const char *key, char id[BACKEND_ID_MAX + 1])
{
	const char *s = get_text(o, key);

	if (s == NULL || !policy_is_id(s))
		return -1;
	memcpy(id, s, strlen(s) + 1);
	return 0;
}

/* ---- containers */

int
answer_created(const char *s, size_t n, struct backend_handle *out,
    char warning[ANSWER_TEXT_MAX], struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	const json_t *first;

	if (parse(s, n, ANSWER_SMALL_MAX, &o, e) != 0)
		return ERR_BACKEND;
	if (take_id(o, "Id", out->id) != 0)
		return bad(e, "Id");
	first = json_array_get(json_object_get(o, "Warnings"), 0);
	text_clean(warning, ANSWER_TEXT_MAX,
	    json_is_string(first) ? json_string_value(first) : "",
	    json_string_length(first));
	return 0;
}

/* Decimal digits alone. */
static int
parse_ms(const char *s, int64_t *out)
{
	size_t n = strlen(s);

	if (n == 0 || n > 15 || strspn(s, "0123456789") != n)
		return -1;
	*out = strtoll(s, NULL, 10);
	return 0;
}

/* 0: not known. */
static uint64_t
take_number(const json_t *labels, const char *key)
{
	const char *s = get_text(labels, key);
	int64_t v;

	return s != NULL && parse_ms(s, &v) == 0 ? (uint64_t)v : 0;
}

static void
take_labels(struct backend_container *c, const json_t *o, const char *id)
{
	const char *role = get_text(o, BODY_LABEL_ROLE);
	const char *whose = get_text(o, BODY_LABEL_ID);
	const char *box = get_text(o, BODY_LABEL_BOX);
	const char *created = get_text(o, BODY_LABEL_CREATED);
	const char *print = get_text(o, BODY_LABEL_FINGERPRINT);
	const char *tenant = get_text(o, BODY_LABEL_TENANT);
	const char *carrier = get_text(o, BODY_LABEL_CARRIER);

	if (role == NULL || whose == NULL || strcmp(whose, id) != 0 ||
	    created == NULL || parse_ms(created, &c->created_ms) != 0)
		return;
	c->is_trial = strcmp(role, BODY_ROLE_TRIAL) == 0;
	if (strcmp(role, BODY_ROLE) != 0 || box == NULL ||
	    uuid_parse(box, &c->identity.uuid) != 0)
		return;
	c->nano_cpus = take_number(o, BODY_LABEL_CPUS);
	c->memory_bytes = take_number(o, BODY_LABEL_MEMORY);
	if (print != NULL && strlen(print) == POLICY_FINGERPRINT_LEN)
		memcpy(
		    c->identity.fingerprint, print, POLICY_FINGERPRINT_LEN + 1);
	if (tenant != NULL && policy_is_tenant(tenant))
		memcpy(c->identity.tenant, tenant, strlen(tenant) + 1);
	if (carrier != NULL && strlen(carrier) <= BACKEND_CARRIER_MAX)
		memcpy(c->carrier, carrier, strlen(carrier) + 1);
	c->is_ours = true;
}

static void
take_status(struct backend_container *c, const char *status)
{
	if (status == NULL)
		return;
	c->removing =
	    strcmp(status, "removing") == 0 || strcmp(status, "dead") == 0;
	c->created = strcmp(status, "created") == 0;
}

int64_t
answer_time_ms(const char *s)
{
	struct tm tm = {0};
	const char *rest = s == NULL ? NULL : strptime(s, "%Y-%m-%dT%T", &tm);
	int64_t ms;

	if (rest == NULL)
		return INT64_MIN;
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	ms = (int64_t)timegm(&tm) * 1000;
	rest = strptime(rest, "%z", &tm);
	if (rest == NULL || *rest != '\0')
		return INT64_MIN;
	return ms - (int64_t)tm.tm_gmtoff * 1000;
}

/* The year 1 is Go's way to say never.  What cannot be read may have been just
 * now: nothing is removed for it. */
static int64_t
finished_ms(const char *s)
{
	int64_t ms = s == NULL ? 0 : answer_time_ms(s);

	if (ms == INT64_MIN)
		return INT64_MAX;
	return ms < 0 ? 0 : ms;
}

static void
take_report(struct backend_report *r, const json_t *o, const json_t *labels)
{
	const char *name = js_text(o, "Name");
	const json_t *state = json_object_get(o, "State");
	uint64_t generation;

	memset(r, 0, sizeof(*r));
	(void)snprintf(r->name, sizeof(r->name), "%s", name + (name[0] == '/'));
	/* Cut where they are longer than can be: labels of ours are not. */
	(void)snprintf(r->identifier, sizeof(r->identifier), "%s",
	    js_text(labels, BODY_LABEL_IDENTIFIER));
	(void)snprintf(r->image, sizeof(r->image), "%s",
	    js_text(labels, BODY_LABEL_IMAGE));
	generation = take_number(labels, BODY_LABEL_GENERATION);
	if (generation <= UINT32_MAX)
		r->generation = (uint32_t)generation;
	if (!get_bool(state, "Running"))
		r->finished_ms = finished_ms(get_text(state, "FinishedAt"));
}

/* A restart changes the time, and in all likelihood the process. */
static void
take_life(struct backend_container *c, const char *started_at)
{
	if (c->running)
		(void)snprintf(c->handle.life, sizeof(c->handle.life),
		    "%lld %s", (long long)c->pid,
		    started_at == NULL ? "" : started_at);
}

int
answer_container(const char *s, size_t n, const char *id,
    struct backend_container *out, struct backend_report *report, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	struct backend_container c = {0};
	const json_t *state, *marks;
	int64_t code;

	if (parse(s, n, ANSWER_SMALL_MAX, &o, e) != 0)
		return ERR_BACKEND;
	if (take_id(o, "Id", c.handle.id) != 0)
		return bad(e, "Id");
	state = json_object_get(o, "State");
	if (!json_is_object(state) ||
	    !json_is_boolean(json_object_get(state, "Running")))
		return bad(e, "State");
	c.running = get_bool(state, "Running");
	c.oom_killed = get_bool(state, "OOMKilled");
	c.pid = get_int(state, "Pid");
	code = get_int(state, "ExitCode");
	if (c.pid < 0 || c.pid > PID_LIMIT || (c.running && c.pid < 2))
		return bad(e, "State.Pid");
	take_life(&c, get_text(state, "StartedAt"));
	if (code < -1 || code > 255)
		return bad(e, "State.ExitCode");
	c.exit_code = (int32_t)code;
	take_status(&c, get_text(state, "Status"));
	marks = json_object_get(json_object_get(o, "Config"), "Labels");
	take_labels(&c, marks, id);
	if (c.is_ours) {
		take_report(report, o, marks);
		c.report = report;
	}
	*out = c;
	return 0;
}

static void
take_name(char out[POLICY_NAME_MAX + 1], const json_t *names)
{
	const char *name = json_string_value(json_array_get(names, 0));

	if (name != NULL && name[0] == '/')
		name++;
	if (name != NULL && strlen(name) <= POLICY_NAME_MAX)
		memcpy(out, name, strlen(name) + 1);
}

int
answer_list(const char *s, size_t n, const char *id,
    struct backend_container **out, size_t *nout, struct err *e)
{
	AUTO(auto_json) json_t *a = NULL;
	struct backend_container *list;
	size_t count, used = 0;

	if (parse(s, n, ANSWER_LIST_MAX, &a, e) != 0)
		return ERR_BACKEND;
	if (!json_is_array(a))
		return bad(e, "list");
	count = json_array_size(a);
	if (count > BACKEND_LIST_MAX)
		return err_set(e, ERR_BACKEND,
		    "the engine lists %zu containers of ours", count);
	list = xcalloc(count + 1, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		const json_t *o = json_array_get(a, i);
		struct backend_container *c = &list[used];
		const char *state = get_text(o, "State");

		if (take_id(o, "Id", c->handle.id) != 0)
			continue;
		take_name(c->name, json_object_get(o, "Names"));
		c->running = state != NULL && strcmp(state, "running") == 0;
		take_status(c, state);
		take_labels(c, json_object_get(o, "Labels"), id);
		used++;
	}
	*out = list;
	*nout = used;
	return 0;
}

/* ---- image, version, info */

/* Letters, digits and the colon behind the name of the digest. */
static bool
is_image_id(const char *s)
{
	size_t n = s == NULL ? 0 : strlen(s);

	if (n == 0 || n >= ANSWER_IMAGE_ID_MAX)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != ':')
			return false;
	return true;
}

/* Whole, or nothing of it. */
static bool
take_prepared(struct answer_prepared *out, const json_t *labels)
{
	const char *role = get_text(labels, BODY_LABEL_ROLE);
	const char *agent = get_text(labels, BODY_LABEL_PREPARED_AGENT);
	const char *base = get_text(labels, BODY_LABEL_PREPARED_BASE);

	memset(out, 0, sizeof(*out));
	if (role == NULL || strcmp(role, BODY_ROLE_PREPARED) != 0 ||
	    agent == NULL || strlen(agent) != ANSWER_DIGEST_LEN ||
	    strspn(agent, "0123456789abcdef") != ANSWER_DIGEST_LEN ||
	    !is_image_id(base))
		return false;
	memcpy(out->agent, agent, strlen(agent) + 1);
	memcpy(out->base, base, strlen(base) + 1);
	return true;
}

int
answer_image(const char *s, size_t n, struct answer_image *out, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	const char *got;
	int64_t bytes;

	if (parse(s, n, ANSWER_SMALL_MAX, &o, e) != 0)
		return ERR_BACKEND;
	got = get_text(o, "Id");
	if (!is_image_id(got))
		return bad(e, "image Id");
	memcpy(out->id, got, strlen(got) + 1);
	bytes = get_int(o, "Size");
	out->bytes = bytes > 0 ? (uint64_t)bytes : 0;
	(void)take_prepared(&out->from,
	    json_object_get(json_object_get(o, "Config"), "Labels"));
	return 0;
}

/* How many names there are, and of them how many begin with prefix.  What has
 * none is "<none>:<none>" for some engines. */
static size_t
count_names(const json_t *names, const char *prefix, size_t *with_prefix)
{
	const json_t *name;
	size_t i, n = 0;

	*with_prefix = 0;
	json_array_foreach (names, i, name) {
		const char *text = json_string_value(name);

		if (text == NULL || strncmp(text, "<none>", 6) == 0)
			continue;
		n++;
		if (strncmp(text, prefix, strlen(prefix)) == 0)
			++*with_prefix;
	}
	return n;
}

static void
take_listed(struct answer_listed *l, const json_t *o, const char *prefix)
{
	size_t with_prefix, tags, digests, ours;

	tags = count_names(json_object_get(o, "RepoTags"), prefix, &ours);
	digests =
	    count_names(json_object_get(o, "RepoDigests"), "", &with_prefix);
	l->has_tag = tags > 0;
	l->has_digest = digests > 0;
	l->created_s = get_int(o, "Created");
	l->is_prepared =
	    take_prepared(&l->from, json_object_get(o, "Labels")) &&
	    ours == tags;
}

int
answer_images(const char *s, size_t n, const char *prefix,
    struct answer_listed **out, size_t *nout, struct err *e)
{
	AUTO(auto_json) json_t *a = NULL;
	struct answer_listed *list;
	const json_t *o;
	size_t i, used = 0;

	if (parse(s, n, ANSWER_LIST_MAX, &a, e) != 0)
		return ERR_BACKEND;
	if (!json_is_array(a) || json_array_size(a) > ANSWER_IMAGES_MAX)
		return bad(e, "list of images");
	list = xcalloc(json_array_size(a) + 1, sizeof(*list));
	json_array_foreach (a, i, o) {
		const char *id = get_text(o, "Id");

		if (!is_image_id(id))
			continue;
		memcpy(list[used].id, id, strlen(id) + 1);
		take_listed(&list[used], o, prefix);
		used++;
	}
	*out = list;
	*nout = used;
	return 0;
}

int
answer_preparings(const char *s, size_t n, struct answer_preparing **out,
    size_t *nout, struct err *e)
{
	AUTO(auto_json) json_t *a = NULL;
	struct answer_preparing *list;
	const json_t *o;
	size_t i, used = 0;

	if (parse(s, n, ANSWER_LIST_MAX, &a, e) != 0)
		return ERR_BACKEND;
	if (!json_is_array(a) || json_array_size(a) > BACKEND_LIST_MAX)
		return bad(e, "list");
	list = xcalloc(json_array_size(a) + 1, sizeof(*list));
	json_array_foreach (a, i, o) {
		const json_t *labels = json_object_get(o, "Labels");
		struct answer_preparing *p = &list[used];

		if (take_id(o, "Id", p->id) != 0 ||
		    !take_prepared(&p->from, labels) ||
		    parse_ms(js_text(labels, BODY_LABEL_CREATED),
			&p->created_ms) != 0)
			continue;
		(void)snprintf(p->by, sizeof(p->by), "%s",
		    js_text(labels, BODY_LABEL_PREPARED_BY));
		used++;
	}
	*out = list;
	*nout = used;
	return 0;
}

/* "1.41" and the like; other major versions are none that we know. */
static int
parse_api(const char *s, unsigned int *minor)
{
	size_t n;

	if (s == NULL || strncmp(s, API_PREFIX, strlen(API_PREFIX)) != 0)
		return -1;
	s += strlen(API_PREFIX);
	n = strlen(s);
	if (n == 0 || n > 3 || strspn(s, "0123456789") != n)
		return -1;
	*minor = (unsigned int)strtoul(s, NULL, 10);
	return 0;
}

static void
take_about(struct answer_version *v, const json_t *o)
{
	const json_t *parts = json_object_get(o, "Components"), *part;
	struct backend_about *out = &v->about;
	size_t i;

	*out = (struct backend_about){.name = ""};
	take_clean(out->version, sizeof(out->version), o, "Version");
	take_clean(out->api, sizeof(out->api), o, "ApiVersion");
	take_clean(
	    out->name, sizeof(out->name), json_array_get(parts, 0), "Name");
	if (strcmp(out->name, "Engine") == 0) { /* not "Podman Engine" */
		take_clean(out->name, sizeof(out->name),
		    json_object_get(o, "Platform"), "Name");
		if (out->name[0] == '\0') /* Debian's */
			(void)snprintf(
			    out->name, sizeof(out->name), "Docker Engine");
	}
	v->is_podman = false;
	json_array_foreach (parts, i, part)
		if (strncmp(js_text(part, "Name"), "Podman", 6) == 0)
			v->is_podman = true;
}

int
answer_version(
    const char *s, size_t n, struct answer_version *out, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	unsigned int newest, oldest = 0, use = API_MINOR;

	if (parse(s, n, ANSWER_SMALL_MAX, &o, e) != 0)
		return ERR_BACKEND;
	if (parse_api(get_text(o, "ApiVersion"), &newest) != 0)
		return bad(e, "ApiVersion");
	if (newest < API_OLDEST)
		return err_set(e, ERR_BACKEND,
		    "the engine speaks API 1.%u and older, want 1.%d at least: "
		    "take a newer engine",
		    newest, API_OLDEST);
	if (parse_api(get_text(o, "MinAPIVersion"), &oldest) != 0)
		oldest = 0;
	if (use < oldest)
		use = oldest;
	if (use > newest)
		use = newest;
	(void)snprintf(
	    out->speak, sizeof(out->speak), "v" API_PREFIX "%u", use);
	take_about(out, o);
	return 0;
}

/* DriverStatus is a list of pairs. */
static const char *
driver_status(const json_t *o, const char *key)
{
	const json_t *list = json_object_get(o, "DriverStatus"), *pair;
	size_t i;

	json_array_foreach (list, i, pair) {
		const char *name = json_string_value(json_array_get(pair, 0));

		if (name != NULL && strcmp(name, key) == 0)
			return json_string_value(json_array_get(pair, 1));
	}
	return NULL;
}

static void
take_storage(const json_t *o, struct answer_info *out)
{
	static const struct {
		const char *driver, *on;
		enum answer_quota quota;
	} kinds[] = {{"btrfs", NULL, ANSWER_QUOTA_WHOLE},
	    {"zfs", NULL, ANSWER_QUOTA_LAYER},
	    {"overlay2", "xfs", ANSWER_QUOTA_LAYER}};
	const char *driver = get_text(o, "Driver");
	const char *on = driver_status(o, "Backing Filesystem");
	char text[sizeof(out->storage)];

	for (size_t i = 0; driver != NULL && i < ARRAY_LEN(kinds); i++)
		if (strcmp(driver, kinds[i].driver) == 0 &&
		    (kinds[i].on == NULL ||
			(on != NULL && strcmp(on, kinds[i].on) == 0)))
			out->quota = kinds[i].quota;
	(void)snprintf(text, sizeof(text), "%.30s%s%.30s",
	    driver != NULL ? driver : "storage of no name",
	    on != NULL ? " on " : "", on != NULL ? on : "");
	text_clean(out->storage, sizeof(out->storage), text, strlen(text));
}

/* ["name=seccomp,profile=default", "name=userns", ...] */
static bool
has_option(const json_t *info, const char *name)
{
	const json_t *options = json_object_get(info, "SecurityOptions"), *v;
	size_t i, n = strlen(name);

	json_array_foreach (options, i, v) {
		const char *s = json_string_value(v);

		if (s != NULL && strncmp(s, name, n) == 0 &&
		    (s[n] == '\0' || s[n] == ','))
			return true;
	}
	return false;
}

static void
take_runtimes(const json_t *o, struct answer_info *out)
{
	const json_t *value;
	const char *name;

	out->runtimes[0] = '\0';
	json_object_foreach (
	    (json_t *)(uintptr_t)json_object_get(o, "Runtimes"), name, value)
		runtimes_add(out->runtimes, name);
}

int
answer_info(const char *s, size_t n, const char *runtime,
    struct answer_info *out, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	json_int_t cpus;

	if (parse(s, n, ANSWER_SMALL_MAX, &o, e) != 0)
		return ERR_BACKEND;
	if (!json_is_object(o))
		return bad(e, "info");
	out->memory_limit = get_bool(o, "MemoryLimit");
	out->pids_limit = get_bool(o, "PidsLimit");
	out->cpu_quota =
	    get_bool(o, "CpuCfsQuota") || get_bool(o, "CPUCfsQuota");
	cpus = get_int(o, "NCPU");
	out->cpus = cpus < 0 || cpus > CPUS_MAX ? 0 : (unsigned int)cpus;
	out->userns = has_option(o, "name=userns");
	out->rootless = has_option(o, "name=rootless");
	out->seccomp = has_option(o, "name=seccomp");
	out->apparmor = has_option(o, "name=apparmor");
	out->selinux = has_option(o, "name=selinux");
	out->quota = ANSWER_QUOTA_NONE;
	take_storage(o, out);
	take_runtimes(o, out);
	take_clean(out->default_runtime, sizeof(out->default_runtime), o,
	    "DefaultRuntime");
	out->has_runtime = runtimes_have(out->runtimes, runtime);
	return 0;
}

/* ---- streams */

int
answer_event(const char *s, size_t n, struct answer_event *out, struct err *e)
{
	static const struct {
		const char *name;
		enum backend_change what;
	} kinds[] = {{"die", BACKEND_DIED}, {"died", BACKEND_DIED},
	    {"oom", BACKEND_OOM}, {"destroy", BACKEND_DESTROYED},
	    {"remove", BACKEND_DESTROYED}};
	AUTO(auto_json) json_t *o = NULL;
	struct answer_event ev = {0};
	const json_t *actor;
	const char *action;

	if (parse(s, n, API_LINE_MAX, &o, e) != 0)
		return ERR_BACKEND;
	action = get_text(o, "Action");
	actor = json_object_get(o, "Actor");
	if (action == NULL || take_id(actor, "ID", ev.handle.id) != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(action, kinds[i].name) == 0) {
			ev.what = kinds[i].what;
			*out = ev;
			return 1;
		}
	return 0;
}

int
answer_progress(const char *s, size_t n, char text[ANSWER_TEXT_MAX])
{
	AUTO(auto_json) json_t *o = NULL;
	const char *why;

	if (js_parse(s, n, API_LINE_MAX, DEPTH_MAX, &o, NULL) != 0)
		return 0;
	why = get_text(o, "error");
	if (why == NULL)
		why = get_text(json_object_get(o, "errorDetail"), "message");
	if (why == NULL)
		return 0;
	text_clean(text, ANSWER_TEXT_MAX, why, strlen(why));
	return 1;
}

void
answer_message(const char *s, size_t n, char text[ANSWER_TEXT_MAX])
{
	AUTO(auto_json) json_t *o = NULL;
	const char *why = NULL;

	if (js_parse(s, n, ANSWER_SMALL_MAX, DEPTH_MAX, &o, NULL) == 0)
		why = get_text(o, "message");
	if (why != NULL)
		text_clean(text, ANSWER_TEXT_MAX, why, strlen(why));
	else
		text_clean(text, ANSWER_TEXT_MAX, s, n);
}
