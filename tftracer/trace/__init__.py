"""RunMetadata in, columns and answers out. Pure: imports neither TensorFlow nor Tornado."""
