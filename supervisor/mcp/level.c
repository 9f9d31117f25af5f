#include "supervisor/mcp/level.h"

static const char *const words[] = {
    [MCP_DEBUG] = "debug",
    [MCP_INFO] = "info",
    [MCP_NOTICE] = "notice",
    [MCP_WARNING] = "warning",
    [MCP_ERROR] = "error",
    [MCP_CRITICAL] = "critical",
    [MCP_ALERT] = "alert",
    [MCP_EMERGENCY] = "emergency",
};

const char *
level_word(enum mcp_level level)
{
	return words[level];
}

int
level_find(const json_t *word)
{
	for (size_t i = 0; json_is_string(word) && i < ARRAY_LEN(words); i++)
		if (strcmp(words[i], json_string_value(word)) == 0)
			return (int)i;
	return LEVEL_NONE;
}
