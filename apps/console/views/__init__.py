"""The console's pages, one module for each kind of thing."""
