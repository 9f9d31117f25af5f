#include "supervisor/service/internal.h"

struct log_source
run_log_source(const struct run *r)
{
	struct log_source l = {r->spool_fd, NULL, r->length};

	return l;
}
