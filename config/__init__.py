"""Settings, Celery configuration and logging. Imports nothing else of ringhaul."""
