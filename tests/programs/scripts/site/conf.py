project = "site"
extensions = ["sphinx.ext.autodoc"]
html_theme = "alabaster"
