#include "images/agent/proc_end.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/exit.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "images/agent/oom.h"

void
proc_end_unstarted(struct proc_end *end, enum keeper_stage stage, int error)
{
	end->why = PROC_UNSTARTED;
	end->stage = stage;
	end->error = error;
	end->signal = 0;
	end->exit_code = stage == KEEPER_EXEC && error == ENOENT ?
	    EXIT_NOT_FOUND :
	    EXIT_CANNOT;
}

void
proc_end_fill(struct proc_end *end, const struct keeper_report *report,
    enum proc_why asked, uint64_t oom_before)
{
	int status = report->status;

	end->memory_kills = oom_since(oom_before);
	if (report->stage != KEEPER_STARTED) {
		proc_end_unstarted(
		    end, (enum keeper_stage)report->stage, report->error);
		return;
	}
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	end->exit_code =
	    end->signal != 0 ? 128 + end->signal : WEXITSTATUS(status);
	end->why = end->signal != 0 ? PROC_SIGNALED : PROC_EXITED;
	if (report->killed && asked != PROC_EXITED && end->signal == SIGKILL)
		end->why = asked;
	else if (end->exit_code == EXIT_KILLED && end->memory_kills > 0)
		end->why = PROC_OUT_OF_MEMORY;
}

enum runlog_reason
proc_end_reason(enum proc_why why)
{
	static const enum runlog_reason reasons[] = {
	    [PROC_EXITED] = RUNLOG_EXIT,
	    [PROC_SIGNALED] = RUNLOG_SIGNAL,
	    [PROC_OUT_OF_MEMORY] = RUNLOG_MEMORY,
	    [PROC_UNSTARTED] = RUNLOG_START_FAILED,
	    [PROC_TIMED_OUT] = RUNLOG_TIMEOUT,
	    [PROC_KILLED] = RUNLOG_CANCELED};

	return reasons[why];
}

/* What a model may try instead: programs that are there. */
static void
name_programs(char *out, size_t size)
{
	static const char *const names[] = {
	    "sh", "bash", "python3", "perl", "node", "ruby", "busybox"};
	static const char *const dirs[] = {
	    "/usr/local/bin", "/usr/bin", "/bin"};
	size_t used = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		for (size_t d = 0; d < ARRAY_LEN(dirs); d++) {
			char path[64];

			(void)snprintf(
			    path, sizeof(path), "%s/%s", dirs[d], names[i]);
			if (access(path, X_OK) != 0)
				continue;
			(void)snprintf(out + used, size - used, "%s%s",
			    used == 0 ? "; this image has: " : ", ", names[i]);
			used = strlen(out);
			break;
		}
}

static char *
exec_text(const struct proc_spec *spec, const char *why, int error)
{
	const char *name =
	    (spec->flags & RUNSPEC_SHELL) != 0 ? "sh" : spec->argv[0];
	char others[80];

	/* Of a path it may be the program, or what its first line names. */
	if (error != ENOENT || strchr(name, '/') != NULL)
		return xasprintf("program %.80s: %s", name, why);
	name_programs(others, sizeof(others));
	return xasprintf("program %.40s: not found%s", name, others);
}

void
proc_end_text(const struct proc_end *end, const struct proc_spec *spec,
    char *text, size_t size)
{
	AUTO(auto_free) char *whole = NULL;
	const char *why;

	*text = '\0';
	if (end->why != PROC_UNSTARTED)
		return;
	why = strerror(end->error);
	/* Keep the reason when a long name would push it out. */
	if (end->stage == KEEPER_EXEC)
		whole = exec_text(spec, why, end->error);
	else if (end->stage == KEEPER_CWD)
		whole = xasprintf("cwd %.80s: %s", spec->cwd, why);
	else if (end->stage == KEEPER_USER)
		whole = xasprintf("cannot become the run's user: %s", why);
	else
		whole = xasprintf("cannot start a process: %s", why);
	utf8_copy(text, size, whole);
}
