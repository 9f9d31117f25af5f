#include "supervisor/front/exposition.h"

#include <strings.h>

#include "common/text.h"

/* One sample's surroundings while a family is written. */
struct scribe {
	struct buf *b;
	enum exposition_form form;
	const struct exposition_words *words;
	const struct metric_family *family;
	enum metric_number number;
	const char *base; /* the name as this form has it */
	int base_len;
	const char *values[2]; /* of its labels */
	unsigned int at;       /* cell */
	unsigned int combination;
};

/* ---- which form */

/* A weight in thousandths; RFC 9110, section 12.4.2. */
static unsigned int
read_weight(const char *p)
{
	unsigned int weight = 0, unit = 1000;

	for (; *p == '0' || *p == '1'; p++)
		weight = *p == '1' ? 1000 : weight;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			weight += unit * (unsigned int)(*p - '0');
		}
	return weight < 1000 ? weight : 1000;
}

struct media_range {
	const char *type;
	size_t len;
	unsigned int weight;
	bool is_old; /* a version that is not ours */
};

/* One element; returns where the next begins, or NULL. */
static const char *
read_range(const char *p, struct media_range *out)
{
	const char *end = strchrnul(p, ',');

	p = text_skip_blanks(p);
	*out = (struct media_range){
	    .type = p, .len = strcspn(p, ";, \t"), .weight = 1000};
	for (p += out->len; p < end; p += strcspn(p, ";,")) {
		p = text_skip_blanks(p + (*p == ';'));
		if (strncasecmp(p, "q=", 2) == 0)
			out->weight = read_weight(p + 2);
		else if (strncasecmp(p, "version=", 8) == 0)
			out->is_old = strncmp(p + 8, "1.0", 3) != 0 &&
			    strncmp(p + 8, "\"1.0", 4) != 0;
		else if (p < end && *p == ',')
			break;
	}
	return *end == '\0' ? NULL : end + 1;
}

static bool
is_type(const struct media_range *r, const char *type)
{
	return r->len == strlen(type) &&
	    strncasecmp(r->type, type, r->len) == 0;
}

enum exposition_form
exposition_choose(const char *accept)
{
	unsigned int open = 0, text = 0;
	struct media_range r;

	while (accept != NULL && *accept != '\0') {
		accept = read_range(accept, &r);
		if (is_type(&r, "application/openmetrics-text") && !r.is_old)
			open = r.weight > open ? r.weight : open;
		else if (is_type(&r, "text/plain"))
			text = r.weight > text ? r.weight : text;
	}
	return open > text ? EXPOSITION_OPENMETRICS : EXPOSITION_TEXT;
}

