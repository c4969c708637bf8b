"""Keeps the records of slow steps, writes them to the session's file and reads them."""
