"""``tftracer roof``: how fast this machine multiplies matrices and moves memory, measured when somebody asks."""
