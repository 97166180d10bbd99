"""Attacks run in a process that holds the view and nothing else.

attacker      what an audit calls: it starts the process, sends a view, and gets a guess or the reason why there is none
limits        seconds and memory of one attack
messages      views and guesses as JSON and raw numbers; the audit never unpickles what an attack wrote
_worker       the program of that process: it waits, and forks for every attack
_walls        what the system offers to confine a process: namespaces, Landlock, system calls, memory
"""
