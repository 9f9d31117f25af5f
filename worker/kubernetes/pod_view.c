#include "worker/kubernetes/pod_view.h"

#include <stdio.h>

#include "common/js.h"
#include "common/moment.h"
#include "common/text.h"
#include "worker/kubernetes/pod_body.h"
#include "worker/kubernetes/pod_labels.h"

#define WORD_MAX 64
#define MESSAGE_MAX 200

static void
take_text(char *to, size_t size, const json_t *o, const char *key)
{
	const char *s = js_text(o, key);

	text_clean(to, size, s, strlen(s));
}

static bool
is_word(const json_t *o, const char *key, const char *word)
{
	return strcmp(js_text(o, key), word) == 0;
}

/* ---- what it says of itself */

static const json_t *
status_of(const json_t *statuses, const char *container)
{
	const json_t *one;
	size_t i;

	json_array_foreach (statuses, i, one)
		if (is_word(one, "name", container))
			return one;
	return NULL;
}

static const json_t *
condition_of(const json_t *status, const char *type)
{
	const json_t *conditions = json_object_get(status, "conditions"), *one;
	size_t i;

	json_array_foreach (conditions, i, one)
		if (is_word(one, "type", type))
			return one;
	return NULL;
}

/* "WORD: message", or the one of them that is there. */
static void
put_reason(struct pod_state *s, const char *before, const json_t *o)
{
	char word[WORD_MAX], message[MESSAGE_MAX];

	take_text(word, sizeof(word), o, "reason");
	take_text(message, sizeof(message), o, "message");
	(void)snprintf(s->reason, sizeof(s->reason), "%s%s%s%s", before, word,
	    word[0] != '\0' && message[0] != '\0' ? ": " : "", message);
}

static int64_t
time_of(const json_t *o, const char *key)
{
	const char *s = js_text(o, key);
	int64_t ms;

	return strchr(s, 'T') != NULL && moment_parse(s, 0, &ms) && ms > 0 ?
	    ms :
	    INT64_MAX;
}

/* ---- why it waits */

/* They stay as they are until the Pod is another. */
static bool
is_hopeless(const char *word)
{
	static const char *const words[] = {"InvalidImageName",
	    "ErrImageNeverPull", "CreateContainerConfigError"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], word) == 0)
			return true;
	return false;
}

/* What each container is said to do while all is well. */
static bool
is_usual(const char *word)
{
	return word[0] == '\0' || strcmp(word, "ContainerCreating") == 0 ||
	    strcmp(word, "PodInitializing") == 0;
}

/* True: it waits for something of its own. */
static bool
take_waiting(struct pod_state *s, const json_t *status, const char *before)
{
	const json_t *waiting =
	    json_object_get(json_object_get(status, "state"), "waiting");
	const char *word = js_text(waiting, "reason");

	if (is_usual(word))
		return false;
	put_reason(s, before, waiting);
	s->is_hopeless = is_hopeless(word);
	return true;
}

static void
take_pending(struct pod_state *s, const json_t *status, const json_t *init,
    const json_t *box)
{
	const json_t *scheduled = condition_of(status, "PodScheduled");

	if (scheduled == NULL || !is_word(scheduled, "status", "True")) {
		put_reason(s, "no node takes it: ", scheduled);
		if (scheduled == NULL)
			(void)snprintf(s->reason, sizeof(s->reason),
			    "no scheduler has looked at it");
	} else if (!take_waiting(s, init, "the agent's container: ") &&
	    !take_waiting(s, box, "")) {
		s->is_mute = true;
		(void)snprintf(s->reason, sizeof(s->reason),
		    "its node has not made its containers yet");
	}
}

/* ---- how it ended */

static int32_t
exit_code_of(const json_t *terminated)
{
	json_int_t code =
	    json_integer_value(json_object_get(terminated, "exitCode"));

	return code < -1 || code > 255 ? -1 : (int32_t)code;
}

