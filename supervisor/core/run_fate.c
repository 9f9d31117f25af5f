#include "supervisor/core/run_fate.h"

#include "common/err.h"

struct run_fate
run_fate_of(const struct store_sandbox *row)
{
	if (row == NULL || row->state == SANDBOX_IS_LOST)
		return (struct run_fate){RUNLOG_LOST, ERR_LOST,
		    "the sandbox was lost while the server was down"};
	/* Failed, or deleted while it was made: the row does not tell. */
	if (row->state == SANDBOX_IS_REMOVED && row->container_id[0] == '\0')
		return (struct run_fate){RUNLOG_START_FAILED, ERR_WRONG_STATE,
		    "the sandbox was removed before it was up"};
	return (struct run_fate){RUNLOG_CANCELED, ERR_WRONG_STATE,
	    "the run was canceled: its sandbox was deleted"};
}
