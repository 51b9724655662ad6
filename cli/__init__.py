"""The ``cusim`` command: one module a verb, each imported only when it is called."""
