"""How objects show themselves in a notebook: pieces of HTML, and pages in frames. Knows no sessions and needs no IPython."""
