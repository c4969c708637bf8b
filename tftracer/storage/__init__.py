"""Files: the .tftrace format, the spool of a live session, the folder of spools, and checks of files' contents."""
