/*
 * check_engine.h - whether workers could start with these settings, and what
 * they would find on the engine
 *
 * mcp-sandboxd starts its worker's program so for --check-config, with the
 * worker's user and groups; nothing is made, built or pulled.
 */
#ifndef WORKER_CHECK_ENGINE_H
#define WORKER_CHECK_ENGINE_H

/* check_engine_main - the settings come in the environment.  What would end a
 * worker is said as an error, what it would go on with as a warning.  The exit
 * status: 0, or 78 */
int check_engine_main(void);

#endif
