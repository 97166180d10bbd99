"""An audit as it runs, downwards: open_data, expand, schedule, run (work, execution_engines), store.

`finding` is what is kept, `provenance` the code that made it, `data_flows` who sent what to whom.
"""
