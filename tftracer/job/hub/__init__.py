"""The hub of a job: its processes, their connections, and the steps that were traced on several of them."""
