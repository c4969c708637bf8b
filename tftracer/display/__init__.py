"""Shows objects in a notebook: pieces of HTML, and pages in frames. Depends on neither sessions nor IPython."""
