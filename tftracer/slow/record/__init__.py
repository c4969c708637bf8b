"""The records of slow steps, and their writing to and reading from the session's file."""
