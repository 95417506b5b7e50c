"""The four kinds of servers that components derive from: resources, agent, model and environment servers.

Rules:
* A kind owns its routes and its sessions; how it is served is decided elsewhere.
"""
