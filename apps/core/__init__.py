"""Words every app shares: errors, money, periods, status machines, clock, outbox, secrets."""
