"""Real frameworks, run as they are: started, recorded on the wire, turned into transcripts."""
