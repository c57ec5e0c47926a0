"""Making it exist: the engine, blueprints, adapters."""
