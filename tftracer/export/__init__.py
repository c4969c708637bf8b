"""A trace in other people's formats: Chrome JSON, Perfetto protobuf, one HTML page."""
