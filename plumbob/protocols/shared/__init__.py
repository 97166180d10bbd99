"""What protocols, and the attacks and defences on them, share: trees, networks, plaintexts, guards of outgoing messages."""
