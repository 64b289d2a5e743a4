"""What a command needs up and open: broker, workers, ledger, session."""
