"""Words of the engine for templates."""
