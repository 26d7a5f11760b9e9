"""The service on the wire: routes, bodies, replies, problems, keys, metrics and logs."""
