"""HTTP to servers that answer in streams: sockets, proxies, certificates, server-sent events."""
