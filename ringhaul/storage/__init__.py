"""Object stores, web servers and folders: which may be opened, and how."""
