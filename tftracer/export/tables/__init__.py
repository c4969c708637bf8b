"""A session as tables of NumPy columns: what scripts, Parquet files and SQL see of it."""
