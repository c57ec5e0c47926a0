"""What was agreed, the service it became, the facts of its states, quotas."""
