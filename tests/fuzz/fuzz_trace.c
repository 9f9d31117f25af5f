/*
 * fuzz_trace.c - a traceparent from anybody
 * libs: common
 *
 * What is taken keeps its trace and names its sender; what we send on is good
 * ourselves, and of the same trace.
 */
#include "common/trace.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	char next[TRACE_PARENT_LEN + 1];
	struct trace a = {0}, b = {0};

	if (trace_continue(&a, text) == 0) {
		if (strncmp(a.id, text + 3, TRACE_ID_LEN) != 0 ||
		    strlen(a.parent) != TRACE_SPAN_LEN ||
		    strcmp(a.span, a.parent) == 0)
			abort();
		trace_parent(&a, next);
		if (strlen(next) != TRACE_PARENT_LEN ||
		    trace_continue(&b, next) != 0 || strcmp(a.id, b.id) != 0 ||
		    strcmp(a.span, b.parent) != 0 ||
		    a.is_sampled != b.is_sampled)
			abort();
	}
	return 0;
}
