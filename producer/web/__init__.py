"""What `ringhaul flower` adds to Flower: pages of jobs and schedules, and guards for all pages."""
