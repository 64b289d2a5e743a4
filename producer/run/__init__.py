"""A job's life seen from its command: create, feed, follow, finish, resume."""
