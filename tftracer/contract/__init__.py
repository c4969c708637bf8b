"""The wire contract: the messages that the server sends and the page reads. Imports no other module of tftracer.

The page's types (frontend/src/client/messages.ts) are generated from it by ``python -m tftracer.contract.typescript``;
a test fails if they are out of date. Units are in the names: ``_s`` seconds, ``_ns`` nanoseconds, ``_at`` epoch seconds.
"""
