"""Pictures: traces and results in, matplotlib figures out, one picture a file."""
