"""The engine: claims runs, advances their steps, undoes them, watches sites."""
