"""A trace in other tools' formats (Chrome JSON, one HTML page); sessions as tables and Parquet files."""
