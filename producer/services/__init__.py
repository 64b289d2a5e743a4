"""Services: what a command needs running or connected: broker, workers, ledger, session."""
