#include "images/agent/run_end.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "images/agent/oom.h"

#define EXIT_KILLED (128 + SIGKILL)
#define EXIT_NOT_FOUND 127
#define EXIT_CANNOT 126

void
run_end_text(struct runlog_end *end, const char *text)
{
	size_t n = strlen(text);

	if (n > sizeof(end->text) - 1)
		n = utf8_complete_len(text, sizeof(end->text) - 1);
	memcpy(end->text, text, n);
	end->text[n] = '\0';
}

void
run_end_start_failed(struct runlog_end *end, unsigned int stage, int error,
    const struct runspec_command *c)
{
	AUTO(auto_free) char *text = NULL;
	const char *why = strerror(error);

	end->reason = RUNLOG_START_FAILED;
	end->exit_code = EXIT_CANNOT;
	end->signal = 0;
	switch (stage) {
	case KEEPER_EXEC:
		if (error == ENOENT)
			end->exit_code = EXIT_NOT_FOUND;
		/* Keep the reason when a long name would push it out. */
		text = xasprintf("program %.80s: %s",
		    (c->flags & RUNSPEC_SHELL) != 0 ? "sh" : c->argv[0], why);
		break;
	case KEEPER_CWD:
		text = xasprintf("cwd %.80s: %s", c->cwd, why);
		break;
	case KEEPER_USER:
		text = xasprintf("cannot become the run's user: %s", why);
		break;
	default:
		text = xasprintf("cannot start a process: %s", why);
		break;
	}
	run_end_text(end, text);
}

void
run_end_fill(struct runlog_end *end, const struct keeper_report *report,
    uint8_t kill_reason, uint64_t oom_before, const struct runspec_command *c)
{
	int status = report->status;

	if (report->stage != KEEPER_STARTED) {
		run_end_start_failed(end, report->stage, report->error, c);
		return;
	}
	end->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	end->exit_code =
	    end->signal != 0 ? 128 + end->signal : WEXITSTATUS(status);
	end->reason = end->signal != 0 ? RUNLOG_SIGNAL : RUNLOG_EXIT;
	if (report->killed && kill_reason != 0 && end->signal == SIGKILL)
		end->reason = kill_reason;
	else if (end->exit_code == EXIT_KILLED && oom_count() > oom_before)
		end->reason = RUNLOG_MEMORY;
}
