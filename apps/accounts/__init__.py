"""People, roles, projects, keys."""
