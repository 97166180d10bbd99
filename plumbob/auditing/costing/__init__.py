"""How long an audit takes, and its memory and disk, before it runs."""
