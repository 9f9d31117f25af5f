/* cppcheck.h - macros of libraries, as cppcheck is told of them */
#define json_object_foreach(object, key, value)                                \
	for ((key) = "", (value) = (object); (value) != NULL;)
#define json_array_foreach(array, index, value)                                \
	for ((index) = 0, (value) = (array); (value) != NULL;)
