/*
 * places.h - directories that every sandbox has
 *
 * Commands begin in /workspace and leave their artifacts in /artifacts.  Our
 * image has both; in any other one they are made, and what the engine made
 * for root is given to the sandbox's user.
 */
#ifndef AGENT_PLACES_H
#define AGENT_PLACES_H

/* places_make - once, at the start; what cannot be had is warned about */
void places_make(void);

#endif
