/*
 * agent_ask.h - questions to a sandbox's agent: kinds and bounds
 *
 * ASK (schema/ipc.txt) brings a question from the front to the sandbox's
 * worker, OPEN_ASK (schema/frame.txt) from there to the agent; the answer goes
 * back through CLOSE and ANSWER.  Only the front, which asks, and the agent,
 * which answers, read arguments and answers.
 */
#ifndef COMMON_AGENT_ASK_H
#define COMMON_AGENT_ASK_H

#define ASK_ANSWER_MAX 60000 /* bytes */

/* On the wire: a new kind takes the next number. */
enum ask_kind {
	ASK_LEFT_LIST, /* leftlist_ask; the answer is a leftlist */
	ASK_LEFT_KILL,
	ASK_KINDS
};

#endif
