"""The tenant's pages: parse, call, render."""
