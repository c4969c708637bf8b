"""Jobs of many processes: they find each other, one of them shows them all, and a step is traced on all at once.

Every process runs an agent, which finds the hub (``agent/discovery``: the page of rank 0 or of the chief) and keeps one
connection to it. Both ends prove that they know the token (``wire/handshake``); ``wire/protocol`` lists their messages.

====================  ==================================================================================================
in each process       ``agent/``: ``agent`` keeps the ``connection``; ``proxy`` and ``requested_traces`` answer the hub
in the hub's process  ``hub/``: ``hub`` knows the processes, ``connection`` serves one; ``step_request`` and ``traces``
its pages             ``routes``, ``hub/services``
both                  ``wire/``
analysis (pure)       ``analyses/``: ``answers`` has the analyses of a merged step; it uses the other modules
files                 ``saved/``
for TracingServer     ``membership``
====================  ==================================================================================================

Only server.py, viewer.py and scripting/ import this package.
"""
