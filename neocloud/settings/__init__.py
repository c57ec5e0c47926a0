"""Settings: base reads the environment once; dev, test and prod say what differs."""
