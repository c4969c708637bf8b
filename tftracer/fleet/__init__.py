"""``tftracer fleet``: answers questions about the exported partitions of many ranks and jobs, on one machine or on a Dask
cluster."""
