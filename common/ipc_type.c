#include "common/ipc.h"

static const char *const ipc_names[] = {
    [IPC_HELLO] = "HELLO",
    [IPC_CONFIG] = "CONFIG",
    [IPC_CONFIG_END] = "CONFIG_END",
    [IPC_READY] = "READY",
    [IPC_LISTEN] = "LISTEN",
    [IPC_PEER] = "PEER",
    [IPC_PEER_GONE] = "PEER_GONE",
    [IPC_PING] = "PING",
    [IPC_PONG] = "PONG",
    [IPC_LOG_LEVEL] = "LOG_LEVEL",
    [IPC_DRAIN] = "DRAIN",
    [IPC_COUNTS] = "COUNTS",
    [IPC_LAST_WORDS] = "LAST_WORDS",
    [IPC_SANDBOX_OPEN] = "SANDBOX_OPEN",
    [IPC_SANDBOX_SETTLED] = "SANDBOX_SETTLED",
    [IPC_SANDBOX_REMOVE] = "SANDBOX_REMOVE",
    [IPC_RUN_START] = "RUN_START",
    [IPC_RUN_CANCEL] = "RUN_CANCEL",
    [IPC_RUN_FORGET] = "RUN_FORGET",
    [IPC_ARTIFACT_FD] = "ARTIFACT_FD",
    [IPC_SWEEP] = "SWEEP",
    [IPC_SWEEP_END] = "SWEEP_END",
    [IPC_WORKER_STATE] = "WORKER_STATE",
    [IPC_SANDBOX_READY] = "SANDBOX_READY",
    [IPC_SANDBOX_FAILED] = "SANDBOX_FAILED",
    [IPC_SANDBOX_LOST] = "SANDBOX_LOST",
    [IPC_SANDBOX_REMOVED] = "SANDBOX_REMOVED",
    [IPC_RUN_BYTES] = "RUN_BYTES",
    [IPC_RUN_RECORD] = "RUN_RECORD",
    [IPC_RUN_ENDED] = "RUN_ENDED",
    [IPC_ARTIFACT_OPEN] = "ARTIFACT_OPEN",
    [IPC_ARTIFACT_DONE] = "ARTIFACT_DONE",
    [IPC_SWEPT] = "SWEPT",
};

const char *
ipc_type_name(unsigned int type)
{
	if (type >= ARRAY_LEN(ipc_names) || ipc_names[type] == NULL)
		return "?";
	return ipc_names[type];
}
