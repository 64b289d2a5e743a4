"""What lies behind URLs: object stores and web servers, for the inputs and the outputs of jobs."""
