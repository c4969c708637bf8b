"""``tftracer fleet``: questions over the exported partitions of many ranks and jobs, on one machine or on a Dask cluster."""
