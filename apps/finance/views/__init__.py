"""The finance desk's pages, one module for each kind of thing."""
