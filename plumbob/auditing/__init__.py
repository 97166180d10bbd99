"""An audit, in the order in which it happens. Each folder uses only those above it, but for what a plan says of its gate.

    planning/      what is asked for: the plan and its file, the sweep, the gate, the matrix of what applies
    drafting/      how `plumbob init` writes a first plan
    running/       open_data, expand, schedule, run, store; workers and execution engines
    costing/       how long that takes, before it runs
    concluding/    findings to verdicts, the best defence, and when no leak found means nothing

`plumbob.app.run_audit` goes through these steps and then renders the report.
"""
