"""One request to a server, over a socket or in this process.

Rules:
* Both ways behave alike: redirects, cookies, limits, errors, and what is known of the delivery.
"""