static void
take_ended(struct pod_state *s, const json_t *status, const json_t *init,
    const json_t *box)
{
	const json_t *end =
	    json_object_get(json_object_get(box, "state"), "terminated");
	const json_t *init_end =
	    json_object_get(json_object_get(init, "state"), "terminated");

	s->finished_ms = time_of(end, "finishedAt");
	s->exit_code = end != NULL ? exit_code_of(end) : -1;
	s->oom_killed = is_word(end, "reason", "OOMKilled");
	if (js_text(status, "reason")[0] != '\0') {
		s->was_ended_from_outside = true;
		put_reason(s, "", status);
	} else if (init_end != NULL && exit_code_of(init_end) != 0) {
		put_reason(s, "the agent's container: ", init_end);
		s->exit_code = exit_code_of(init_end);
	} else if (end != NULL) {
		put_reason(s, "", end);
	} else {
		(void)snprintf(
		    s->reason, sizeof(s->reason), "its node does not say how");
	}
}

/* ---- the state */

static bool
take_uid(const json_t *meta, char out[POD_UID_MAX + 1])
{
	const char *uid = js_text(meta, "uid");
	size_t n = strlen(uid);

	if (n == 0 || n > POD_UID_MAX ||
	    strspn(uid, "0123456789abcdefABCDEF-") != n)
		return false;
	memcpy(out, uid, n + 1);
	return true;
}

static enum pod_phase
phase_of(const json_t *meta, const json_t *status, const json_t *box)
{
	const json_t *running =
	    json_object_get(json_object_get(box, "state"), "running");

	if (json_is_string(json_object_get(meta, "deletionTimestamp")))
		return POD_REMOVING;
	if (is_word(status, "phase", "Failed") ||
	    is_word(status, "phase", "Succeeded") ||
	    json_object_get(json_object_get(box, "state"), "terminated") !=
		NULL)
		return POD_ENDED;
	return is_word(status, "phase", "Running") && json_is_object(running) &&
		json_is_true(json_object_get(box, "ready")) ?
	    POD_RUNNING :
	    POD_PENDING;
}

int
pod_view_state(const json_t *pod, const char *container, struct pod_state *out,
    struct err *e)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const json_t *status = json_object_get(pod, "status");
	const json_t *init =
	    status_of(json_object_get(status, "initContainerStatuses"),
		POD_AGENT_CONTAINER);
	const json_t *box =
	    status_of(json_object_get(status, "containerStatuses"), container);
	json_int_t restarts =
	    json_integer_value(json_object_get(box, "restartCount"));
	const char *name = js_text(meta, "name");
	struct pod_state s = {.phase = POD_PENDING};

	if (!pod_name_is_label(name) || !take_uid(meta, s.uid))
		return err_set(e, ERR_BACKEND,
		    "the cluster's answer is no Pod with a name and a uid");
	memcpy(s.name, name, strlen(name) + 1);
	if (restarts > 0 && restarts <= INT32_MAX)
		s.restarts = (uint32_t)restarts;
	s.phase = phase_of(meta, status, box);
	if (s.phase == POD_PENDING)
		take_pending(&s, status, init, box);
	else if (s.phase == POD_ENDED)
		take_ended(&s, status, init, box);
	*out = s;
	return 0;
}

void
pod_view_life(const struct pod_state *s, char out[BACKEND_LIFE_MAX + 1])
{
	(void)snprintf(out, BACKEND_LIFE_MAX + 1, "%s/%u", s->uid, s->restarts);
}

bool
pod_view_uid_of(const char *life, char out[POD_UID_MAX + 1])
{
	size_t n = strcspn(life, "/");

	if (n == 0 || n > POD_UID_MAX || life[n] != '/')
		return false;
	memcpy(out, life, n);
	out[n] = '\0';
	return true;
}

/* ---- a box */

/* What stands under our prefix; "" for what does not. */
static const char *
marked(const json_t *of, const struct pod_ours *ours, const char *word)
{
	char name[POD_LABEL_MAX + 1];

	pod_label(ours->prefix, word, name);
	return js_text(of, name);
}

/* Decimal digits alone; 0 of all else. */
static uint64_t
number(const char *s)
{
	size_t n = strlen(s);

	return n == 0 || n > 15 || strspn(s, "0123456789") != n ?
	    0 :
	    strtoull(s, NULL, 10);
}

static void
copy_word(char *to, size_t size, const char *s)
{
	if (strlen(s) < size)
		memcpy(to, s, strlen(s) + 1);
}

/* By its name the Pod must be that box's, and by its digest that tenant's. */
static bool
fits(
    const json_t *pod, const char *name, const char *tenant, const char *digest)
{
	char want[POD_NAME_MAX + 1], of[POD_TENANT_LEN + 1];

	if (!policy_is_name(name) || !policy_is_tenant(tenant))
		return false;
	pod_name(name, want);
	pod_tenant(tenant, of);
	return strcmp(want,
		   js_text(json_object_get(pod, "metadata"), "name")) == 0 &&
	    strcmp(of, digest) == 0;
}

