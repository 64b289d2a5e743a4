"""Settings, Celery configuration and logging. Imports no other package of ringhaul."""
