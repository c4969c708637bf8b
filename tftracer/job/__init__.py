"""Jobs of many processes: they find each other, one of them shows all of them, and one step is traced on all at once.

Every process runs an ``agent``, which finds the ``hub`` (``discovery``: the page of rank 0 or of the chief) and keeps one
connection to it. The two greet by ``handshake``; ``protocol`` lists their messages.

====================  ==================================================================================================
in each process       ``agent`` ``hub_connection`` ``heartbeat`` ``step_watch`` ``proxy`` ``own_page``
in the hub's process  ``agent_connection`` ``hub`` ``step_request`` ``job_traces`` ``page_updates`` ``routes`` ``strangers``
analysis (pure)       ``process_traces`` ``clocks`` ``collectives`` ``merged`` ``straggler`` ``traffic`` ``job_answers``
for TracingServer     ``membership``, and ``saved_job`` for the job's file
====================  ==================================================================================================

Only server.py, cli.py and scripting/ import this package.
"""
