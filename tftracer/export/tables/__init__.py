"""A session as tables of NumPy columns, for scripts, Parquet files and SQL."""
