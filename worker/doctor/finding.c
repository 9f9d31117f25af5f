#include "worker/doctor/finding.h"

#include <stdarg.h>

#include <jansson.h>

#include "common/js.h"
#include "common/text.h"
#include "common/xmalloc.h"

#define WHAT_WIDTH 12

static const char *const state_words[] = {"holds", "fails", "unknown"};

void
findings_add(struct findings *f, const char *what, enum finding_state state,
    const char *advice, const char *text, ...)
{
	char said[FINDING_TEXT_MAX];
	struct finding *x;
	va_list ap;

	if (f->n == FINDINGS_MAX) {
		f->more++;
		return;
	}
	x = &f->all[f->n++];
	x->what = what;
	x->state = state;
	va_start(ap, text);
	(void)vsnprintf(said, sizeof(said), text, ap);
	va_end(ap);
	text_clean(x->text, sizeof(x->text), said, strlen(said));
	(void)snprintf(x->advice, sizeof(x->advice), "%s",
	    state == FINDING_HOLDS ? "" : advice);
}

bool
findings_all_hold(const struct findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].state != FINDING_HOLDS)
			return false;
	return f->more == 0;
}

void
findings_print_table(const struct findings *f, FILE *out)
{
	size_t counts[ARRAY_LEN(state_words)] = {0};

	for (size_t i = 0; i < f->n; i++) {
		const struct finding *x = &f->all[i];

		(void)fprintf(out, "%-7s  %-*s  %s\n", state_words[x->state],
		    WHAT_WIDTH, x->what, x->text);
		if (x->advice[0] != '\0')
			(void)fprintf(out, "%-7s  %-*s    -> %s\n", "",
			    WHAT_WIDTH, "", x->advice);
		counts[x->state]++;
	}
	(void)fprintf(out, "%zu hold, %zu do not, %zu unknown",
	    counts[FINDING_HOLDS], counts[FINDING_FAILS],
	    counts[FINDING_UNKNOWN]);
	if (f->more > 0)
		(void)fprintf(out, ", %zu more are not shown", f->more);
	(void)fputc('\n', out);
}

void
findings_print_json(const struct findings *f, FILE *out)
{
	AUTO(auto_json) json_t *o = NULL;
	AUTO(auto_free) char *s = NULL;
	json_t *a = json_array();

	for (size_t i = 0; i < f->n; i++) {
		const struct finding *x = &f->all[i];

		(void)json_array_append_new(a,
		    json_pack("{s:s, s:s, s:s, s:s}", "what", x->what, "state",
			state_words[x->state], "text", x->text, "advice",
			x->advice));
	}
	o = json_pack("{s:b, s:o, s:I}", "holds", findings_all_hold(f),
	    "findings", a, "not_shown", (json_int_t)f->more);
	s = js_dump(o);
	(void)fprintf(out, "%s\n", s);
}
