#include "supervisor/front/backup_route.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/front/scope.h"

#define BODY_MAX 8192
#define DEPTH_MAX 4

struct backup_note {
	struct http_exchange *x; /* outlives its client */
	const char *artifacts;   /* of the configuration */
	json_int_t reserve;      /* likewise, in bytes */
};

static void
noted_cb(int rc, const struct err *why, void *arg)
{
	struct backup_note *n = arg;
	json_t *o;

	if (rc != 0) {
		http_error_from(n->x, rc, why);
		free(n);
		return;
	}
	o = json_pack("{s:o, s:I}", "artifacts_dir",
	    js_string_bytes(n->artifacts, strlen(n->artifacts), NULL),
	    "reserve_bytes", n->reserve);
	http_reply_json(n->x, 200, o);
	free(n);
}

void
backup_on_request(struct front *f, struct http_exchange *x)
{
	char client[NETADDR_TEXT_MAX];
	struct backup_note *note;
	struct act act;
	json_t *o = NULL;
	struct err e;
	size_t n;
	const void *body = http_body(x, &n);

	if (js_parse(body, n, BODY_MAX, DEPTH_MAX, &o, &e) != 0 ||
	    json_object_size(o) != 1 ||
	    !json_is_string(json_object_get(o, "file"))) {
		json_decref(o);
		http_error(x, 400, "bad_request",
		    "the body: want {\"file\": NAME}, where the backup goes");
		return;
	}
	note = xcalloc(1, sizeof(*note));
	note->x = x;
	note->artifacts = conf_str(f->conf, CONF_ARTIFACTS_DIR);
	note->reserve = (json_int_t)conf_int(f->conf, CONF_DISK_RESERVE_MB)
	    << 20;
	http_hold(x, NULL, NULL);
	act = scope_act(x, "backup", client);
	act.detail = js_text(o, "file");
	acts_tell(core_acts(f->core), &act, noted_cb, note);
	json_decref(o);
}
