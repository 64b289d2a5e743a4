"""What a host reports about itself, for `ringhaul doctor`: machine, clock, view of the cluster."""
