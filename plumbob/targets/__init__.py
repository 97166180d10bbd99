"""Real frameworks, run unmodified: started, recorded on the wire, turned into transcripts."""
