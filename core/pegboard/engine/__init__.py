"""The agent: the processing of a prompt through requests, answers and tool calls.

The modules in this folder are the kernel. Each subfolder adds one subject to the kernel.
"""
