"""A resources server's tools, served over MCP.

Source: servers.md §8.6.
"""
