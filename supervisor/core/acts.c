#include "supervisor/core/acts.h"

#include "common/log.h"

void
acts_tell(const struct act *a)
{
	const struct log_field fields[] = {
	    {"what", a->what},
	    {"by", a->who == NULL ? NULL : a->who->subject},
	    {"by_tenant", a->who == NULL ? NULL : a->who->tenant_name},
	    {"origin", a->origin},
	    {"request", a->request_id},
	    {"tenant", a->tenant},
	    {"subject", a->subject},
	    {"detail", a->detail},
	};

	log_event(LOG_INFO, "act", fields, ARRAY_LEN(fields));
}
