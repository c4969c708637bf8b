"""A trace in other tools' formats (Chrome JSON, Perfetto protobuf, one HTML page); sessions as tables and Parquet files."""
