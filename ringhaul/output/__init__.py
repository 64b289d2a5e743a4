"""Where rows and results of a job go: part files and their manifest."""
