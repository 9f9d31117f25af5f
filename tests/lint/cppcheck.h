/* cppcheck.h - macros of libraries, and a processor, for cppcheck to know */
#define json_object_foreach(object, key, value)                                \
	for ((key) = "", (value) = (object); (value) != NULL;)
#define json_array_foreach(array, index, value)                                \
	for ((index) = 0, (value) = (array); (value) != NULL;)
/* of which images/agent/raw.h knows how a system call is made */
#ifndef __x86_64__
#define __x86_64__ 1
#endif
/* jansson.h says so, which it does not read; front/bodies.c wants it */
#define JANSSON_THREAD_SAFE_REFCOUNT 1
