"""A log of decisions and tool calls, in which no line changes or goes unnoticed."""
