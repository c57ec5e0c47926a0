"""Who did what, when: rows are only added."""