const char *
exposition_type(enum exposition_form form)
{
	return form == EXPOSITION_OPENMETRICS ?
	    "application/openmetrics-text; version=1.0.0; charset=utf-8" :
	    "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- pieces of a line */

static void
put(struct scribe *s, const char *text)
{
	(void)!buf_append(s->b, text, strlen(text));
}

static void
put_escaped(struct scribe *s, const char *value)
{
	for (size_t n; *value != '\0'; value += n) {
		n = strcspn(value, "\\\"\n");
		(void)!buf_append(s->b, value, n);
		if (value[n] == '\0')
			return;
		put(s,
		    value[n] == '\n'    ? "\\n" :
			value[n] == '"' ? "\\\"" :
					  "\\\\");
		n++;
	}
}

/* NAMEsuffix{labels,further}, of which none may be. */
static void
put_head(struct scribe *s, const char *suffix, const char *le, const char *more)
{
	const char *before = "{";

	(void)!buf_append(s->b, s->base, (size_t)s->base_len);
	put(s, suffix);
	for (unsigned int i = 0; i < s->family->nlabels; i++) {
		put(s, before);
		put(s, s->family->labels[i].name);
		put(s, "=\"");
		put_escaped(s, s->values[i]);
		put(s, "\"");
		before = ",";
	}
	if (le != NULL) {
		put(s, before);
		put(s, "le=\"");
		put(s, le);
		put(s, more);
		put(s, "\"");
		before = ",";
	}
	put(s, *before == ',' ? "} " : " ");
}

static void
put_seconds(struct scribe *s, uint64_t us)
{
	(void)buf_printf(s->b, "%llu.%06llu",
	    (unsigned long long)(us / 1000000),
	    (unsigned long long)(us % 1000000));
}

static void
put_ms(struct scribe *s, int64_t ms)
{
	(void)buf_printf(s->b, "%lld.%03lld", (long long)(ms / 1000),
	    (long long)(ms % 1000));
}

static void
put_value(struct scribe *s, uint64_t value)
{
	if (strcmp(s->family->unit, "seconds") == 0 &&
	    s->family->type == METRIC_GAUGE)
		put_seconds(s, value);
	else
		(void)buf_printf(s->b, "%llu", (unsigned long long)value);
}

static void
put_created(struct scribe *s)
{
	if (s->form != EXPOSITION_OPENMETRICS)
		return;
	put_head(s, "_created", NULL, "");
	put_ms(s, metric_began_ms());
	put(s, "\n");
}

/* ---- samples */

static void
write_plain(struct scribe *s)
{
	uint64_t value = metric_get(s->at);
	bool is_counter = s->family->type == METRIC_COUNTER;

	if (value == METRIC_UNKNOWN || (s->family->is_sparse && value == 0))
		return;
	put_head(s,
	    is_counter && s->form == EXPOSITION_OPENMETRICS ? "_total" : "",
	    NULL, "");
	put_value(s, value);
	put(s, "\n");
	if (is_counter)
		put_created(s);
}

static void
put_exemplar(struct scribe *s, unsigned int bucket)
{
	struct exposition_exemplar x;

	if (s->form != EXPOSITION_OPENMETRICS || s->words->exemplar == NULL ||
	    !s->words->exemplar(s->number, bucket, &x, s->words->arg))
		return;
	put(s, " # {");
	put(s, x.labels);
	put(s, "} ");
	put_seconds(s, x.us);
	put(s, " ");
	put_ms(s, x.wall_ms);
}

/* OpenMetrics writes whole numbers of le with a fraction. */
static void
write_bucket(struct scribe *s, unsigned int i, uint64_t below)
{
	const struct metric_family *f = s->family;
	const char *le = i < f->nbounds ? f->bounds[i] : "+Inf";
	bool is_whole = i < f->nbounds && strchr(le, '.') == NULL;

	put_head(s, "_bucket", le,
	    is_whole && s->form == EXPOSITION_OPENMETRICS ? ".0" : "");
	(void)buf_printf(s->b, "%llu", (unsigned long long)below);
	put_exemplar(s, i);
	put(s, "\n");
}

static void
write_histogram(struct scribe *s)
{
	const struct metric_family *f = s->family;
	uint64_t counts[METRIC_BOUNDS_MAX + 1] = {0}, below = 0;
	uint64_t sum = metric_get(s->at + f->nbounds + 1);

	for (unsigned int i = 0; i <= f->nbounds; i++)
		below += counts[i] = metric_get(s->at + i);
	if (below == 0 && f->is_sparse)
		return;
	below = 0;
	for (unsigned int i = 0; i <= f->nbounds; i++)
		write_bucket(s, i, below += counts[i]);
	put_head(s, "_sum", NULL, "");
	put_seconds(s, sum);
	put(s, "\n");
	put_head(s, "_count", NULL, "");
	(void)buf_printf(s->b, "%llu\n", (unsigned long long)below);
	put_created(s);
}

static void
write_sample(struct scribe *s)
{
	s->at = s->family->first + s->combination++ * s->family->width;
	if (s->family->type == METRIC_HISTOGRAM)
		write_histogram(s);
	else
		write_plain(s);
}

static const char *
label_value(const struct scribe *s, unsigned int label, unsigned int i)
{
	const struct metric_label *l = &s->family->labels[label];

	return l->values != NULL ?
	    l->values[i] :
	    s->words->label(s->number, label, i, s->words->arg);
}

/* For each value of the first label, all of the second. */
static void
write_samples(struct scribe *s)
{
	const struct metric_family *f = s->family;
	unsigned int first = f->nlabels > 0 ? f->labels[0].count : 1;
	unsigned int second = f->nlabels > 1 ? f->labels[1].count : 1;

	for (unsigned int i = 0; i < first; i++) {
		s->values[0] = f->nlabels > 0 ? label_value(s, 0, i) : "";
		s->combination = i * second;
		if (s->values[0] == NULL)
			continue;
		for (unsigned int k = 0; k < second; k++) {
			s->values[1] =
			    f->nlabels > 1 ? label_value(s, 1, k) : "";
			write_sample(s);
		}
	}
}

/* OpenMetrics' name of a counter is without _total. */
static void
write_family(struct scribe *s)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	const struct metric_family *f = s->family;
	size_t n = strlen(f->name);
	bool open = s->form == EXPOSITION_OPENMETRICS;

	s->base = f->name;
	if (open && f->type == METRIC_COUNTER)
		n -= strlen("_total");
	s->base_len = (int)n;
	(void)buf_printf(s->b, "# HELP %.*s %s\n# TYPE %.*s %s\n", s->base_len,
	    s->base, f->help, s->base_len, s->base, types[f->type]);
	if (open && f->unit[0] != '\0')
		(void)buf_printf(
		    s->b, "# UNIT %.*s %s\n", s->base_len, s->base, f->unit);
	write_samples(s);
}

void
exposition_write(struct buf *b, enum exposition_form form,
    const struct exposition_words *words)
{
	struct scribe s = {.b = b, .form = form, .words = words};

	for (unsigned int i = 0; i < METRIC_FAMILIES; i++) {
		s.number = (enum metric_number)i;
		s.family = metric_family_at(s.number);
		write_family(&s);
	}
	if (form == EXPOSITION_OPENMETRICS)
		put(&s, "# EOF\n");
}
