"""``tftracer roof``: measures how fast this machine multiplies matrices and moves memory."""