static void
take_ours(
    struct backend_container *c, const json_t *pod, const struct pod_ours *ours)
{
	const json_t *meta = json_object_get(pod, "metadata");
	const json_t *labels = json_object_get(meta, "labels");
	const json_t *notes = json_object_get(meta, "annotations");
	const char *role = marked(labels, ours, POD_LABEL_ROLE);
	const char *name = marked(notes, ours, POD_NOTE_NAME);
	const char *tenant = marked(notes, ours, POD_NOTE_TENANT);
	const char *print = marked(labels, ours, POD_LABEL_FINGERPRINT);

	if (ours->id[0] == '\0' ||
	    strcmp(marked(labels, ours, POD_LABEL_ID), ours->id) != 0 ||
	    (ours->tenant[0] != '\0' && strcmp(tenant, ours->tenant) != 0) ||
	    !fits(pod, name, tenant, marked(labels, ours, POD_LABEL_TENANT)))
		return;
	c->created_ms = (int64_t)number(marked(notes, ours, POD_NOTE_CREATED));
	c->is_trial = strcmp(role, POD_ROLE_TRIAL) == 0;
	if (strcmp(role, POD_ROLE) != 0 || c->created_ms == 0 ||
	    uuid_parse(
		marked(labels, ours, POD_LABEL_BOX), &c->identity.uuid) != 0)
		return;
	copy_word(c->name, sizeof(c->name), name);
	copy_word(c->identity.tenant, sizeof(c->identity.tenant), tenant);
	if (strlen(print) == POLICY_FINGERPRINT_LEN)
		copy_word(c->identity.fingerprint,
		    sizeof(c->identity.fingerprint), print);
	copy_word(c->carrier, sizeof(c->carrier),
	    marked(labels, ours, POD_LABEL_CARRIER));
	c->nano_cpus = number(marked(notes, ours, POD_NOTE_CPUS));
	c->memory_bytes = number(marked(notes, ours, POD_NOTE_MEMORY));
	c->has_old_files =
	    strcmp(marked(notes, ours, POD_NOTE_OLD_FILES), "true") == 0;
	c->is_ours = true;
}

static void
take_report(struct backend_report *r, const json_t *pod,
    const struct pod_ours *ours, const struct pod_state *s)
{
	const json_t *notes =
	    json_object_get(json_object_get(pod, "metadata"), "annotations");
	const char *identifier = marked(notes, ours, POD_NOTE_IDENTIFIER);
	const char *image = marked(notes, ours, POD_NOTE_IMAGE);
	uint64_t generation = number(marked(notes, ours, POD_NOTE_GENERATION));

	memset(r, 0, sizeof(*r));
	(void)snprintf(r->name, sizeof(r->name), "%s", s->name);
	text_clean(r->identifier, sizeof(r->identifier), identifier,
	    strlen(identifier));
	text_clean(r->image, sizeof(r->image), image, strlen(image));
	if (generation <= UINT32_MAX)
		r->generation = (uint32_t)generation;
	r->finished_ms = s->finished_ms;
	if (s->was_ended_from_outside)
		(void)snprintf(r->ended, sizeof(r->ended), "%s", s->reason);
}

int
pod_view_container(const json_t *pod, const struct pod_ours *ours,
    struct backend_container *out, struct backend_report *report, struct err *e)
{
	struct backend_container c = {.pid = 0};
	struct pod_state s;

	if (pod_view_state(pod, ours->container, &s, e) != 0)
		return ERR_BACKEND;
	(void)snprintf(c.handle.id, sizeof(c.handle.id), "%s", s.name);
	pod_view_life(&s, c.handle.life);
	backend_handle_set_tenant(&c.handle, ours->tenant);
	c.running = s.phase == POD_RUNNING;
	c.created = s.phase == POD_PENDING;
	c.removing = s.phase == POD_REMOVING;
	c.oom_killed = s.oom_killed;
	c.exit_code = s.exit_code;
	take_ours(&c, pod, ours);
	if (c.is_ours && report != NULL) {
		take_report(report, pod, ours, &s);
		c.report = report;
	}
	*out = c;
	return 0;
}
