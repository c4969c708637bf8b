"""One trace's answers: the facade through which the server, the command line and the exports ask the engine.

``Answers(raw, context)`` decodes when first asked, keeps what is costly, and returns the bodies of web/messages.py.
It is safe to use from several threads: answers are computed under a lock, once.
"""
