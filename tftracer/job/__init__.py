"""Jobs of many processes: they find each other, one of them shows all of them, and one step is traced on all at once.

Every process runs an ``agent``, which finds the ``hub`` (``discovery``: the page of rank 0 or of the chief) and keeps one
connection to it. The two greet by ``handshake``; ``protocol`` lists their messages.

====================  ==================================================================================================
in each process       ``agent`` ``hub_connection`` ``heartbeat`` ``step_watch`` ``proxy`` ``own_page`` ``source``
in the hub's process  ``agent_connection`` ``hub`` ``hub_addresses`` ``strangers`` ``step_request`` ``replies`` ``job_traces``
its pages             ``routes`` ``hub_handler`` ``job_services`` ``page_updates``
analysis (pure)       ``process_traces`` ``clocks`` ``job_clocks`` ``collectives`` ``merged`` ``straggler`` ``traffic``
                      ``job_findings`` ``job_answers``
files                 ``saved_job`` ``saved_processes``, and ``profile_job`` for a profile of several hosts
for TracingServer     ``membership``
====================  ==================================================================================================

Only server.py, cli.py and scripting/ import this package.
"""
